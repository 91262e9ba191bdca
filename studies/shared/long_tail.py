"""Long-tailed images: which are trained on, and which judge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.random import derive_seed

THIRTY = ("mnist", "fashion-mnist", "cifar10")
HELD = 5000
"""Validation images, where the training images leave so many over."""

APART = 10
"""Images of each class that are set aside before drawing, where they do not (Wu & Li, section 5.1)."""


@dataclass(frozen=True)
class Images:
    """Training images in an exponential profile, and those on which they are judged."""

    X: Any
    y: Any
    X_judged: Any
    y_judged: Any


@lru_cache(maxsize=2)
def _whole(dataset: str, split: Any, pixels: int) -> tuple[Any, Any]:
    return _thirty(split, pixels) if dataset == "thirty-classes" else _read(dataset, split, pixels)


def _read(dataset: str, split: Any, pixels: int) -> tuple[Any, Any]:
    from equipoise.datasets import load_cifar10, load_cifar100, load_fashion_mnist, load_mnist

    loaders = {
        "mnist": load_mnist, "fashion-mnist": load_fashion_mnist,
        "cifar10": load_cifar10, "cifar100": load_cifar100,
    }  # fmt: skip
    whole = loaders[dataset](split, pixels="uint8")
    return shrink(whole.X, pixels), np.asarray(whole.y)


def _thirty(split: Any, pixels: int) -> tuple[Any, Any]:
    """Digits, clothes and photographs in gray: thirty classes, taken in turn so that each set has head and tail."""
    parts = []
    for place, name in enumerate(THIRTY):
        X, y = _read(name, split, 32 if name == "cifar10" else pixels)
        if name == "cifar10":
            X = shrink(X[:, :, 2:30, 2:30].mean(axis=1, keepdims=True), pixels)
        parts.append((X, len(THIRTY) * y + place))
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def load_images(dataset: str, ratio: float, head: int, pixels: int, seed: int, judge: str) -> Images:
    """``seed`` draws the training images; ``judge`` is ``"test"`` or ``"validation"``, images not trained on."""
    from equipoise.datasets import imbalanced_indices

    X, y = _whole(dataset, "train", pixels)
    if judge == "test":
        rows = imbalanced_indices(y, profile="exponential", ratio=ratio, head=head, random_state=seed)
        return Images(X[rows], y[rows], *_whole(dataset, "test", pixels))
    rng = np.random.default_rng(derive_seed(seed, "validation"))
    rows, held = draw_apart(y, ratio=ratio, head=head, seed=seed, rng=rng, per_class=APART)
    if held is None:
        held = rng.permutation(np.setdiff1d(np.arange(len(y)), rows))[:HELD]
    return Images(X[rows], y[rows], X[held], y[held])


def draw_apart(
    y: npt.NDArray[Any], *, ratio: float, head: int, seed: int, rng: np.random.Generator, per_class: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64] | None]:
    """Training rows in an exponential profile and, if they would use a class up, rows set aside before.

    Where every class has ``per_class`` rows left over, nothing need be set aside, and the second is None. Else
    so many rows of each class go first, and the head class is smaller by as many.
    """
    from equipoise.datasets import imbalanced_indices

    def drawn(labels: npt.NDArray[Any], size: int) -> npt.NDArray[np.int64]:
        return imbalanced_indices(labels, profile="exponential", ratio=ratio, head=size, random_state=seed)

    rows = drawn(y, head)
    left = np.bincount(y) - np.bincount(y[rows], minlength=int(y.max()) + 1)
    if left.min() >= per_class:
        return rows, None
    held = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:per_class] for c in np.unique(y)])
    pool = np.setdiff1d(np.arange(len(y)), held)
    return pool[drawn(y[pool], head - per_class)], held


def shrink(images: npt.ArrayLike, pixels: int) -> npt.NDArray[np.float32]:
    """Means over squares, to ``pixels`` a side.

    >>> shrink(np.ones((3, 1, 28, 28)), 14).shape
    (3, 1, 14, 14)
    """
    x = np.asarray(images, dtype=np.float32)
    n, channels, side, _ = x.shape
    block = side // pixels
    return np.asarray(x.reshape(n, channels, pixels, block, pixels, block).mean(axis=(3, 5)))
