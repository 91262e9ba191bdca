"""Folds: stratified, by groups that must stay together, or the future after the past."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise._core.checks import FloatArray, IntArray
from equipoise._core.random import derive_seed


@dataclass(frozen=True)
class Fold:
    """Rows to fit on and rows to predict."""

    train: IntArray
    test: IntArray


def make_folds(
    y: IntArray,
    n_splits: int,
    seed: int,
    *,
    groups: IntArray | None = None,
    time: FloatArray | None = None,
) -> list[Fold]:
    """Folds of one repeat.

    Parameters
    ----------
    y : array of int
    n_splits : int
        Fewer are made where the rarest class has fewer rows (or groups).
    seed : int
    groups : array of int, optional
        Rows of one group are never on both sides.
    time : array, optional
        Each fold trains on the past and predicts the block of rows that follows it; the first block is only
        trained on.

    Returns
    -------
    list of Fold
    """
    if time is not None:
        return _forward(y, time, n_splits)
    if groups is not None:
        from sklearn.model_selection import StratifiedGroupKFold

        if np.all(groups == groups[0]):
            raise ValueError("all rows belong to one group: none can be held out; name other groups, or none")
        most = min(len(np.unique(groups[y == c])) for c in np.unique(y))
        splitter = StratifiedGroupKFold(max(2, min(n_splits, most)), shuffle=True, random_state=seed % 2**32)
        return [Fold(train, test) for train, test in splitter.split(np.zeros(len(y)), y, groups)]
    return _stratified(y, n_splits, seed)


def _stratified(y: IntArray, n_splits: int, seed: int) -> list[Fold]:
    """Each class dealt evenly; a class with fewer rows than folds is in as many test parts as it has rows."""
    if np.bincount(y).max() < 2:
        raise ValueError(
            f"no class has two rows, got {len(y)} rows of as many classes: nothing can be compared"
        )
    rng = np.random.default_rng(derive_seed(seed, "folds"))
    block = np.empty(len(y), dtype=np.int64)
    start = 0
    for code in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == code))
        block[rows] = (np.arange(len(rows)) + start) % n_splits
        start += len(rows)
    return [
        Fold(np.flatnonzero(block != b), np.flatnonzero(block == b))
        for b in range(n_splits)
        if (block == b).any()
    ]


def _forward(y: IntArray, time: FloatArray, n_splits: int) -> list[Fold]:
    order = np.argsort(time, kind="stable")
    edges = np.unique(time[order[np.linspace(0, len(y) - 1, n_splits + 2).astype(int)[1:-1]]])
    folds = []
    for low, high in zip(edges, [*edges[1:], np.inf], strict=True):
        train, test = np.flatnonzero(time < low), np.flatnonzero((time >= low) & (time < high))
        if len(test) and len(np.unique(y[train])) == len(np.unique(y)):
            folds.append(Fold(train, test))
    if not folds:
        raise ValueError(
            "the time column leaves no past in which every class occurs: use fewer classes or drop --time"
        )
    return folds
