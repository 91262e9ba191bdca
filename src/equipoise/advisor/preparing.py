"""From a table to what treatments are compared on: a sample of its rows, encoded, and their folds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise._core.random import derive_seed
from equipoise.advisor.bags import Rows
from equipoise.advisor.splits import Fold, make_folds
from equipoise.advisor.treatments import Context
from equipoise.datasets import DataTable, describe_near_copies, find_near_copies
from equipoise.datasets.encoding import TableEncoder
from equipoise.datasets.image_features import ImageEncoder
from equipoise.datasets.thinning import sample_rows

_MOST_VALUES_FOR_COPIES = 20_000_000  # in a larger table near-copies are not looked for


@dataclass(frozen=True)
class Prepared:
    """What the treatments are compared on.

    Attributes
    ----------
    sample : DataTable
        The rows that they see.
    encoders : dict of str to encoder
        What turned the columns into numbers, one for trees and one for all others.
    rows : Rows
        The encoded rows.
    context : Context
        What a treatment may know about them.
    folds : callable
        The folds of a repeat, by its number.
    """

    sample: DataTable
    encoders: dict[str, Any]
    rows: Rows
    context: Context
    folds: Callable[[int], list[Fold]]


def prepare(table: DataTable, most: int, seed: int, memory: float = math.inf) -> Prepared:
    """Draw at most ``most`` rows, the rare classes first, and encode them; ``memory`` is that of a worker."""
    sample = sample_rows(table, most, derive_seed(seed, "sample") % 2**31)
    sample = _with_copies_together(sample)
    encoders = {view: _encoder(table, view) for view in ("trees", "linear")}
    # Without the labels: an encoding by class shares would tell a row about others of its group.
    views = {view: e.fit_transform(sample.X) for view, e in encoders.items()}
    context = Context(
        seed=seed % 2**31, smallest=int(table.counts[table.counts > 0].min()), n_rows=len(sample),
        n_columns=views["linear"].shape[1], n_classes=table.n_classes,
        categories=tuple(map(int, encoders["trees"].categorical_features_)), image_shape=table.image_shape,
        memory=memory,
    )  # fmt: skip
    n_splits = _splits(table)

    def folds(repeat: int) -> list[Fold]:
        own = derive_seed(seed, "repeat", repeat)
        return make_folds(sample.y, n_splits, own, groups=sample.groups, time=sample.time)

    return Prepared(
        sample, encoders, Rows(views, sample.y, table.n_classes, sample.class_totals), context, folds
    )


def _with_copies_together(table: DataTable) -> DataTable:
    """Near-copies as groups where nothing else is given: a copy in both parts of a split flatters every figure."""
    if (
        table.groups is not None
        or table.time is not None
        or table.image_shape is not None
        or len(table) * len(table.kinds) > _MOST_VALUES_FOR_COPIES
    ):
        return table
    groups = find_near_copies(table)
    if groups is None:
        return table
    fewest = min(len(np.unique(groups[table.y == c])) for c in np.unique(table.y))
    told = describe_near_copies(table, groups)
    if fewest < _splits(table):
        return table.with_notes(told)
    return replace(table, groups=groups).with_notes(
        f"{told} Copies were kept on one side of every split, so that the figures are those of new rows."
    )


def _encoder(table: DataTable, view: str) -> Any:
    """What turns the columns into numbers: features of pictures, or the columns themselves."""
    if table.image_shape is not None:
        return ImageEncoder(table.image_shape, for_trees=view == "trees")
    return TableEncoder(table.kinds, for_trees=view == "trees")


def _splits(table: DataTable) -> int:
    """Five folds, fewer where the rarest class is too small to be in all of them."""
    return int(np.clip(table.counts[table.counts > 0].min(), 2, 5))
