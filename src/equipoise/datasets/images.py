"""Image sets from files: MNIST, Fashion-MNIST, MedMNIST."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import check_choice
from equipoise.datasets.dataset import Dataset
from equipoise.datasets.home import (
    DEBIAN_FASHION_MNIST,
    PathLike,
    data_home,
    find_file,
    folders,
    load_npz,
    missing,
)
from equipoise.datasets.idx import read_idx
from equipoise.datasets.openml import fetch_image_set

Pixels = Literal["float32", "uint8"]
_home = data_home  # the loaders' argument has the same name

_FASHION_CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
_IDX_NAMES = {"train": "train", "test": "t10k"}


def load_mnist(
    split: Literal["train", "test"] = "train",
    *,
    pixels: Pixels = "float32",
    data_home: PathLike | None = None,
    download: bool = False,
) -> Dataset:
    """MNIST's 60000 training or 10000 test digits, (n, 1, 28, 28).

    Reads the idx files, gzipped or not, anywhere under ``mnist`` in the data home, or ``mnist.npz`` with the
    arrays x_train, y_train, x_test, y_test. ``pixels="float32"`` scales to [0, 1]; ``"uint8"`` keeps 0 … 255.
    ``download=True`` gets the set from OpenML if no file is there.

    Parameters
    ----------
    split : {"train", "test"}
        Which of the sets.
    pixels : {"float32", "uint8"}
        Pixels in [0, 1], or 0 … 255 in a quarter of the memory.
    data_home : path, optional
        The folder of data files; see :func:`~equipoise.datasets.data_home`.
    download : bool
        Whether to get the set from OpenML if no file is there.

    Returns
    -------
    Dataset
        The images and their labels.
    """
    return _load_idx_set("mnist", tuple("0123456789"), split, pixels, data_home, download)


def load_fashion_mnist(
    split: Literal["train", "test"] = "train",
    *,
    pixels: Pixels = "float32",
    data_home: PathLike | None = None,
    download: bool = False,
) -> Dataset:
    """Fashion-MNIST's 60000 training or 10000 test articles, (n, 1, 28, 28).

    As `load_mnist`, under ``fashion-mnist``; Debian's package ``dataset-fashion-mnist`` is found by itself.

    Parameters
    ----------
    split : {"train", "test"}
        Which of the sets.
    pixels : {"float32", "uint8"}
        Pixels in [0, 1], or 0 … 255 in a quarter of the memory.
    data_home : path, optional
        The folder of data files; see :func:`~equipoise.datasets.data_home`.
    download : bool
        Whether to get the set from OpenML if no file is there.

    Returns
    -------
    Dataset
        The images and their labels.
    """
    return _load_idx_set(
        "fashion-mnist", _FASHION_CLASSES, split, pixels, data_home, download, [DEBIAN_FASHION_MNIST]
    )


def load_medmnist(
    name: str = "pneumoniamnist",
    split: Literal["train", "val", "test"] = "train",
    *,
    pixels: Pixels = "float32",
    data_home: PathLike | None = None,
) -> Dataset:
    """A single-label MedMNIST set from its npz file, ``medmnist/{name}.npz`` in the data home.

    Also takes ``{name}_rebuilt.npz`` and larger editions such as ``name="pneumoniamnist_64"``. Some files are
    ordered by class: shuffle before you split.

    Parameters
    ----------
    name : str
        The name of the set.
    split : {"train", "val", "test"}
        Which of the sets.
    pixels : {"float32", "uint8"}
        Pixels in [0, 1], or 0 … 255 in a quarter of the memory.
    data_home : path, optional
        The folder of data files; see :func:`~equipoise.datasets.data_home`.

    Returns
    -------
    Dataset
        The images and their labels.
    """
    check_choice("split", split, ["train", "val", "test"])
    home = _home(data_home)
    path = find_file(folders(home, "medmnist"), f"{name}.npz", f"{name}_rebuilt.npz")
    if path is None:
        raise missing(f"MedMNIST's {name}", home, f"medmnist/{name}.npz", "Get it from medmnist.com.")
    arrays = load_npz(path, f"{split}_images", f"{split}_labels")
    labels = arrays[f"{split}_labels"]
    if labels.ndim == 2 and labels.shape[1] > 1:
        raise ValueError(f"{path} has {labels.shape[1]} labels a sample; only single-label sets are read")
    targets = ("normal", "pneumonia") if name.startswith("pneumonia") else ()
    return image_dataset(arrays[f"{split}_images"], labels.ravel(), name, targets, pixels, path)


def image_dataset(
    raw: npt.NDArray[Any],
    labels: npt.NDArray[Any],
    name: str,
    target_names: tuple[str, ...],
    pixels: Pixels,
    path: Path,
) -> Dataset:
    """Check raw images (n, h, w) or (n, h, w, c) with their labels and bring them to (n, c, h, w)."""
    check_choice("pixels", pixels, ["float32", "uint8"])
    if raw.ndim not in (3, 4) or raw.dtype != np.uint8:
        raise ValueError(
            f"{path}: images must be uint8 (n, height, width[, channels]), got {raw.dtype} {raw.shape}"
        )
    if len(raw) != len(labels):
        raise ValueError(
            f"{path}: images and labels must have the same length, got {len(raw)} and {len(labels)}"
        )
    if target_names and len(labels) and not 0 <= labels.min() <= labels.max() < len(target_names):
        raise ValueError(
            f"{path}: labels must lie in [0, {len(target_names) - 1}], got {labels.min()} to {labels.max()}"
        )
    images = raw[:, None] if raw.ndim == 3 else np.ascontiguousarray(np.moveaxis(raw, 3, 1))
    channels, height, width = images.shape[1:]
    return Dataset(
        X=images if pixels == "uint8" else images / np.float32(255),
        y=labels.astype(np.int64),
        name=name,
        target_names=target_names,
        image_shape=(channels, height, width),
    )


def _load_idx_set(
    name: str,
    target_names: tuple[str, ...],
    split: str,
    pixels: Pixels,
    home_path: PathLike | None,
    download: bool,
    extra: Iterable[Path] = (),
) -> Dataset:
    check_choice("split", split, ["train", "test"])
    home = _home(home_path)
    places = list(folders(home, name, extra))
    stem = _IDX_NAMES[split]
    packed = find_file(places, f"{name}.npz")
    images = _find_idx(places, f"{stem}-images-idx3-ubyte", f"{stem}-images.idx3-ubyte")
    if packed is None and images is None and download:
        packed = fetch_image_set(name, home)
    if packed is not None:
        arrays = load_npz(packed, f"x_{split}", f"y_{split}")
        return image_dataset(
            arrays[f"x_{split}"], arrays[f"y_{split}"].ravel(), name, target_names, pixels, packed
        )
    if images is None:
        advice = f"Its idx files go under {home / name}; download=True gets it from OpenML."
        raise missing(name, home, f"{stem}-images-idx3-ubyte[.gz] and {name}.npz", advice)
    labels = _find_idx([images.parent], f"{stem}-labels-idx1-ubyte", f"{stem}-labels.idx1-ubyte")
    if labels is None:
        raise missing(f"{name}'s labels", images.parent, f"{stem}-labels-idx1-ubyte[.gz]", "")
    return image_dataset(read_idx(images), read_idx(labels), name, target_names, pixels, images)


def _find_idx(places: Iterable[Path], *names: str) -> Path | None:
    return find_file(places, *(name + end for name in names for end in ("", ".gz")))
