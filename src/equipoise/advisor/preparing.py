"""From a table to what treatments are compared on: a sample of its rows, encoded, and their folds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise._core.checks import IntArray
from equipoise._core.random import derive_seed
from equipoise.advisor.bags import Rows
from equipoise.advisor.splits import Fold, judged_classes, make_folds, spread_classes
from equipoise.advisor.treatments import Context
from equipoise.datasets import DataTable, describe_near_copies, find_near_copies
from equipoise.datasets.encoding import TableEncoder
from equipoise.datasets.image_features import ImageEncoder
from equipoise.datasets.thinning import sample_rows
from equipoise.diagnosis import diagnose

_MOST_VALUES_FOR_COPIES = 20_000_000  # in a larger table near-copies and leaks are not looked for


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
    sample = _with_classes_checked(_with_copies_together(sample))
    encoders = {view: _encoder(table, view) for view in ("trees", "linear")}
    # Without the labels: an encoding by class shares would tell a row about others of its group.
    views = {view: e.fit_transform(sample.X) for view, e in encoders.items()}
    context = Context(
        seed=seed % 2**31, smallest=int(table.counts[table.counts > 0].min()), n_rows=len(sample),
        n_columns=views["linear"].shape[1], n_classes=table.n_classes,
        categories=tuple(map(int, encoders["trees"].categorical_features_)), image_shape=table.image_shape,
        memory=memory,
    )  # fmt: skip
    n_splits = _splits(sample)

    def folds(repeat: int) -> list[Fold]:
        own = derive_seed(seed, "repeat", repeat)
        return make_folds(sample.y, n_splits, own, groups=sample.groups, time=sample.time)

    if sample.time is not None:
        sample = _with_future_checked(sample, folds(0))
    return Prepared(
        sample, encoders, Rows(views, sample.y, table.n_classes, sample.class_totals), context, folds
    )


def with_leaks_said(table: DataTable) -> DataTable:
    """Say which column gives the target away, or that the rare rows look resampled."""
    if table.image_shape is not None or len(table) * len(table.kinds) > _MOST_VALUES_FOR_COPIES:
        return table
    found = diagnose(table, questions=["leakage"], verbose=False)["leakage"]
    return table.with_notes(found.answer) if found.level == "warning" else table


def _with_classes_checked(table: DataTable) -> DataTable:
    """Refuse a table in which nothing can be both learned and judged; say which classes cannot be."""
    if table.groups is not None and np.all(table.groups == table.groups[0]):
        raise ValueError("all rows belong to one group: none can be held out; name other groups, or none")
    spread = spread_classes(table.y, table.groups, table.time)
    alone = np.setdiff1d(np.unique(table.y), spread)
    if not len(alone):
        return table
    what = "only one row"
    if table.counts[alone].max() > 1:
        what = "rows in only one group" if table.time is None else "rows at only one time"
    if len(spread) < 2:
        raise ValueError(
            f"{_named(table, alone)} {what}: a model that has learned it cannot be judged on it; "
            "collect more of it, merge it with another class, or leave it out"
        )
    return table.with_notes(
        f"{_named(table, alone)} {what}: a model that has learned it is never judged on it. The "
        "figures show it as never found, averages over classes are too low by that, and where every class counts "
        "the same the others pay for it: leave it out, or merge it with another class."
    )


def _with_future_checked(table: DataTable, folds: list[Fold]) -> DataTable:
    """Say which classes have no row in the future that models are judged on."""
    absent = np.setdiff1d(np.unique(table.y), judged_classes(table.y, folds))
    if not len(absent):
        return table
    return table.with_notes(
        f"{_named(table, absent)} no row late enough to be judged on: averages over classes leave "
        "it out, and how well it is found is not known."
    )


def _named(table: DataTable, codes: IntArray) -> str:
    """Some classes as the subject of a sentence."""
    more = f" and {len(codes) - 5} more" if len(codes) > 5 else ""
    labels = ", ".join(table.label(code) for code in codes[:5])
    return f"The class {labels} has" if len(codes) == 1 else f"Each of the classes {labels}{more} has"


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
    """Five folds, fewer where the rarest class that can be judged is too small to be in all of them."""
    counts = table.counts[spread_classes(table.y, table.groups, table.time)]
    return int(np.clip(counts.min(initial=5), 2, 5))
