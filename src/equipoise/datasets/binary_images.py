"""The two-class image sets of Lieberman et al., by name and imbalance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import check_choice
from equipoise.datasets.cifar import CIFAR10_CLASSES, CIFAR100_CLASSES, load_cifar10, load_cifar100
from equipoise.datasets.dataset import Dataset
from equipoise.datasets.home import PathLike, data_home, find_file, folders, missing
from equipoise.datasets.image_files import ImageFiles
from equipoise.datasets.images import Pixels
from equipoise.datasets.profiles import class_counts

_home = data_home  # the loaders' argument has the same name
_ANIMALS = ("bird", "cat", "deer", "dog", "frog", "horse")
_VEHICLES = ("airplane", "automobile", "ship", "truck")
_FURNITURE = ("bed", "chair", "couch", "table", "wardrobe")
_ELECTRONICS = ("clock", "keyboard", "lamp", "telephone", "television")


@dataclass(frozen=True)
class BinaryImageSet:
    """Which classes are merged into the frequent and the rare class, and whose counts they have."""

    source: Literal["cifar10", "cifar100", "melanoma", "aptos"]
    profile: str
    majority: tuple[str, ...]
    minority: tuple[str, ...]


_BINARY_IMAGE_SETS: Mapping[str, BinaryImageSet] = MappingProxyType(
    {
        "automobile/truck": BinaryImageSet("cifar10", "cifar10-pair", ("automobile",), ("truck",)),
        "automobile/deer": BinaryImageSet("cifar10", "cifar10-pair", ("automobile",), ("deer",)),
        "animal/vehicle": BinaryImageSet("cifar10", "cifar10-animal-vehicle", _ANIMALS, _VEHICLES),
        "household": BinaryImageSet("cifar100", "cifar100-household", _FURNITURE, _ELECTRONICS),
        "melanoma": BinaryImageSet("melanoma", "melanoma", ("benign",), ("melanoma",)),
        "aptos": BinaryImageSet("aptos", "aptos", ("no retinopathy",), ("retinopathy",)),
    }
)
"""The paper's sets: the frequent class is named first, as the authors do."""


def load_binary_images(
    name: str,
    split: Literal["train", "test"] = "train",
    *,
    beta: int = 100,
    seed: int = 0,
    pixels: Pixels = "float32",
    data_home: PathLike | None = None,
) -> Dataset:
    """A CIFAR set of Lieberman et al., Table 12: class 0 is frequent, class 1 is subsampled to 1/β in training.

    Parameters
    ----------
    name : str
        ``"automobile/truck"``, ``"automobile/deer"``, ``"animal/vehicle"`` or ``"household"``; the medical sets
        are read from disk by :func:`find_binary_image_files`.
    split : {"train", "test"}
        The test set is not subsampled.
    beta : {10, 100, 200}
        The imbalance ratio of the training set.
    seed : int
        Which rare images are kept.
    pixels : {"float32", "uint8"}
        As for :func:`~equipoise.datasets.load_cifar10`.
    data_home : path, optional
        As for :func:`~equipoise.datasets.load_cifar10`.

    Returns
    -------
    Dataset
        The images with codes 0 and 1.
    """
    known = [key for key, value in _BINARY_IMAGE_SETS.items() if value.source.startswith("cifar")]
    chosen = _BINARY_IMAGE_SETS[check_choice("name", name, known)]
    check_choice("beta", beta, [10, 100, 200])
    load = load_cifar10 if chosen.source == "cifar10" else load_cifar100
    classes = CIFAR10_CLASSES if chosen.source == "cifar10" else CIFAR100_CLASSES
    data = load(split, pixels=pixels, data_home=data_home)
    code = np.full(len(classes), -1)
    for label, names in enumerate((chosen.majority, chosen.minority)):
        code[[classes.index(one) for one in names]] = label
    y = code[data.y]
    rows = np.flatnonzero(y >= 0)
    if split == "train":
        rows = _subsampled(y, rows, int(class_counts(f"{chosen.profile}-beta{beta}")[1]), seed)
    return Dataset(data.X[rows], y[rows], name, ("/".join(chosen.majority), "/".join(chosen.minority)))


def find_binary_image_files(
    name: str,
    split: Literal["train", "test"] = "train",
    *,
    beta: int = 100,
    seed: int = 0,
    side: int = 256,
    data_home: PathLike | None = None,
) -> tuple[ImageFiles, npt.NDArray[np.int64]]:
    """The melanoma set (SIIM-ISIC 2020 with 2019) or APTOS 2019, unread on disk, with codes 0 and 1.

    The user brings the competitions' files: ``melanoma/train.csv`` with ``image_name`` and ``target``, in which the
    pictures of 2019 are listed too, or ``aptos/train.csv`` with ``id_code`` and ``diagnosis``, and the pictures
    anywhere under that folder. A seeded four fifths of each class are training rows, of which the rare class is
    subsampled to 1/β.

    Parameters
    ----------
    name : {"melanoma", "aptos"}
        The set.
    split : {"train", "test"}
        The test set is not subsampled.
    beta : {10, 100, 200}
        The imbalance ratio of the training set.
    seed : int
        Decides the split and which rare pictures are kept.
    side : int
        Height and width that pictures are scaled to.
    data_home : path, optional
        The folder of data files; see :func:`~equipoise.datasets.data_home`.

    Returns
    -------
    ImageFiles
        The pictures, which are decoded when rows are asked for.
    array of int
        Their codes.

    Notes
    -----
    The melanoma row of Table 12 needs 58,491 pictures of 58,457, and the set's own β is 10.4, not 11.4. The
    counts of the files at hand are used.
    """
    known = [key for key, value in _BINARY_IMAGE_SETS.items() if not value.source.startswith("cifar")]
    check_choice("name", name, known)
    check_choice("beta", beta, [10, 100, 200])
    home = _home(data_home)
    table = find_file(folders(home, name), "train.csv")
    if table is None:
        advice = f"Bring train.csv and the pictures of the {name} competition to {home / name}."
        raise missing(name, home, "train.csv", advice)
    from equipoise.datasets.reading import read_frame

    frame = read_frame(table)
    key, target = ("image_name", "target") if name == "melanoma" else ("id_code", "diagnosis")
    y = (frame[target].to_numpy(dtype=np.float64) > 0).astype(np.int64)
    rng = np.random.default_rng(seed)
    pools = [rng.permutation(np.flatnonzero(y == label)) for label in (0, 1)]
    cuts = [round(0.8 * len(pool)) for pool in pools]
    parts = [pool[:cut] if split == "train" else pool[cut:] for pool, cut in zip(pools, cuts, strict=True)]
    if split == "train":
        parts[1] = parts[1][: max(1, round(len(parts[0]) / beta))]
    rows = np.sort(np.concatenate(parts))
    named = {
        file.stem: file
        for file in table.parent.rglob("*")
        if file.suffix.lower() in (".jpg", ".jpeg", ".png")
    }
    wanted = [str(text) for text in frame[key].to_numpy()[rows]]
    absent = next((text for text in wanted if text not in named), None)
    if absent is not None:
        raise FileNotFoundError(f"no picture named {absent} under {table.parent}, which {table} lists")
    return ImageFiles([named[text] for text in wanted], side), y[rows]


def _subsampled(
    y: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], n_rare: int, seed: int
) -> npt.NDArray[np.int64]:
    rare = rows[y[rows] == 1]
    kept = np.random.default_rng(seed).permutation(rare)[:n_rare]
    return np.sort(np.concatenate([rows[y[rows] == 0], kept]))
