"""What a search comes to: the stack of its bags, every figure on held-out rows, and what is recommended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from equipoise._core.checks import FloatArray, IntArray
from equipoise.advisor.bags import Bag, Rows, fit_fold
from equipoise.advisor.ensemble import Stack, fit_stack, held_out_stack, keep_useful
from equipoise.advisor.search import TOO_SHORT, Found
from equipoise.advisor.splits import Fold
from equipoise.advisor.treatments import Context, all_treatments
from equipoise.advisor.verdict import ENSEMBLE, SAME, HeldOut, Verdict, best_constant, make_leaderboard
from equipoise.datasets import DataTable
from equipoise.metrics import UnmetWish, Wish


@dataclass(frozen=True)
class Conclusion:
    """What is recommended, and why.

    Attributes
    ----------
    leaderboard : DataFrame
    verdict : Verdict
    bags : list of Bag
        The members of the recommended model.
    stack : Stack
        Their weights.
    held_out : array of shape (rows, classes)
        Probabilities of the held-out rows, by a stack of the other folds.
    rows : HeldOut
        The held-out rows.
    judged : array of int
        Their places among the rows that were compared on.
    wish : Wish
        What the decision is for: the wish that was asked for, or balanced accuracy where it cannot be met.
    unmet : str or None
        Why it cannot.
    """

    leaderboard: pd.DataFrame
    verdict: Verdict
    bags: list[Bag]
    stack: Stack
    held_out: FloatArray
    rows: HeldOut
    judged: IntArray
    wish: Wish
    unmet: str | None


def conclude(table: DataTable, rows: Rows, found: Found, wish: Wish, prior: FloatArray | None) -> Conclusion:
    """Stack the bags, score everything on the held-out rows, and judge."""
    held, judged = _held_out_rows(table, rows, found, wish)
    y, block, weight = held.y, held.block, held.weight
    bags = {bag.name: bag for bag in found.bags}
    names = list(bags)
    members = np.stack([bag.held_out[judged] for bag in bags.values()])
    predictions = {name: held_out_stack(members[i : i + 1], y, block, weight) for i, name in enumerate(names)}
    labels = {name: _label(bag) for name, bag in bags.items()}
    labels[SAME] = (
        f"always call {table.label(best_constant(wish, held.data_prior if prior is None else prior))}"
    )
    simplicity = {name: bag.treatment.simplicity + bag.repeats - 1 for name, bag in bags.items()}
    kept = keep_useful(names, members, y, weight)
    stack = fit_stack(members[kept], y, weight)
    shares = dict(zip([names[i] for i in kept], stack.weights / max(stack.weights.sum(), 1e-12), strict=True))
    if len(kept) > 1:
        predictions[ENSEMBLE] = held_out_stack(members[kept], y, block, weight)
        labels[ENSEMBLE], simplicity[ENSEMBLE] = f"an ensemble of {len(kept)} models", 100
    known = (predictions, labels, simplicity, {name: bag.seconds for name, bag in bags.items()}, shares, held)
    unmet = None
    try:
        board, verdict = make_leaderboard(*known, wish, prior)
    except UnmetWish as reason:
        unmet, wish = str(reason), Wish()
        board, verdict = make_leaderboard(*known, wish, prior)
    name = verdict.recommended
    if name != ENSEMBLE:
        kept = [names.index(name)]
        stack = fit_stack(members[kept], y, weight)
    chosen = [bags[names[i]] for i in kept]
    return Conclusion(board, verdict, chosen, stack, predictions[name], held, judged, wish, unmet)


def _held_out_rows(table: DataTable, rows: Rows, found: Found, wish: Wish) -> tuple[HeldOut, IntArray]:
    """The rows that every bag predicted without having seen them, and their places."""
    block = found.block(len(rows))
    judged = np.flatnonzero(block >= 0)
    y = rows.y[judged]
    weight = (table.counts / np.maximum(np.bincount(y, minlength=rows.n_classes), 1))[y]
    costs = wish.row_costs(table.row_values, len(table))
    own = None if costs is None else (costs[0][judged], costs[1][judged])
    groups = None if table.groups is None else table.groups[judged]
    return HeldOut(y, block[judged], weight, table.prior, own, groups), judged


def _label(bag: Bag) -> str:
    number = bag.name.partition("#")[2]
    return bag.treatment.summary + (f", variant {number}" if number else "")


def left_out(found: Found) -> dict[str, list[str]]:
    """What was not tried, by the reason, with the names that people see."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in found.left_out.items():
        known = all_treatments().get(name)
        why = TOO_SHORT if reason.startswith(TOO_SHORT) else reason
        by_reason.setdefault(why, []).append(known.summary if known else name)
    return by_reason


def refitted(bag: Bag, rows: Rows, context: Context) -> Bag:
    """One model on all rows, past and present, in place of models of ever longer pasts."""
    settings = dict(bag.settings)
    used = [getattr(model.estimator, "rounds_", 0) for model in bag.models]
    if "rounds" in settings and used:
        settings["rounds"] = max(1, used[-1])
    every = np.arange(len(rows))
    model, _, seconds = fit_fold(bag.treatment, context, settings, rows, Fold(every, every[:0]), np.inf)
    return Bag(bag.name, bag.treatment, settings, [model], bag.held_out, bag.seconds + seconds)
