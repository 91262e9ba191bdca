"""Why the recommended model answers as it does: numbers only, all from rows that the answering models did not see.

Every row is answered by the models of its own fold, which were fitted to the other folds. Columns are changed in
the table, before they are encoded, so that one column of the table is one reason however many it becomes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from equipoise._core.checks import FloatArray, IntArray
from equipoise._core.priors import correct_prior
from equipoise._core.random import as_generator, derive_seed
from equipoise.advisor._advisor import Advisor
from equipoise.advisor._held_out import HeldOutModel, RowSample, column_of, joined, with_values
from equipoise.advisor.row_reasons import WorstError, row_reasons, worst_errors

MOST_ROWS, _FEWEST_ROWS, _MOST_SHUFFLES = 2_000, 100, 5
ROWS_AT_ONCE = 20_000
_SHOWN_EFFECTS = 4
_SLICED_COLUMNS, _PAIRED_COLUMNS, _SMALLEST_SLICE, _MOST_SLICES = 12, 6, 30, 5
DRAWS, _MATERIAL = 400, 1.2  # draws of the null, and how many times the expected loss is worth a word


_CHI_SQUARE_MEDIAN = 0.4549


@dataclass(frozen=True)
class Importance:
    """How much the log loss grows when a column's values come from other rows, with its 95 % interval."""

    column: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Effect:
    """The mean probability of ``asked`` if every row had a value of the grid in this column."""

    column: str
    kind: str
    grid: list[Any]
    probability: FloatArray


@dataclass(frozen=True)
class Slice:
    """Rows with these values on which the log loss is credibly above what the probabilities themselves expect."""

    where: tuple[tuple[str, str], ...]
    rows: int
    loss: float
    expected: float
    happened: float
    said: float


@dataclass(frozen=True)
class Reasons:
    """All reasons; ``explained`` says how those of single rows were found, ``skipped`` what was left out."""

    asked: int
    rows: int = 0
    importance: list[Importance] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    errors: list[WorstError] = field(default_factory=list)
    explained: str = ""
    slices: list[Slice] | None = None
    skipped: list[str] = field(default_factory=list)


def find_reasons(advisor: Advisor, seconds: float, seed: int = 0) -> Reasons:
    """Importance, effects, errors and slices of a fitted advisor, within a time.

    Parameters
    ----------
    advisor : Advisor
        Fitted in this process; a loaded one has no rows to ask.
    seconds : float
        Parts that would take longer are left out and named.
    seed : int
        Of the rows and values that are drawn.

    Returns
    -------
    Reasons
    """
    asked = 1 if len(advisor.data_prior_) == 2 else int(np.argmin(advisor.data_prior_))
    end, skipped = time.monotonic() + seconds, []
    model, chosen = HeldOutModel(advisor), worst_errors(advisor, asked)
    found = Reasons(asked, len(advisor.judged_), errors=chosen)
    if advisor.compared_.image_shape is not None:
        return replace(
            found,
            skipped=["One pixel explains little, so the importance of columns is not computed for pictures."],
        )
    try:
        sample = RowSample.of(advisor, MOST_ROWS, seed)
        importance = permutation_importance(model, sample, 0.5 * seconds, seed)
        found = replace(found, importance=importance or [])
        if importance is None:
            skipped.append("The importance of columns and their effects were left out for lack of time.")
        if time.monotonic() < end:
            found = replace(
                found, slices=bad_slices(advisor, [item.column for item in found.importance], seed)
            )
        else:
            skipped.append("The search for groups of rows with more errors was left out for lack of time.")
        columns = [item.column for item in found.importance if item.low > 0]
        found = replace(found, effects=_partial_effects(model, sample, columns[:_SHOWN_EFFECTS], asked, end))
        useful = [item.column for item in found.importance if item.value > 0]
        if useful and chosen and time.monotonic() < end:
            left = end - time.monotonic()
            errors, how = row_reasons(model, sample, chosen, useful, left, seed)
            found = replace(found, errors=errors, explained=how)
        elif useful and chosen:
            skipped.append("The reasons for single rows were left out for lack of time.")
    except Exception as error:  # a finished search must not be lost for want of its reasons
        skipped.append(f"Reasons could not be found: {error}")
    return replace(found, skipped=skipped)


