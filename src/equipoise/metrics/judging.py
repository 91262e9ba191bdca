"""What a decision does to rows that were not trained on, with intervals that a table of few positives deserves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import BoolArray, FloatArray, IntArray
from equipoise._core.priors import correct_prior
from equipoise.metrics.decisions import Decision, check_predictions
from equipoise.metrics.shares import binomial_interval, design_effects, fold_effects
from equipoise.metrics.wishes import RowCosts


@dataclass(frozen=True)
class DecisionFigure:
    """One figure of a decision on held-out rows.

    Attributes
    ----------
    value : float
        The figure on the held-out rows.
    low, high : float
        Where it will lie on a fresh batch of rows, half as many as were held out, in 95 % of such batches.
    long_run : tuple of float
        The 95 % interval of its long-run value.
    """

    value: float
    low: float
    high: float
    long_run: tuple[float, float]


@dataclass(frozen=True)
class Judgment:
    """What a decision does to held-out rows.

    Attributes
    ----------
    decision : Decision
        The rule that was judged.
    figures : dict of str to DecisionFigure
        Balanced accuracy; with two classes recall, specificity, precision, F1 and alerts (the share of rows
        called positive); with many the recall of every class and macro F1; the cost per row where one is known.
    confusion : array of shape (classes, classes)
        Held-out rows by truth and call.
    """

    decision: Decision
    figures: dict[str, DecisionFigure]
    confusion: IntArray

    @property
    def threshold(self) -> float | None:
        """Of the positive class's probability; ``None`` for many classes and for costs by row."""
        return None if self.decision.wish.by_row else self.decision.threshold

    @property
    def wish(self) -> str:
        """What the decision was chosen for, in words."""
        return self.decision.wish.words


def judge_decision(
    decision: Decision,
    proba: npt.ArrayLike,
    truth: npt.ArrayLike,
    *,
    data_prior: npt.ArrayLike | None = None,
    row_costs: RowCosts | None = None,
    groups: npt.ArrayLike | None = None,
    folds: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
) -> Judgment:
    """The figures of a decision at its own prior, with intervals that a table of few positives deserves.

    All figures follow from the shares of each class that are called each class, and from the prior. The shares are
    drawn from their posterior, with a prior that weighs as much as one row a class (Perks 1947; with two classes
    that of Jeffreys), and so are the class shares where they come from the data; a fresh batch then adds its own
    luck, also in how many rows of each class it has. With two classes recall and specificity have their
    exact long-run interval. Of many classes one without a row is left out of every figure.

    Parameters
    ----------
    decision : Decision
        The rule to judge.
    proba, truth : arrays
        Held-out probabilities at ``data_prior`` and class codes.
    data_prior : array, optional
        By default the shares of ``truth``.
    row_costs : pair of arrays, optional
        For a wish with a cost by row.
    groups : array, optional
        Rows with the same value belong together: n of them count as n divided by their
        :func:`~equipoise.metrics.design_effects`.
    folds : array of int, optional
        The fold in which each row was held out: the long run of a model that was none of those judged is known
        less well, by the :func:`~equipoise.metrics.fold_effects`.
    confidence : float
        Of the ranges and the intervals.
    random_state : int
        Of the draws.

    Returns
    -------
    Judgment
        The decision with its figures, their ranges and the confusion of classes.

    Examples
    --------
    >>> p = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    >>> judged = judge_decision(Decision.at_threshold(0.3, prior=[0.5, 0.5]), p, [0, 0, 1, 1])
    >>> judged.figures["recall"].value, judged.confusion.tolist()
    (1.0, [[2, 0], [0, 2]])
    """
    p, y, given, _ = check_predictions(proba, truth, data_prior, None)
    n = p.shape[1]
    calls = decision.codes(correct_prior(p, given, decision.prior), row_costs)
    confusion = np.bincount(y * n + calls, minlength=n * n).reshape(n, n)
    rng = np.random.default_rng(random_state)
    draws = 4000 if n <= 10 else 400
    size = confusion.sum(axis=1)
    less = np.ones(n) if groups is None else design_effects(y, calls, groups, n)
    known = less if folds is None else less * fold_effects(y, calls, folds, n, less)
    worth = confusion / known[:, None]
    alpha = worth + 1 / n
    gamma = rng.standard_gamma(np.broadcast_to(alpha, (draws, n, n)))
    long_run = gamma / gamma.sum(axis=2, keepdims=True)
    shares, counts = _drawn_classes(rng, draws, y, given, decision.prior, groups)
    batch = np.maximum(1, (counts / less).astype(np.int64))
    fresh = np.stack(
        [rng.multinomial(batch[:, c], long_run[:, c]) / batch[:, c, None] for c in range(n)], axis=1
    )
    costs, seen = decision.wish.cost_table(n), size > 0
    values, far, near = (
        _figures(rates, prior, costs, seen)
        for rates, prior in (
            ((confusion / np.maximum(size, 1)[:, None])[None], decision.prior[None]),
            (long_run, shares),
            (fresh, counts / counts.sum(axis=1, keepdims=True)),
        )
    )
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    figures: dict[str, DecisionFigure] = {}
    for name, value in values.items():
        low, high = np.quantile(near[name], tails)
        least, most = np.quantile(far[name], tails)
        v = float(value[0])
        reach = min(float(least), v), max(float(most), v)
        figures[name] = DecisionFigure(v, min(float(low), v), max(float(high), v), reach)
    if n == 2:
        for name, c in (("recall", 1), ("specificity", 0)):
            exact = binomial_interval(worth[c, c], size[c] / known[c], confidence)
            bounds = (float(exact[0]), float(exact[1]))
            old = figures[name]
            figures[name] = DecisionFigure(
                old.value, min(old.low, bounds[0]), max(old.high, bounds[1]), bounds
            )
    if row_costs is not None:
        figures["cost"] = _row_cost_figure(y, calls, row_costs, decision.prior, rng, tails, groups)
    return Judgment(decision, figures, confusion)


