"""CIFAR-10 and CIFAR-100 from npz, their original pickles or PNG strips; CIFAR-10-LT's index lists."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import IntArray, check_choice, check_integer
from equipoise._core.files import existing, read_json
from equipoise.datasets.dataset import Dataset
from equipoise.datasets.folders import open_image
from equipoise.datasets.home import PathLike, data_home, find_file, folders, load_npz, missing
from equipoise.datasets.images import Pixels, image_dataset
from equipoise.datasets.openml import fetch_image_set
from equipoise.datasets.unpickle import read_array_pickle

CIFAR10_CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
CIFAR100_CLASSES = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle", "bowl",
    "boy", "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle", "chair",
    "chimpanzee", "clock", "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur", "dolphin",
    "elephant", "flatfish", "forest", "fox", "girl", "hamster", "house", "kangaroo", "keyboard", "lamp",
    "lawn_mower", "leopard", "lion", "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain",
    "mouse", "mushroom", "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear", "pickup_truck",
    "pine_tree", "plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon", "ray", "road", "rocket",
    "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper", "snail", "snake", "spider", "squirrel",
    "streetcar", "sunflower", "sweet_pepper", "table", "tank", "telephone", "television", "tiger", "tractor",
    "train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf", "woman", "worm",
)  # fmt: skip
_SIDE = 32
_BATCHES = {"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)}
_LABEL_FILES = {
    "train": ("train_lables.json", "train_labels.json"),
    "test": ("test_lables.json", "test_labels.json"),
}
_home = data_home  # the loaders' argument has the same name

Raw = tuple[npt.NDArray[np.uint8], IntArray, Path]


def load_cifar10(
    split: Literal["train", "test"] = "train",
    *,
    pixels: Pixels = "float32",
    data_home: PathLike | None = None,
    download: bool = False,
) -> Dataset:
    """CIFAR-10's 50000 training or 10000 test images, (n, 3, 32, 32).

    Read from what lies anywhere under ``cifar10`` in the data home: ``cifar10.npz`` (arrays x_train, y_train,
    x_test, y_test), the original batches ``data_batch_1`` … (unpickled without running any code), or strips
    ``data_batch_1.png`` … with JSON lists of labels. ``download=True`` gets it from OpenML if none is there.
    ``pixels="uint8"`` keeps 0 … 255 in a quarter of the memory; see `Dataset.scaled`.

    Parameters
    ----------
    split : {"train", "test"}
        Which of the two sets.
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
    check_choice("split", split, ["train", "test"])
    home = _home(data_home)
    places = [*folders(home, "cifar10"), home / "cifar-10-batches-py"]
    npz = "cifar10.npz"
    raw = (
        _from_npz(places, npz, split) or _from_pickles(places, _BATCHES[split]) or _from_strips(places, split)
    )
    if raw is None and download:
        raw = _from_npz([fetch_image_set("cifar10", home).parent], npz, split)
    if raw is None:
        wanted = "cifar10.npz, data_batch_1 and data_batch_1.png"
        raise missing("cifar10", home, wanted, "Pass download=True to get it from OpenML.")
    images, labels, path = raw
    return image_dataset(images, labels, "cifar10", CIFAR10_CLASSES, pixels, path)


def load_cifar100(
    split: Literal["train", "test"] = "train",
    *,
    pixels: Pixels = "float32",
    data_home: PathLike | None = None,
) -> Dataset:
    """CIFAR-100's 50000 training or 10000 test images, (n, 3, 32, 32), with their 100 fine classes.

    Read from what lies anywhere under ``cifar100`` in the data home: ``cifar100.npz`` (arrays x_train, y_train,
    x_test, y_test) or the original files ``train`` and ``test`` of ``cifar-100-python`` (unpickled without running
    any code).

    Parameters
    ----------
    split : {"train", "test"}
        Which of the two sets.
    pixels : {"float32", "uint8"}
        Pixels in [0, 1], or 0 … 255 in a quarter of the memory.
    data_home : path, optional
        The folder of data files; see :func:`~equipoise.datasets.data_home`.

    Returns
    -------
    Dataset
        The images and their labels.
    """
    check_choice("split", split, ["train", "test"])
    home = _home(data_home)
    places = [*folders(home, "cifar100"), home / "cifar-100-python"]
    raw = _from_npz(places, "cifar100.npz", split) or _from_pickles(places, (split,))
    if raw is None:
        advice = "Unpack cifar-100-python.tar.gz of the set's home page there."
        raise missing("cifar100", home, f"cifar100.npz and {split}", advice)
    images, labels, path = raw
    return image_dataset(images, labels, "cifar100", CIFAR100_CLASSES, pixels, path)


