"""Tables: imbalanced-learn's benchmark, and features of MVTec's images."""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
import zlib
from pathlib import Path

import numpy as np

from equipoise._core.checks import check_array, check_choice
from equipoise._core.files import DamagedFileError, replacing_together
from equipoise.datasets.dataset import Dataset
from equipoise.datasets.home import PathLike, data_home, find_file, folders, load_npz, missing

_SHAPES = {
    "ecoli": (336, 7), "optical_digits": (5620, 64), "satimage": (6435, 36), "pen_digits": (10992, 16),
    "abalone": (4177, 10), "sick_euthyroid": (3163, 42), "spectrometer": (531, 93), "car_eval_34": (1728, 21),
    "isolet": (7797, 617), "us_crime": (1994, 100), "yeast_ml8": (2417, 103), "scene": (2407, 294),
    "libras_move": (360, 90), "thyroid_sick": (3772, 52), "coil_2000": (9822, 85), "arrhythmia": (452, 278),
    "solar_flare_m0": (1389, 32), "oil": (937, 49), "car_eval_4": (1728, 21), "wine_quality": (4898, 11),
    "letter_img": (20000, 16), "yeast_me2": (1484, 8), "webpage": (34780, 300), "ozone_level": (2536, 72),
    "mammography": (11183, 6), "protein_homo": (145751, 74), "abalone_19": (4177, 10),
}  # fmt: skip
IMBLEARN_BENCHMARK = tuple(_SHAPES)
"""The 27 sets of imbalanced-learn's benchmark (Ding 2011), in the order of their file numbers."""

_SUMS = "SHA256SUMS"
#: Of a copy whose members bear the archive's dates, of August 2015.
_SHA256 = {
    "x1data.npz": "126f2ec169536858333f98f5d80663e9f066d931cdd302f16941fc25a274ca8b",
    "x2data.npz": "6c492eb49a32a79ad8948d6764ae04381af8a7ceb5883c38d4facf3022a406b6",
    "x3data.npz": "06b3c247db5900d4c02a64e28188d7d6b3758019d06eb37db1dc3635d9f82253",
    "x4data.npz": "ce7affeab9461c0ec366c123bc6f88d2d9286ede43869594e031b3910609c78f",
    "x5data.npz": "660fbf73a93cfbd9cbdf3091827c5ea1986fbae4f833c52795b218224cecfeaf",
    "x6data.npz": "71f7e5be4aaaf14bacf7940c776eca5e28142fc9e8df968aa92ab45179d59764",
    "x8data.npz": "8da506a8d480473fbbcce6d6e0534246de40a3fa9261d3b740164a32499df10a",
    "x11data.npz": "b43b195c198551a1cde3dbbccb0fac131d44cd215bfce3452e5235cbbd4250fd",
    "x16data.npz": "b4660c3fab15a32df0f35319b59f32b922db567051501d369241195b810e21da",
    "x17data.npz": "747755eaa617bf0af2706ff21d3415f4c1771dfd53859e19fcc11b04662448fb",
    "x19data.npz": "90371d46ac4c40742a37f714018421594a894c299d9f10bc7004f09876ba09c9",
    "x25data.npz": "73480c315d42bc5b33c2c73b9078d0034113d26f0511facd9fc5bb07f2d6438a",
    "x27data.npz": "76122e2fafcd4c8cc272154c97d8d4c0f363e82e98bb493f116110f74c2ee3fc",
}


def load_imblearn_benchmark(
    name: str, *, data_home: PathLike | None = None, download: bool = False
) -> Dataset:
    """One set of imbalanced-learn's benchmark; label 1 is the minority, 0 the majority.

    The files lie under ``imblearn_benchmark/zenodo`` in the data home. With ``download=True`` the archive is
    fetched from Zenodo by imbalanced-learn if the file is missing. Zenodo's page lists no SHA-256 for it: what
    was fetched is compared with the SHA-256 of the 13 files that Equipoise knows, and ``SHA256SUMS`` beside the
    files holds those of all of them, which every later call checks.

    Parameters
    ----------
    name : str
        One of ``IMBLEARN_BENCHMARK``.
    data_home : path, optional
        The folder of data files; see :func:`~equipoise.datasets.data_home`.
    download : bool
        Whether to fetch the archive if the file is missing.

    Returns
    -------
    Dataset
        The table and its labels.
    """
    check_choice("name", name, IMBLEARN_BENCHMARK)
    path = _benchmark_folder(data_home) / f"x{IMBLEARN_BENCHMARK.index(name) + 1}data.npz"
    if not path.is_file():
        if not download:
            advice = "Pass download=True to fetch the archive from Zenodo."
            raise missing(f"{name} of imbalanced-learn's benchmark", path.parent, path.name, advice)
        _download(name, path.parent)
    _check_unaltered(path)
    arrays = load_npz(path, "data", "label")
    X, labels = check_array(f"{path}: data", arrays["data"]), arrays["label"]
    if X.shape != _SHAPES[name] or labels.shape != X.shape[:1]:
        raise ValueError(
            f"{path} must have shape {_SHAPES[name]} and a label for each row, got {X.shape} and {labels.shape}"
        )
    if not set(np.unique(labels)) <= {-1, 1}:
        raise ValueError(f"{path}: labels must be -1 and 1, got {np.unique(labels).tolist()}")
    return Dataset(X=X, y=(labels == 1).astype(np.int64), name=name, target_names=("majority", "minority"))


