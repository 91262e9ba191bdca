"""Boosted models on all rows, however many there are: read block by block, binned once, boosted until a deadline.

A large table is compared on a sample that keeps all rare rows. The boosted models that the comparison chose are
then fitted to all rows with the settings and the number of rounds that it found. Bins come from the sample, so one
pass over the blocks is enough, and what stays in memory is one byte a value.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import lightgbm as lgb
import numpy as np

from equipoise._core.checks import BoolArray, IntArray
from equipoise.advisor.bags import Bag, FoldModel, Rows
from equipoise.advisor.treatments._boosted import LightGBMTrees
from equipoise.advisor.treatments._contract import Context
from equipoise.datasets.blocks import Block
from equipoise.datasets.thinning import thin

SAFETY = 1.3
_EFFICIENCY = 0.7  # of each further thread
ENOUGH = 0.8  # of the rounds, for a model on all rows to replace those on the sample
_WORTH_A_FIT = 1.5  # times as many rows as before
PROBE_ROWS, PROBE_ROUNDS, USUAL_ROUNDS = 40_000, 10, 200


def takes_all_rows(bag: Bag) -> bool:
    """Whether a bag's models can be fitted block by block."""
    return isinstance(bag.models[0].estimator, LightGBMTrees)


def expected_seconds(rows: Rows, context: Context, total: int) -> float:
    """About what one boosted model on all rows will take, from a short fit to a few of them."""
    few = thin(rows.y, np.arange(len(rows)), PROBE_ROWS, context.seed)
    probe = LightGBMTrees(rounds=PROBE_ROUNDS, categories=context.categories, random_state=context.seed)
    started = time.monotonic()
    probe.fit(rows.views["trees"][few], rows.y[few])
    spent = time.monotonic() - started
    return SAFETY * spent * (total / len(few)) * (USUAL_ROUNDS / PROBE_ROUNDS) / _speed(context.threads)


def _speed(threads: int) -> float:
    return 1 + _EFFICIENCY * (threads - 1)


