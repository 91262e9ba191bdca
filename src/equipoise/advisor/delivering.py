"""The delivered model of a large table: its boosted models fitted to all rows, at the class shares of all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from equipoise._core.checks import FloatArray, IntArray
from equipoise.advisor.bags import Bag, Rows
from equipoise.advisor.budget import Budget
from equipoise.advisor.ensemble import Stack
from equipoise.advisor.treatments import Context, Treatment
from equipoise.datasets import DataTable
from equipoise.datasets.blocks import ROWS_AT_ONCE, table_blocks

_ROWS_DRAWN, _BLOCKS_DRAWN = 20_000, 4  # of a larger table, to match mean probabilities to the class shares


@dataclass(frozen=True)
class Model:
    """What is delivered: encoders of the columns, bags, and the stack that makes one of them.

    Attributes
    ----------
    encoders : mapping of str to encoder
    bags : list of Bag
    stack : Stack
    """

    encoders: Mapping[str, Any]
    bags: list[Bag]
    stack: Stack

    def proba(self, typed: Any) -> FloatArray:
        """Probabilities at the data's prior, of rows as the schema describes them."""
        wanted: set[str] = {bag.treatment.view for bag in self.bags}
        blocks = []
        for start in range(0, max(len(typed), 1), ROWS_AT_ONCE):
            rows = typed[start : start + ROWS_AT_ONCE]
            views = {view: self.encoders[view].transform(rows) for view in wanted}
            blocks.append(self.stack.proba(np.stack([bag.log_proba(views) for bag in self.bags])))
        return np.concatenate(blocks)


def seconds_for_all_rows(
    rows: Rows, treatments: Sequence[Treatment], context: Context, total: int, threads: int
) -> float:
    """Seconds that the search must leave for a boosted model on all rows, before one was fitted."""
    if not any(treatment.name.startswith("lightgbm") for treatment in treatments):
        return 0.0
    from equipoise.advisor.all_rows import expected_seconds

    return expected_seconds(rows, replace(context, threads=threads), total)


def seconds_for_the_bags(bags: Sequence[Bag], sampled: int, total: int, threads: int) -> float:
    """The same, from what the boosted models took on the sample."""
    from equipoise.advisor.all_rows import SAFETY, boosting_seconds, takes_all_rows

    boosted = [bag for bag in bags if takes_all_rows(bag)]
    return SAFETY * sum(boosting_seconds(bag, sampled, total, threads) for bag in boosted)


def fit_all_rows(
    model: Model, table: DataTable, rows: Rows, context: Context, budget: Budget, engine: str
) -> tuple[Model, set[str], list[str]]:
    """The boosted models again, on all rows instead of the sample; their names, and sentences about it."""
    from equipoise.advisor.all_rows import AllRows, takes_all_rows

    notes = [
        f"Treatments were compared on {len(rows):,} of {table.n_rows:,} rows, all of the rare classes and a "
        "random part of the others. Every figure is corrected to the class shares of all rows."
    ]
    weight = dict(zip([bag.name for bag in model.bags], model.stack.weights, strict=True))
    boosted = sorted([bag for bag in model.bags if takes_all_rows(bag)], key=lambda bag: -weight[bag.name])
    if not boosted:
        notes.append(
            "The delivered model was fitted to these rows. Only LightGBM's models can be fitted to all rows of a "
            "large table, and it has none of them."
        )
        return model, set(), notes
    everything = AllRows(table_blocks(table), model.encoders["trees"], rows)
    if table.parts is not None:
        most = table.parts.memory // (3 * rows.views["trees"].shape[1])
        everything = replace(everything, most=most, engine=engine)
    fitted, note = everything.fit(boosted, context, budget.deadline())
    again = {bag.name: bag for bag in fitted}
    notes.append(note)
    if again and len(again) < len(model.bags):
        notes.append("The other models of the ensemble were fitted to the rows that were compared.")
    return replace(model, bags=[again.get(bag.name, bag) for bag in model.bags]), set(again), notes


def match_prior(
    model: Model,
    table: DataTable,
    rows: Rows,
    again: set[str],
    held_out: FloatArray,
    truth: IntArray,
    seed: int,
) -> Model:
    """Shift the stack so that the mean probabilities over all rows are the class shares.

    The stack was fitted to models of single folds on the sample; their mean, or a model of all rows, answers a
    little higher or lower. A model of all rows knows its mean on the rows that it saw. Models of the sample are
    judged by rows drawn from the whole table, and for classes of which the sample holds all rows by the
    held-out predictions.
    """
    members = zip(model.bags, model.stack.weights, strict=True)
    share = sum(weight for bag, weight in members if bag.name in again)
    drawn = (rows.stands_for > 1.5) | (share > 0.5 * model.stack.weights.sum())
    held = ~drawn[truth]
    proba, codes = [held_out[held]], [truth[held]]
    rng, blocks = np.random.default_rng(seed), table_blocks(table)
    for number in np.unique(np.linspace(0, len(blocks) - 1, _BLOCKS_DRAWN).astype(int)):
        y = blocks[number].y
        index = np.flatnonzero(drawn[y])
        index = np.sort(rng.choice(index, min(len(index), _ROWS_DRAWN // _BLOCKS_DRAWN), replace=False))
        found = blocks[number].read()
        proba.append(model.proba(found.iloc[index] if isinstance(found, pd.DataFrame) else found[index]))
        codes.append(y[index])
    stack = model.stack.matched(np.concatenate(proba), np.concatenate(codes), table.prior)
    return replace(model, stack=stack)