def permutation_importance(
    model: HeldOutModel, sample: RowSample, seconds: float, seed: int
) -> list[Importance] | None:
    """Each column's importance, the greatest first; ``None`` if there is no time for it.

    The interval is that of the mean change in log loss, which for a column that tells nothing is 0 in expectation,
    whatever the models made of it.
    """
    names = sample.table.schema.names
    started = time.monotonic()
    model.proba(sample.X, sample.block)
    a_row = (time.monotonic() - started) / len(sample)
    affordable = int(seconds / (a_row * len(names)))
    if affordable < min(_FEWEST_ROWS, len(sample)):
        return None
    sample = sample.fewer(affordable, seed)
    rng = as_generator(derive_seed(seed, "shuffles"))
    before = _losses(model.proba(sample.X, sample.block), sample.y)
    shuffles = int(np.clip(affordable // len(sample), 1, _MOST_SHUFFLES))
    at_once = max(1, ROWS_AT_ONCE // (len(sample) * shuffles))
    found = []
    for start in range(0, len(names), at_once):
        places = range(start, min(start + at_once, len(names)))
        donors = rng.choice(len(sample), (shuffles, len(sample)), p=sample.weight)
        parts = [with_values(sample.X, i, column_of(sample.X, i)[donor]) for i in places for donor in donors]
        proba = model.proba(joined(parts), np.tile(sample.block, len(parts)))
        after = _losses(proba, np.tile(sample.y, len(parts))).reshape(len(places), shuffles, -1).mean(axis=1)
        for place, changed in zip(places, after - before, strict=True):
            mean = float(sample.weight @ changed)
            reach = _reach(changed, mean, sample)
            found.append(Importance(names[place], mean, mean - reach, mean + reach))
    return sorted(found, key=lambda item: -item.value)


def _reach(changed: FloatArray, mean: float, sample: RowSample) -> float:
    """Half the 95 % interval of a mean: by rows, or by folds (Nadeau & Bengio 2003) where that is wider."""
    by_rows = 1.96 * float(np.sqrt(sample.weight**2 @ (changed - mean) ** 2))
    folds = np.unique(sample.block)
    if len(folds) < 2:
        return by_rows
    mine = [sample.block == fold for fold in folds]
    means = [np.average(changed[m], weights=sample.weight[m]) for m in mine]
    error = float(np.std(means, ddof=1)) * np.sqrt(1 / len(folds) + 1 / (len(folds) - 1))
    return max(by_rows, error * float(stats.t.ppf(0.975, len(folds) - 1)))


def _losses(proba: FloatArray, y: IntArray) -> FloatArray:
    return -np.log(np.maximum(proba[np.arange(len(y)), y], 1e-12))


def _partial_effects(
    model: HeldOutModel, sample: RowSample, columns: list[str], asked: int, end: float, rows: int = 300
) -> list[Effect]:
    """The mean probability of a class over a grid of each column's values."""
    some = sample.fewer(rows, 0)
    effects = []
    for name in columns:
        place = sample.table.schema.names.index(name)
        kind, values = sample.table.kinds[place], column_of(sample.X, place)
        if kind == "text" or time.monotonic() > end:
            continue
        if kind in ("number", "date"):
            finite = values[np.isfinite(values.astype(np.float64))].astype(np.float64)
            grid: list[Any] = np.unique(np.quantile(finite, np.linspace(0.02, 0.98, 12))).tolist()
        else:
            grid = pd.Series(values).value_counts().index[:8].tolist()
        parts = [with_values(some.X, place, value) for value in grid]
        proba = model.proba(joined(parts), np.tile(some.block, len(parts)))[:, asked]
        effects.append(Effect(name, kind, grid, proba.reshape(len(grid), -1) @ some.weight))
    return effects


def bad_slices(advisor: Advisor, order: list[str], seed: int, most: int = 5_000) -> list[Slice]:
    """Groups of rows, by one binned column or two, on which the model is credibly worse than it should be.

    Some rows are harder than others without any fault of the model, and its probabilities say so. A group counts
    where the log loss exceeds what the probabilities expect of it. All groups are tested together: the largest
    excess in units of its standard error is compared with the largest among labels drawn from the probabilities
    themselves (the maximum test of Westfall and Young 1993), so that all groups named are right with 95 %.
    """
    sample = RowSample.of(advisor, most, seed)
    seen = np.bincount(sample.y, minlength=len(advisor.data_prior_))
    proba = correct_prior(advisor.held_out_[sample.kept], advisor.data_prior_, seen / seen.sum())
    log_p = np.log(np.clip(proba, 1e-3, 1))
    expected = -(proba * log_p).sum(axis=1)
    spread = (proba * log_p**2).sum(axis=1) - expected**2
    where, member = _candidates(sample, order)
    if not where:
        return []
    scale = np.sqrt(np.maximum(member.T @ spread, 1e-12))
    rng = as_generator(derive_seed(seed, "slices"))
    cumulative = proba.cumsum(axis=1)

    def tested(y: IntArray) -> FloatArray:
        """Excess of each group for labels in columns, in units of its standard error."""
        excess = -np.take_along_axis(log_p, y, axis=1) - expected[:, None]
        return np.asarray(member.T @ excess / scale[:, None])

    last = proba.shape[1] - 1
    drawn = np.stack([(cumulative < rng.random((len(sample), 1))).sum(axis=1) for _ in range(DRAWS)], axis=1)
    limit = np.quantile(tested(np.minimum(drawn, last)).max(axis=0), 0.95)
    z = tested(sample.y[:, None])[:, 0]
    z /= max(
        1.0, float(np.sqrt(np.median(z**2) / _CHI_SQUARE_MEDIAN))
    )  # probabilities have errors of their own
    found: list[Slice] = []
    taken = np.zeros(len(sample), dtype=bool)
    asked = 1 if proba.shape[1] == 2 else int(np.argmin(advisor.data_prior_))
    lost = -log_p[np.arange(len(sample)), sample.y]
    for i in np.argsort(-z):
        inside = member[:, i] > 0
        loss, usual = float(lost[inside].mean()), float(expected[inside].mean())
        if z[i] <= limit or len(found) == _MOST_SLICES:
            break
        if loss < _MATERIAL * usual or np.mean(taken[inside]) > 0.5:
            continue
        taken |= inside
        happened, said = float(np.mean(sample.y[inside] == asked)), float(proba[inside, asked].mean())
        found.append(Slice(where[i], int(inside.sum()), loss, usual, happened, said))
    return found


def _candidates(sample: RowSample, order: list[str]) -> tuple[list[tuple[tuple[str, str], ...]], FloatArray]:
    """Descriptions of the groups, and for each row and group whether it belongs to it."""
    names = sample.table.schema.names
    wanted = list(order or names)[:_SLICED_COLUMNS]
    bins = {name: _bins(sample, names.index(name)) for name in wanted}
    groups: list[tuple[tuple[str, str], ...]] = []
    members = []
    for name in wanted:
        for text, inside in bins[name].items():
            groups.append(((name, text),))
            members.append(inside)
    for a, b in combinations(wanted[:_PAIRED_COLUMNS], 2):
        for left, one in bins[a].items():
            for right, other in bins[b].items():
                groups.append(((a, left), (b, right)))
                members.append(one & other)
    enough = [i for i, m in enumerate(members) if _SMALLEST_SLICE <= m.sum() <= 0.9 * len(sample)]
    matrix = np.array([members[i] for i in enough], dtype=np.float64).reshape(len(enough), len(sample)).T
    return [groups[i] for i in enough], matrix


def _bins(sample: RowSample, place: int) -> dict[str, Any]:
    """Quarters of a number's range, or the commonest categories, each with the rows in it."""
    values, kind = column_of(sample.X, place), sample.table.kinds[place]
    if kind == "text":
        return {}
    if kind == "category":
        common = pd.Series(values).value_counts().index[:8]
        return {str(value): np.asarray(values == value) for value in common}
    numbers = values.astype(np.float64)
    known = np.isfinite(numbers)
    if not known.any():
        return {}
    edges = np.unique(np.quantile(numbers[known], [0.25, 0.5, 0.75]))
    shown = [written(edge, kind) for edge in edges]
    place_of = np.searchsorted(edges, numbers, side="left")
    texts = [f"up to {shown[0]}", *(f"{a} to {b}" for a, b in pairwise(shown)), f"above {shown[-1]}"]
    found = {text: known & (place_of == i) for i, text in enumerate(texts)}
    return found if known.all() else {**found, "missing": ~known}


def written(value: Any, kind: str) -> str:
    """A value as text; dates are kept as seconds."""
    if kind == "date":
        return str(pd.Timestamp(float(value), unit="s").date()) if np.isfinite(value) else "missing"
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)
