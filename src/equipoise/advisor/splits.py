"""Folds: stratified, by groups that must stay together, or the future after the past."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from equipoise._core.checks import FloatArray, IntArray
from equipoise._core.random import derive_seed

_SHUFFLES = 10


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
        trained on. Where a class would not be in both, the blocks follow the times of the rarest class.

    Returns
    -------
    list of Fold
    """
    spread = spread_classes(y, groups, time)
    if time is not None:
        return _forward(y, time, n_splits, spread, groups)
    if groups is not None:
        return _grouped(y, groups, n_splits, seed, spread)
    return _stratified(y, n_splits, seed)


def spread_classes(y: IntArray, groups: IntArray | None, time: FloatArray | None) -> IntArray:
    """Codes of the classes that can be both learned and judged: those in two rows, groups or moments at least."""
    units = groups if time is None else time
    return np.array(
        [
            c
            for c in np.unique(y)
            if len(np.unique(np.flatnonzero(y == c) if units is None else units[y == c])) > 1
        ],
        dtype=np.int64,
    )


def judged_classes(y: IntArray, folds: list[Fold]) -> IntArray:
    """Codes of the classes with rows that are held out."""
    return np.unique(np.concatenate([y[fold.test] for fold in folds] or [y[:0]]))


def _lacking(y: IntArray, folds: list[Fold], spread: IntArray) -> int:
    """How often a class that could be learned is in none of the rows that a fold is fitted to."""
    return sum(len(np.setdiff1d(spread, y[fold.train])) for fold in folds)


def _grouped(y: IntArray, groups: IntArray, n_splits: int, seed: int, spread: IntArray) -> list[Fold]:
    """Whole groups, the classes as even as they allow; of some shuffles the one that fits best to every class."""
    from sklearn.model_selection import StratifiedGroupKFold

    most = min((len(np.unique(groups[y == c])) for c in spread), default=2)
    best: list[Fold] = []
    for shuffle in range(_SHUFFLES):
        splitter = StratifiedGroupKFold(
            max(2, min(n_splits, most)), shuffle=True, random_state=(seed + shuffle) % 2**32
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            split = splitter.split(np.zeros(len(y)), y, groups)
            folds = [Fold(train, test) for train, test in split if len(train) and len(test)]
        if not best or _lacking(y, folds, spread) < _lacking(y, best, spread):
            best = folds
        if not _lacking(y, best, spread):
            break
    return best


def _stratified(y: IntArray, n_splits: int, seed: int) -> list[Fold]:
    """Each class dealt evenly; a class with fewer rows than folds is in as many test parts as it has rows."""
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


def _forward(
    y: IntArray, time: FloatArray, n_splits: int, spread: IntArray, groups: IntArray | None
) -> list[Fold]:
    rarest = y == spread[np.bincount(y)[spread].argmin()]
    some: list[Fold] = []
    for chosen in (np.ones(len(y), dtype=bool), rarest):
        folds = _forward_folds(y, time, np.sort(time[chosen]), n_splits, spread, groups)
        judged = judged_classes(y, folds)
        if np.isin(spread, judged).all():
            return folds
        some = some or (folds if len(judged) > 1 else [])
    if some:
        return some
    raise ValueError(
        "the time column leaves no past in which every class occurs before a future in which it does too: "
        + ("name no groups beside the time, or " if groups is not None else "")
        + "merge classes, or judge without the time"
    )


def _forward_folds(
    y: IntArray,
    time: FloatArray,
    moments: FloatArray,
    n_splits: int,
    spread: IntArray,
    groups: IntArray | None,
) -> list[Fold]:
    """Blocks that begin at so many of the sorted moments; a group that is judged on is not learned from."""
    inner = np.linspace(0, len(moments), n_splits + 2).astype(int)[1:-1].clip(max=len(moments) - 1)
    edges = np.unique(moments[inner])
    folds = []
    for low, high in zip(edges, [*edges[1:], np.inf], strict=True):
        past, test = time < low, np.flatnonzero((time >= low) & (time < high))
        if groups is not None:
            past &= ~np.isin(groups, groups[test])
        train = np.flatnonzero(past)
        if len(test) and np.isin(spread, y[train]).all():
            folds.append(Fold(train, test))
    return folds
