"""The pairs of classes that are trained on: a reference and its partner, at a small size."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.random import derive_seed

NAMES = (
    "T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
CIFAR_NAMES = ("Airplane", "Automobile", "Bird", "Cat", "Deer", "Dog", "Frog", "Horse", "Ship", "Truck")
REFERENCES = {"fashion-mnist": "Sneaker", "cifar10": "Deer", "cifar10-test": "Deer"}  # of least variance

Labeled = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]


@lru_cache(maxsize=2)
def source(data: str) -> tuple[Any, npt.NDArray[Any], tuple[str, ...]]:
    """All images (n, channels, height, width), their codes, and the names of the classes."""
    from equipoise.datasets import load_cifar10, load_fashion_mnist

    if data != "fashion-mnist":
        found = load_cifar10("train" if data == "cifar10" else "test", pixels="uint8")
        return found.X, np.asarray(found.y), CIFAR_NAMES
    found = load_fashion_mnist("train", pixels="uint8")
    return found.X.reshape(-1, 1, 28, 28), np.asarray(found.y), NAMES


def pair(
    partner: str, share: float, images: int, pixels: int, seed: int, data: str = "fashion-mnist"
) -> Labeled:
    """``images`` of the reference (code 0) and the partner (code 1), the latter's share of them, at ``pixels``²."""
    X, y, names = source(data)
    rng = np.random.default_rng(derive_seed(seed, "pair", partner))
    second = round(share * images)
    chosen = [
        rng.permutation(np.flatnonzero(y == names.index(name)))[:count]
        for name, count in ((REFERENCES[data], images - second), (partner, second))
    ]
    side = X.shape[-1] // pixels
    drawn = X[np.concatenate(chosen)].reshape(images, -1, pixels, side, pixels, side).mean(axis=(3, 5))
    return drawn.astype(np.float64), np.repeat([0, 1], [images - second, second])


def fold(images: npt.NDArray[Any], by: int) -> npt.NDArray[Any]:
    """Squares of ``by``² neighboring pixels become channels: the same numbers on a coarser grid.

    >>> fold(np.arange(16).reshape(1, 1, 4, 4), 2)[0, :, 0, 0]
    array([0, 1, 4, 5])
    """
    n, channels, height, width = images.shape
    cut = images.reshape(n, channels, height // by, by, width // by, by)
    return cut.transpose(0, 1, 3, 5, 2, 4).reshape(n, channels * by * by, height // by, width // by)


def unfold(images: npt.NDArray[Any], channels: int = 1) -> npt.NDArray[Any]:
    """The way back from :func:`fold`.

    >>> x = np.arange(216).reshape(2, 3, 6, 6)
    >>> bool((unfold(fold(x, 3), 3) == x).all())
    True
    """
    n, folded, height, width = images.shape
    by = int(np.sqrt(folded // channels))
    cut = images.reshape(n, channels, by, by, height, width).transpose(0, 1, 4, 2, 5, 3)
    return cut.reshape(n, channels, height * by, width * by)