def _drawn_classes(
    rng: np.random.Generator, draws: int, y: IntArray, given: FloatArray, wanted: FloatArray,
    groups: npt.ArrayLike | None,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """The class shares of the long run, and how many rows of each class a fresh batch has.

    Shares that come from the data are known as well as so many rows tell them (where the rare rows of a larger
    table were kept, as well as all of its rows do); shares that were named are taken as they are.
    """
    n = len(given)
    size = np.bincount(y, minlength=n)
    alike = 1.0 if groups is None else float(design_effects(np.zeros_like(y), y, groups, n)[0])
    shares = np.tile(wanted, (draws, 1))
    if np.allclose(wanted, given, rtol=1e-9, atol=0):
        rows = float((size / np.maximum(given, 1e-12)).max())
        gamma = rng.standard_gamma(np.broadcast_to(rows * given / alike + 1 / n, (draws, n)))
        shares = gamma / gamma.sum(axis=1, keepdims=True)
    counts = rng.multinomial(max(1, int(len(y) / 2 / alike)), shares).astype(np.float64)
    return shares, alike * counts


def _figures(
    rates: FloatArray, prior: FloatArray, costs: FloatArray | None, seen: BoolArray
) -> dict[str, FloatArray]:
    """Figures of many tables of shares at once: ``rates[draw, truth, call]`` at ``prior[draw, class]``.

    With many classes those that were not seen are left out.
    """
    n = prior.shape[1]
    if n > 2:
        prior = np.where(seen, prior, 0.0)
        prior = prior / np.maximum(prior.sum(axis=1, keepdims=True), 1e-300)
    recalls = np.einsum("dcc->dc", rates)
    called = np.einsum("dc,dck->dk", prior, rates)
    found = {"balanced_accuracy": recalls[:, seen].mean(axis=1)}
    f1 = 2 * prior * recalls / np.maximum(prior + called, 1e-300)
    if n == 2:
        hit = prior[:, 1] * recalls[:, 1]
        found["recall"], found["specificity"] = recalls[:, 1], recalls[:, 0]
        found["precision"] = np.divide(hit, called[:, 1], out=np.ones_like(hit), where=called[:, 1] > 0)
        found["f1"], found["alerts"] = f1[:, 1], called[:, 1]
    else:
        found["macro_f1"] = f1[:, seen].mean(axis=1)
        found.update({f"recall of class {c}": recalls[:, c] for c in np.flatnonzero(seen)} if n <= 10 else {})
    if costs is not None:
        found["cost"] = np.einsum("dc,dck,ck->d", prior, rates, costs)
    return found


def _row_cost_figure(
    y: IntArray, calls: IntArray, row_costs: RowCosts, prior: FloatArray,
    rng: np.random.Generator, tails: Sequence[float], groups: npt.ArrayLike | None,
) -> DecisionFigure:  # fmt: skip
    """The cost a row by resampling the rows, or the groups of rows that belong together."""
    alarm, miss = row_costs
    paid = np.where((y == 0) & (calls == 1), alarm, 0.0) + np.where((y == 1) & (calls == 0), miss, 0.0)
    seen = np.bincount(y, minlength=len(prior)) / len(y)  # of a large table the rare classes are all here
    paid = paid * (prior / np.maximum(seen, 1e-12))[y]
    place = np.arange(len(paid)) if groups is None else np.unique(groups, return_inverse=True)[1]
    sums, sizes = np.bincount(place, weights=paid), np.bincount(place)
    value, n = float(paid.mean()), len(sums)

    def drawn(count: int) -> FloatArray:
        taken = (rng.integers(0, n, count) for _ in range(500))
        return np.array([sums[some].sum() / sizes[some].sum() for some in taken])

    draws = drawn(n)
    far = np.quantile(draws, tails)
    near = np.quantile(draws + drawn(max(1, n // 2)) - value, tails)
    return DecisionFigure(value, float(max(near[0], 0)), float(near[1]), (float(far[0]), float(far[1])))
