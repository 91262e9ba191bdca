"""Tables: imbalanced-learn's benchmark, and features of MVTec's images."""

from __future__ import annotations

import tarfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from equipoise._core.checks import check_array, check_choice
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


def load_imblearn_benchmark(
    name: str, *, data_home: PathLike | None = None, download: bool = False
) -> Dataset:
    """One set of imbalanced-learn's benchmark; label 1 is the minority, 0 the majority.

    The files lie under ``imblearn_benchmark/zenodo`` in the data home. With ``download=True`` the archive is
    fetched from Zenodo by imbalanced-learn if the file is missing.

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
    folder = _benchmark_folder(data_home)
    file = f"x{IMBLEARN_BENCHMARK.index(name) + 1}data.npz"
    path = folder / "zenodo" / file
    if path.is_file():
        load_npz(path, "data", "label")  # says what is wrong with a damaged file
        bunch = _fetch(name, folder, download=False)
    elif download:
        bunch = _fetch(name, folder, download=True)
        if bunch.data.shape != _SHAPES[name]:
            raise ValueError(f"{path} must have shape {_SHAPES[name]}, got {bunch.data.shape} from Zenodo")
    else:
        advice = "Pass download=True to fetch the archive from Zenodo."
        raise missing(f"{name} of imbalanced-learn's benchmark", folder, f"zenodo/{file}", advice)
    if not set(np.unique(bunch.target)) <= {-1, 1}:
        raise ValueError(f"{path}: labels must be -1 and 1, got {np.unique(bunch.target).tolist()}")
    return Dataset(
        X=check_array(f"{path}: data", bunch.data),
        y=(bunch.target == 1).astype(np.int64),
        name=name,
        target_names=("majority", "minority"),
    )


def _fetch(name: str, folder: Path, *, download: bool) -> Any:
    from imblearn.datasets import fetch_datasets

    try:
        return fetch_datasets(data_home=str(folder), filter_data=(name,), download_if_missing=download)[name]
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise OSError(f"could not get {name} of imbalanced-learn's benchmark from Zenodo: {error}") from error


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
    folder = _benchmark_folder(data_home) / "zenodo"
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
    return _home(path) / "imblearn_benchmark"
