"""The rows that were called most wrongly, and why: Shapley values of their columns.

They share out the log-odds of the true class. Where shap is installed and there is time, it computes them exactly;
else they are sampled here.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.special import expit, logit

from equipoise._core.checks import FloatArray, IntArray
from equipoise._core.priors import correct_prior
from equipoise._core.random import as_generator, derive_seed
from equipoise.advisor._advisor import Advisor
from equipoise.advisor._held_out import HeldOutModel, RowSample, column_of, with_values

_SHOWN_ERRORS, _SHOWN_REASONS = 5, 3
_MOST_ASKED = 8  # columns that a row's reasons are sought in: shap asks all their 256 combinations
DONORS = 10  # other rows whose values stand for what is typical
_ORDERS = 4  # of exchanging columns
_WORTH_NAMING = 0.1  # of the log-odds
_TO_IMPORT_SHAP = 4.0  # seconds

Answer = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class RowReason:
    """A column's value in a row, and by how much it lowers the log-odds of the row's true class."""

    column: str
    value: Any
    lowers: float


@dataclass(frozen=True)
class WorstError:
    """A row that was called wrongly, and the probability that the model gave to its true class.

    ``reasons`` is ``None`` where there was no time to seek them.
    """

    row: int
    name: Any
    fold: int
    truth: int
    called: int
    probability: float
    reasons: list[RowReason] | None = None


def worst_errors(advisor: Advisor, asked: int) -> list[WorstError]:
    """The rows of ``asked`` that were missed most surely, and the surest false calls."""
    proba, y, table = advisor.held_out_, advisor.truth_, advisor.compared_
    decision = advisor.decision_
    called = decision.codes(correct_prior(proba, advisor.data_prior_, decision.prior), advisor.row_costs_)
    found = []
    whole = len(table) == table.n_rows
    for kind in (y == asked, y != asked):
        wrong = np.flatnonzero(kind & (called != y))
        order = wrong[np.argsort(proba[wrong, y[wrong]], kind="stable")][:_SHOWN_ERRORS]
        for i in order:
            row = int(advisor.judged_[i])
            name = table.ids[row] if table.ids is not None else row if whole else None
            found.append(
                WorstError(
                    row, name, int(advisor.block_[i]), int(y[i]), int(called[i]), float(proba[i, y[i]])
                )
            )
    return found


def row_reasons(
    model: HeldOutModel,
    sample: RowSample,
    errors: list[WorstError],
    columns: list[str],
    seconds: float,
    seed: int = 0,
) -> tuple[list[WorstError], str]:
    """The errors with the columns that lower the odds of the true class, and a sentence on how these were found.

    Parameters
    ----------
    model : HeldOutModel
    sample : RowSample
        The rows whose values stand for what is typical.
    errors : list of WorstError
        At least one.
    columns : list of str
        The most important first; reasons are sought among the first eight.
    seconds : float
        With less than shap needs for its import and its many questions, the values are sampled.
    seed : int
        Of the typical rows.

    Returns
    -------
    list of WorstError, str
    """
    table, columns = sample.table, columns[:_MOST_ASKED]
    places = [table.schema.names.index(name) for name in columns]
    others = as_generator(derive_seed(seed, "donors")).choice(len(sample), DONORS, p=sample.weight)
    answers = [exchanging(model, sample, error, places, others) for error in errors]
    started = time.monotonic()
    answers[0](np.zeros((100, len(places))))
    a_row = (time.monotonic() - started) / 100
    asks = len(errors) * DONORS * 2 ** len(places)
    explain, how = _method(seconds > asks * a_row + _TO_IMPORT_SHAP, len(places))
    explained = []
    for error, answer in zip(errors, answers, strict=True):
        own = float(answer(np.zeros((1, len(places))))[0])
        shares = explain(answer, len(places))
        order = [i for i in np.argsort(shares, kind="stable") if shares[i] < -_WORTH_NAMING]
        values = [column_of(table.rows([error.row]), place)[0] for place in places]
        reasons = [RowReason(columns[i], values[i], -float(shares[i])) for i in order[:_SHOWN_REASONS]]
        explained.append(replace(error, probability=float(expit(own)), reasons=reasons))
    return explained, how


def _method(enough_time: bool, columns: int) -> tuple[Callable[[Answer, int], FloatArray], str]:
    """How the values are computed, and the sentence that says so."""
    of = "the column that matters" if columns == 1 else f"the {columns} columns that matter most"
    if find_spec("shap") is None:
        instead = "with shap installed (pip install 'equipoise[shap]') they are exact"
    elif not enough_time:
        instead = "with a longer budget they are exact"
    else:
        return by_shap, f"These are Shapley values over {of}, computed exactly by shap."
    return (
        by_sampling,
        f"These are Shapley values over {of}, estimated from {_ORDERS} orders of them; {instead}.",
    )


def exchanging(
    model: HeldOutModel, sample: RowSample, error: WorstError, places: list[int], others: IntArray
) -> Answer:
    """The log-odds of a row's true class as a function of which values are exchanged for those of other rows.

    It is asked by number, in an array of shape (questions, columns): 0 is the row's own value, k that of the k-th
    other row. So a category, a date or a text never reaches the method that explains it, and a column that is
    encoded as many is still one reason.
    """
    pool = sample.table.rows([error.row, *sample.advisor.judged_[sample.kept[others]]])

    def answer(numbers: FloatArray) -> FloatArray:
        X = sample.table.rows(np.full(len(numbers), error.row))
        for i, place in enumerate(places):
            X = with_values(X, place, column_of(pool, place)[numbers[:, i].astype(np.int64)])
        proba = model.proba(X, np.full(len(numbers), error.fold))[:, error.truth]
        return np.asarray(logit(np.clip(proba, 1e-12, 1 - 1e-12)))

    return answer


def _all_exchanged(columns: int) -> FloatArray:
    """The questions in which every value comes from another row, once for each of these rows."""
    return np.tile(np.arange(1.0, DONORS + 1)[:, None], (1, columns))


def by_shap(answer: Answer, columns: int) -> FloatArray:
    """What each column adds, exactly: shap's kernel method over all combinations (Lundberg & Lee 2017)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its import draws a palette in ways that matplotlib will drop
        import shap

    explainer = shap.KernelExplainer(answer, _all_exchanged(columns))
    own = np.zeros((1, columns))
    return np.asarray(explainer.shap_values(own, nsamples=2**columns, l1_reg=False, silent=True)[0])


def by_sampling(answer: Answer, columns: int) -> FloatArray:
    """What each column adds, where values are exchanged one after the other in a few orders and their reverses.

    A column's share is the mean change at its turn (Štrumbelj & Kononenko 2014, "Explaining prediction models and
    individual predictions with feature contributions"), so that the shares add up to what sets the row apart.
    """
    rng, typical = as_generator(derive_seed(0, "orders")), _all_exchanged(columns)
    halves = [rng.permutation(columns) for _ in range(_ORDERS // 2)]
    shares = np.zeros(columns)
    for order in [order for half in halves for order in (half, half[::-1])]:
        steps = [np.where(np.isin(np.arange(columns), order[:k]), typical, 0.0) for k in range(columns + 1)]
        means = answer(np.concatenate(steps)).reshape(columns + 1, DONORS).mean(axis=1)
        shares[order] -= np.diff(means) / _ORDERS
    return shares
