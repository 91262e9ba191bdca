"""Tables: imbalanced-learn's benchmark, and features of MVTec's images."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from equipoise._core.checks import check_array, check_choice
from equipoise.datasets.dataset import Dataset
from equipoise.datasets.home import PathLike, data_home, find_file, folders, load_npz, missing

IMBLEARN_BENCHMARK = (
    "ecoli", "optical_digits", "satimage", "pen_digits", "abalone", "sick_euthyroid", "spectrometer",
    "car_eval_34", "isolet", "us_crime", "yeast_ml8", "scene", "libras_move", "thyroid_sick", "coil_2000",
    "arrhythmia", "solar_flare_m0", "oil", "car_eval_4", "wine_quality", "letter_img", "yeast_me2", "webpage",
    "ozone_level", "mammography", "protein_homo", "abalone_19",
)  # fmt: skip
"""The 27 sets of imbalanced-learn's benchmark (Ding 2011), in the order of their file numbers."""


def load_imblearn_benchmark(
    name: str, *, data_home: PathLike | None = None, download: bool = False
) -> Dataset:
    """One set of imbalanced-learn's benchmark; label 1 is the minority, 0 the majority.

    The files lie under ``imblearn_benchmark/zenodo`` in the data home. With ``download=True`` the archive is
    fetched from Zenodo by imbalanced-learn if the file is missing.
    """
    from imblearn.datasets import fetch_datasets

    check_choice("name", name, IMBLEARN_BENCHMARK)
    folder = _benchmark_folder(data_home)
    file = f"x{IMBLEARN_BENCHMARK.index(name) + 1}data.npz"
    path = folder / "zenodo" / file
    if path.is_file():
        load_npz(path, "data", "label")  # says what is wrong with a damaged file
    elif not download:
        advice = "Pass download=True to fetch the archive from Zenodo."
        raise missing(f"{name} of imbalanced-learn's benchmark", folder, f"zenodo/{file}", advice)
    bunch = fetch_datasets(data_home=str(folder), filter_data=(name,), download_if_missing=download)[name]
    if not set(np.unique(bunch.target)) <= {-1, 1}:
        raise ValueError(f"{path}: labels must be -1 and 1, got {np.unique(bunch.target).tolist()}")
    return Dataset(
        X=check_array(f"{path}: data", bunch.data),
        y=(bunch.target == 1).astype(np.int64),
        name=name,
        target_names=("majority", "minority"),
    )


def available_imblearn_benchmark(data_home: PathLike | None = None) -> list[str]:
    """The names whose files are present."""
    folder = _benchmark_folder(data_home) / "zenodo"
    return [
        name for i, name in enumerate(IMBLEARN_BENCHMARK, start=1) if (folder / f"x{i}data.npz").is_file()
    ]


def load_mvtec_features(category: str, *, data_home: PathLike | None = None) -> Dataset:
    """Anomaly detection on MVTec AD images as 512 ImageNet ResNet-18 features; label 1 is the anomaly.

    Reads ``mvtec_features/MVTec-AD_{category}.npz`` (arrays X and y) in the data home.
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
    """The categories whose files are present."""
    found = (_home(data_home) / "mvtec_features").rglob("MVTec-AD_*.npz")
    return sorted(path.stem.removeprefix("MVTec-AD_") for path in found)


_home = data_home  # the loaders' argument has the same name


def _benchmark_folder(path: PathLike | None) -> Path:
    return _home(path) / "imblearn_benchmark"