def load_cifar10_lt_indices(ratio: int, *, seed: int = 0, data_home: PathLike | None = None) -> IntArray:
    """The training rows of CIFAR-10-LT at imbalance ``ratio``, from a list that others used too.

    Reads the array ``exp_ir{ratio}`` of ``cifar10_lt/train_indices_seed{seed}.npz`` in the data home. Without
    a list, ``load_cifar10().imbalanced(counts=class_counts("cifar10-lt-100"), random_state=0)`` draws one.

    Parameters
    ----------
    ratio : int
        The imbalance ratio.
    seed : int
        Which list.
    data_home : path, optional
        The folder of data files; see :func:`~equipoise.datasets.data_home`.

    Returns
    -------
    array of int
        Row numbers of CIFAR-10's training set.
    """
    ratio, seed = check_integer("ratio", ratio, low=1), check_integer("seed", seed, low=0)
    home = _home(data_home)
    file = f"train_indices_seed{seed}.npz"
    path = find_file(folders(home, "cifar10_lt"), file)
    if path is None:
        advice = f"Draw one with counts=class_counts('cifar10-lt-{ratio}')."
        raise missing("CIFAR-10-LT's index list", home, f"cifar10_lt/{file}", advice)
    indices = load_npz(path, f"exp_ir{ratio}")[f"exp_ir{ratio}"].astype(np.int64)
    if indices.size and not 0 <= indices.min() <= indices.max() < 50_000:
        raise ValueError(f"{path}: indices must lie in [0, 49999], got {indices.min()} to {indices.max()}")
    return indices


def read_cifar_batch(path: PathLike) -> tuple[npt.NDArray[np.uint8], IntArray]:
    """One pickled batch of CIFAR-10, or a file of CIFAR-100: images (n, 32, 32, 3) and (fine) labels."""
    source = Path(path)
    batch = read_array_pickle(source)
    if not isinstance(batch, dict):
        raise ValueError(f"{source} must hold a dictionary, got {type(batch).__name__}")
    named = {
        key.decode(errors="replace") if isinstance(key, bytes) else key: value for key, value in batch.items()
    }
    labels = named.get("fine_labels", named.get("labels"))
    if "data" not in named or labels is None:
        raise ValueError(f"{source} lacks data or labels; it has {', '.join(map(str, named))}")
    pixels = named["data"]
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != 3 * _SIDE**2:
        raise ValueError(f"{source}: data must have {3 * _SIDE**2} columns, got {np.shape(pixels)}")
    planes = pixels.reshape(-1, 3, _SIDE, _SIDE)
    return np.ascontiguousarray(np.moveaxis(planes, 1, 3)), _label_array(labels, source)


def read_png_strip(path: PathLike) -> npt.NDArray[np.uint8]:
    """Images (n, 32, 32, 3) from a strip that has one image a row of 1024 RGB pixels. Needs Pillow."""
    source = existing(path)
    strip = np.asarray(open_image(source).convert("RGB"))
    if strip.shape[1] != _SIDE**2:
        raise ValueError(f"{source} must be {_SIDE**2} pixels wide, one image a row, got {strip.shape[1]}")
    return strip.reshape(-1, _SIDE, _SIDE, 3)


def _from_npz(places: Sequence[Path], name: str, split: str) -> Raw | None:
    path = find_file(places, name)
    if path is None:
        return None
    arrays = load_npz(path, f"x_{split}", f"y_{split}")
    images: npt.NDArray[Any] = arrays[f"x_{split}"]
    if images.ndim == 4 and images.shape[1] == 3 and images.shape[3] != 3:
        images = np.moveaxis(images, 1, 3)
    return images, _label_array(arrays[f"y_{split}"], path), path


def _from_pickles(places: Sequence[Path], names: Sequence[str]) -> Raw | None:
    first = find_file(places, names[0])
    if first is None:
        return None
    images, labels = zip(*(read_cifar_batch(first.parent / name) for name in names), strict=True)
    return np.concatenate(images), np.concatenate(labels), first


def _from_strips(places: Sequence[Path], split: str) -> Raw | None:
    names = _BATCHES[split]
    first = find_file(places, f"{names[0]}.png")
    if first is None:
        return None
    label_file = find_file([first.parent], *_LABEL_FILES[split])
    if label_file is None:
        raise missing("cifar10's labels", first.parent, " or ".join(_LABEL_FILES[split]), "")
    labels = _label_array(read_json(label_file), label_file)
    return np.concatenate([read_png_strip(first.parent / f"{name}.png") for name in names]), labels, first


def _label_array(labels: Any, path: Path) -> IntArray:
    array = np.asarray(labels).ravel()
    if array.dtype.kind not in "iu":
        raise ValueError(f"{path}: labels must be integers, got {array.dtype}")
    return array.astype(np.int64)