def _download(name: str, folder: Path) -> None:
    """Fetch the archive: all of its files appear together, with their checksums, or none."""
    from imblearn.datasets import fetch_datasets

    with replacing_together(folder) as bundle:
        with tempfile.TemporaryDirectory(dir=bundle) as place:
            try:
                fetch_datasets(data_home=place, filter_data=(name,), download_if_missing=True)
            except (OSError, EOFError, ValueError, tarfile.TarError, zlib.error) as error:
                raise OSError(
                    f"could not get {name} of imbalanced-learn's benchmark from Zenodo: {error}"
                ) from error
            for path in Path(place, "zenodo").glob("x*data.npz"):
                path.rename(bundle / path.name)
        sums = {path.name: _sha256(path) for path in sorted(bundle.iterdir())}
        for file, known in _SHA256.items():
            if sums.get(file, known) != known:
                raise DamagedFileError(
                    f"{file} as sent by Zenodo is not the file that Equipoise knows and was not kept: its SHA-256 "
                    f"is {sums[file]} and should be {known}"
                )
        (bundle / _SUMS).write_text("".join(f"{found}  {file}\n" for file, found in sums.items()))


def _check_unaltered(path: Path) -> None:
    """Compare a file with the checksum of its download, if there was one."""
    record = path.with_name(_SUMS)
    lines = record.read_text(encoding="utf-8", errors="replace").splitlines() if record.is_file() else []
    for line in lines:
        known, _, file = line.partition("  ")
        if file == path.name and known != _sha256(path):
            raise DamagedFileError(
                f"{path} is damaged: its SHA-256 is not the one of its download in {record}"
            )


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def available_imblearn_benchmark(data_home: PathLike | None = None) -> list[str]:
    """The names whose files are present.

    Parameters
    ----------
    data_home : path, optional
        The folder of data files; see :func:`~equipoise.datasets.data_home`.

    Returns
    -------
    list of str
        Names that :func:`load_imblearn_benchmark` can load.
    """
    folder = _benchmark_folder(data_home)
    return [
        name for i, name in enumerate(IMBLEARN_BENCHMARK, start=1) if (folder / f"x{i}data.npz").is_file()
    ]


def load_mvtec_features(category: str, *, data_home: PathLike | None = None) -> Dataset:
    """Anomaly detection on MVTec AD images as 512 ImageNet ResNet-18 features; label 1 is the anomaly.

    Reads ``mvtec_features/MVTec-AD_{category}.npz`` (arrays X and y) in the data home.

    Parameters
    ----------
    category : str
        A category of MVTec AD, such as ``"carpet"``.
    data_home : path, optional
        The folder of data files; see :func:`~equipoise.datasets.data_home`.

    Returns
    -------
    Dataset
        The features and their labels.
    """
    home = _home(data_home)
    file = f"MVTec-AD_{category}.npz"
    path = find_file(folders(home, "mvtec_features"), file)
    if path is None:
        have = available_mvtec_features(data_home)
        advice = f"There are: {', '.join(have)}." if have else "These are the features of ADBench."
        raise missing(f"MVTec's {category!r}", home, f"mvtec_features/{file}", advice)
    arrays = load_npz(path, "X", "y")
    return Dataset(
        X=check_array(f"{path}: X", arrays["X"]).astype(np.float32),
        y=arrays["y"].ravel().astype(np.int64),
        name=f"mvtec-{category}",
        target_names=("normal", "anomaly"),
    )


def available_mvtec_features(data_home: PathLike | None = None) -> list[str]:
    """The categories whose files are present.

    Parameters
    ----------
    data_home : path, optional
        The folder of data files; see :func:`~equipoise.datasets.data_home`.

    Returns
    -------
    list of str
        Categories that :func:`load_mvtec_features` can load.
    """
    found = (_home(data_home) / "mvtec_features").rglob("MVTec-AD_*.npz")
    return sorted(path.stem.removeprefix("MVTec-AD_") for path in found)


_home = data_home  # the loaders' argument has the same name


def _benchmark_folder(path: PathLike | None) -> Path:
    return _home(path) / "imblearn_benchmark" / "zenodo"
