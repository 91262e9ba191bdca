"""Boosted models on all rows, however many there are: read block by block, binned once, boosted until a deadline.

A large table is compared on a sample that keeps all rare rows. The boosted models that the comparison chose are
then fitted to all rows with the settings and the number of rounds that it found. Bins come from the sample, so one
pass over the blocks is enough, and what stays in memory is one byte a value.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise._core.checks import BoolArray, IntArray
from equipoise._core.cluster import EngineError
from equipoise.advisor.bags import Bag, FoldModel, Rows
from equipoise.advisor.binned import binned
from equipoise.advisor.engines import Shared, boost_on_cluster, rows_on_cluster
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


def boosting_seconds(bag: Bag, sampled: int, total: int, threads: int) -> float:
    """What one model of a bag will take on ``total`` rows, from what its models took on a sample.

    Parameters
    ----------
    bag : Bag
        Of boosted models.
    sampled, total : int
        Rows of the sample and in all.
    threads : int
    """
    grown = sum(model.estimator.booster_.current_iteration() for model in bag.models)
    rows = sampled * (1 - 1 / max(len(bag.models) // bag.repeats, 2))
    rounds = bag.models[0].estimator.rounds_
    return bag.seconds / (grown * rows) * rounds * total / _speed(threads)


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
        y = np.concatenate([block.y for block in self.blocks])
        kept, fitted, failure = np.empty(0, dtype=np.int64), list[Bag](), ""
        try:
            limit, fit_to = self._way(bags, y, context, deadline)
        except EngineError as error:
            return [], _note(len(y), 0, [], f"{error}.")
        least, seconds = len(self.sample), 0.0  # of a row; how busy a cluster is shows when it has begun
        if self.engine == "local":
            seconds = SAFETY * boosting_seconds(bags[0], least, len(y), context.threads) / len(y)
        if limit < least:
            return [], _note(
                len(y), 0, [], "fitting it to more rows would have taken more memory than there is."
            )
        while len(kept) < len(y):  # as many rows as there is time for, by what the rows before took
            left = max(deadline - time.monotonic(), 0.0)
            most = min(limit, max(int(left / max(seconds, 1e-12)), least))
            if most < min(_WORTH_A_FIT * len(kept), len(y)):
                break
            more = thin(y, np.arange(len(y)), most, context.seed)
            started = time.monotonic()
            try:
                again, done = fit_to(more)
            except EngineError as error:
                failure = f"{error}."
                break
            seconds = SAFETY * (time.monotonic() - started) / (max(done, 1e-3) * len(more))
            if again:
                kept, fitted = more, again
            elif fitted or deadline - time.monotonic() < seconds * least:
                break  # what was fitted before is better than half a model
        return fitted, _note(len(y), len(kept), fitted, failure)

    def _way(
        self, bags: Sequence[Bag], y: IntArray, context: Context, deadline: float
    ) -> tuple[int, Callable[[IntArray], tuple[list[Bag], float]]]:
        """The most rows that memory holds, and what fits the bags to some rows, here or on a cluster.

        It returns the bags, and the share of the first one's rounds that there was time for.
        """
        if self.engine != "local":
            limit = rows_on_cluster(self.engine, self.encoder.n_features_out_)
            return limit, lambda kept: self._fitted_on_cluster(bags[0], y, kept, context, deadline)
        reference = self.sample.binned("trees", _unfitted(bags[0], context))
        return self.most, lambda kept: self._fitted_here(bags, y, kept, reference, context, deadline)

    def _fitted_here(
        self,
        bags: Sequence[Bag],
        y: IntArray,
        kept: IntArray,
        reference: Any,
        context: Context,
        deadline: float,
    ) -> tuple[list[Bag], float]:
        """The bags that were fitted to some of the rows in time, in their order."""
        data = binned(self._rows(kept), self.encoder, reference)
        fitted: list[Bag] = []
        for bag in bags:
            expected = SAFETY * boosting_seconds(bag, len(self.sample), len(kept), context.threads)
            if fitted and time.monotonic() + expected > deadline:
                break
            started = time.monotonic()
            made = _unfitted(bag, context).fit_dataset(data, self.sample.n_classes, deadline)
            done = made.rounds_ / bag.models[0].estimator.rounds_
            if done < ENOUGH:
                return fitted, 1.0 if fitted else done
            fitted.append(self._as_bag(bag, made, y[kept], started))
        return fitted, 1.0

    def _fitted_on_cluster(
        self, bag: Bag, y: IntArray, kept: IntArray, context: Context, deadline: float
    ) -> tuple[list[Bag], float]:
        started = time.monotonic()
        shared = Shared(
            _unfitted(bag, context),
            self.encoder,
            self.sample.views["trees"],
            self.sample.y,
            self.sample.n_classes,
        )
        rows = [(block, own) for block, own in self._rows(kept) if own.any()]
        wanted = shared.trees.rounds
        made = boost_on_cluster(self.engine, shared, rows, deadline, int(ENOUGH * wanted) + 1)
        done = made.rounds_ / wanted
        return ([self._as_bag(bag, made, y[kept], started)] if done >= ENOUGH else []), done

    def _rows(self, kept: IntArray) -> list[tuple[Block, BoolArray]]:
        """The blocks, with which of their rows are among those kept."""
        ends = np.cumsum([len(block.y) for block in self.blocks])
        mask = np.zeros(ends[-1], dtype=bool)
        mask[kept] = True
        return list(zip(self.blocks, np.split(mask, ends[:-1]), strict=True))

    @property
    def totals(self) -> IntArray:
        """Rows of each class in all."""
        assert self.sample.totals is not None
        return self.sample.totals

    def _as_bag(self, bag: Bag, made: LightGBMTrees, y: IntArray, started: float) -> Bag:
        counts = np.bincount(y, minlength=self.sample.n_classes)
        model = FoldModel(made, "trees", counts / counts.sum(), self.totals / self.totals.sum())
        return replace(bag, models=[model], repeats=1, seconds=bag.seconds + time.monotonic() - started)


def _unfitted(bag: Bag, context: Context) -> LightGBMTrees:
    """The bag's settings, with the number of rounds that it found."""
    made: LightGBMTrees = bag.treatment.build(context, **bag.settings)
    return made.set_params(rounds=max(1, bag.models[0].estimator.rounds_))


def _note(total: int, kept: int, fitted: Sequence[Bag], failure: str) -> str:
    if not fitted:
        why = failure or "fitting it to all rows would have taken longer than the budget."
        return f"The delivered model is the one that was compared: {why}"
    names = " and ".join(bag.treatment.summary for bag in fitted)
    if kept == total:
        return f"The delivered model ({names}) was fitted to all {total:,} rows."
    return (
        f"The delivered model ({names}) was fitted to {kept:,} of {total:,} rows, all of the rare classes and a "
        "part of the others, with the class shares corrected: all rows would have taken longer than the budget, "
        "or more memory than there is."
    )