@dataclass(frozen=True)
class AllRows:
    """All rows of a large table, and the sample of them that models were compared on.

    Attributes
    ----------
    blocks : sequence of Block
    encoder : TableEncoder
        Of the trees' view, as fitted to the sample.
    sample : Rows
    most : int
        The most rows that fit into memory as bins.
    engine : str
        ``local``, or the address of a Dask cluster whose workers can read the blocks.
    """

    blocks: Sequence[Block]
    encoder: Any
    sample: Rows
    most: int = 10**12
    engine: str = "local"

    def fit(self, bags: Sequence[Bag], context: Context, deadline: float) -> tuple[list[Bag], str]:
        """Fit the bags that there is time for, and say what was done.

        Parameters
        ----------
        bags : sequence of Bag
            The most important first.
        context : Context
        deadline : float
            A time of :func:`time.monotonic`.

        Returns
        -------
        list of Bag, str
            Bags of one model each in place of those that were fitted again, and a note.
        """
        if self.engine != "local":
            return self._fit_on_cluster(bags[0], context)
        y = np.concatenate([block.y for block in self.blocks])
        reference = self._reference(context)
        seconds = SAFETY * self._seconds(bags[0], len(y), context.threads) / len(y)  # a row
        most, kept, fitted = len(self.sample), np.empty(0, dtype=np.int64), list[Bag]()
        while len(kept) < len(y):  # as many rows as there is time for, by what the rows before took
            left = max(deadline - time.monotonic(), 0.0)
            most = min(self.most, max(int(left / max(seconds, 1e-12)), most))
            if most < min(_WORTH_A_FIT * len(kept), len(y)):
                break
            more = thin(y, np.arange(len(y)), most, context.seed)
            started = time.monotonic()
            again = self._fitted_bags(bags, y, more, reference, context, deadline)
            if not again:
                break  # the time was up: what was fitted before is better than half a model
            kept, fitted = more, again
            seconds = SAFETY * (time.monotonic() - started) / len(kept)
        return fitted, _note(len(y), len(kept), fitted)

    def _fitted_bags(
        self,
        bags: Sequence[Bag],
        y: IntArray,
        kept: IntArray,
        reference: Any,
        context: Context,
        deadline: float,
    ) -> list[Bag]:
        """The bags that were fitted to some of the rows in time, in their order."""
        data = self._dataset(y, kept, reference, context)
        fitted: list[Bag] = []
        for bag in bags:
            expected = SAFETY * self._seconds(bag, len(kept), context.threads)
            if fitted and time.monotonic() + expected > deadline:
                break
            again = self._fitted(bag, data, y[kept], context, deadline)
            if again.models[0].estimator.rounds_ < ENOUGH * bag.models[0].estimator.rounds_:
                break
            fitted.append(again)
        return fitted

    def _seconds(self, bag: Bag, total: int, threads: int) -> float:
        """What boosting on all rows will take, from what the bag's models took on the sample."""
        grown = sum(model.estimator.booster_.current_iteration() for model in bag.models)
        rows = len(self.sample) * (1 - 1 / max(len(bag.models) // bag.repeats, 2))
        rounds = bag.models[0].estimator.rounds_
        return bag.seconds / (grown * rows) * rounds * total / _speed(threads)

    def _reference(self, context: Context) -> Any:
        X = self.sample.views["trees"]
        made = LightGBMTrees(categories=context.categories, threads=context.threads)
        return made.dataset(X, self.sample.y).construct()

    def _dataset(self, y: IntArray, kept: IntArray, reference: Any, context: Context) -> Any:
        masks = zip(self.blocks, self._masks(kept), strict=True)
        blocks: list[Any] = [_Encoded(block, own, self.encoder) for block, own in masks if own.any()]
        return lgb.Dataset(blocks, y[kept], reference=reference, params=reference.params).construct()

    def _masks(self, kept: IntArray) -> list[BoolArray]:
        """Which rows of each block are among those kept."""
        ends = np.cumsum([len(block.y) for block in self.blocks])
        mask = np.zeros(ends[-1], dtype=bool)
        mask[kept] = True
        return np.split(mask, ends[:-1])

    def _fitted(self, bag: Bag, data: Any, y: IntArray, context: Context, deadline: float) -> Bag:
        started = time.monotonic()
        made = _unfitted(bag, context)
        made.fit_dataset(data, self.sample.n_classes, deadline)
        return self._as_bag(bag, made, np.bincount(y, minlength=self.sample.n_classes), started)

    def _fit_on_cluster(self, bag: Bag, context: Context) -> tuple[list[Bag], str]:
        from equipoise.advisor.engines import boost_on_cluster, rows_on_cluster

        started = time.monotonic()
        made = _unfitted(bag, context)
        y = np.concatenate([block.y for block in self.blocks])
        most = max(rows_on_cluster(self.engine, self.encoder.n_features_out_), len(self.sample))
        kept = thin(y, np.arange(len(y)), most, context.seed)
        n_classes = self.sample.n_classes
        boost_on_cluster(self.engine, made, self.blocks, self._masks(kept), self.encoder, n_classes)
        fitted = [self._as_bag(bag, made, np.bincount(y[kept], minlength=n_classes), started)]
        return fitted, _note(len(y), len(kept), fitted)

    @property
    def totals(self) -> IntArray:
        """Rows of each class in all."""
        assert self.sample.totals is not None
        return self.sample.totals

    def _as_bag(self, bag: Bag, made: LightGBMTrees, counts: IntArray, started: float) -> Bag:
        model = FoldModel(made, "trees", counts / counts.sum(), self.totals / self.totals.sum())
        return replace(bag, models=[model], repeats=1, seconds=bag.seconds + time.monotonic() - started)


def _unfitted(bag: Bag, context: Context) -> LightGBMTrees:
    """The bag's settings, with the number of rounds that it found."""
    made: LightGBMTrees = bag.treatment.build(context, **bag.settings)
    return made.set_params(rounds=max(1, bag.models[0].estimator.rounds_))


class _Encoded(lgb.Sequence):
    """One block of rows, read and encoded when LightGBM asks for it."""

    def __init__(self, block: Block, kept: Any, encoder: Any) -> None:
        self.block, self.kept, self.encoder = block, kept, encoder
        self.batch_size = int(kept.sum())

    def __len__(self) -> int:
        return self.batch_size

    def __getitem__(self, index: Any) -> Any:
        """The whole block, which is what LightGBM asks for with this batch size."""
        rows = self.block.read()
        encoded = self.encoder.transform(rows)
        return np.ascontiguousarray(encoded if self.kept.all() else encoded[self.kept])


def _note(total: int, kept: int, fitted: Sequence[Bag]) -> str:
    if not fitted:
        return (
            "The delivered model is the one that was compared: fitting it to all rows would have taken longer than "
            "the budget."
        )
    names = " and ".join(bag.treatment.summary for bag in fitted)
    if kept == total:
        return f"The delivered model ({names}) was fitted to all {total:,} rows."
    return (
        f"The delivered model ({names}) was fitted to {kept:,} of {total:,} rows, all of the rare classes and a "
        "part of the others, with the class shares corrected: all rows would have taken longer than the budget, "
        "or more memory than there is."
    )
