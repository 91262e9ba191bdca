"""Which treatment, and how sure: a leaderboard on held-out rows, and the simplest that does as well as the best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.metrics import average_precision_score

from equipoise._core.checks import FloatArray, IntArray
from equipoise._core.priors import correct_prior
from equipoise.metrics import Decision, UnmetWish, Wish, choose_decision
from equipoise.metrics.wishes import RowCosts

ENSEMBLE = "ensemble"
ALWAYS, NEVER = "always-positive", "never-positive"
SAME = "always-same"  # with many classes: the one class that is best called always
_SMALLER_IS_BETTER = frozenset({"cost", "brier", "log_loss"})
_TIE = 5e-4  # a difference of the deciding figure that nobody would pay for
_LEVEL = 1.01  # a tie has level probabilities too: the log loss is at most so many times the best one's


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows of the comparison.

    Attributes
    ----------
    y, block : arrays of int
        Class codes, and the fold in which each row was predicted.
    weight : array
        How many rows of the data each one stands for.
    data_prior : array
        The class shares of the data.
    row_costs : pair of arrays, optional
    groups : array of int, optional
        Rows with the same number belong together.
    """

    y: IntArray
    block: IntArray
    weight: FloatArray
    data_prior: FloatArray
    row_costs: RowCosts | None = None
    groups: IntArray | None = None

    def calls(
        self, proba: FloatArray, wish: Wish, prior: FloatArray | None = None
    ) -> tuple[Decision, IntArray]:
        """The decision, and what it calls every row: the very rule that ``predict`` follows."""
        decision = choose_decision(
            proba, self.y, wish, data_prior=self.data_prior, prior=prior, groups=self.groups, folds=self.block
        )
        corrected = correct_prior(proba, self.data_prior, decision.prior)
        return decision, decision.codes(corrected, self.row_costs)


def _mean_average_precision(y: IntArray, proba: FloatArray, weight: FloatArray | None = None) -> float:
    """Average precision of the positive class, or the mean over the classes that occur."""
    if proba.shape[1] == 2:
        return (
            float(average_precision_score(y == 1, proba[:, 1], sample_weight=weight))
            if (y == 1).any()
            else 0.0
        )
    present = [c for c in range(proba.shape[1]) if (y == c).any()]
    return float(
        np.mean([average_precision_score(y == c, proba[:, c], sample_weight=weight) for c in present])
    )


def _score_rows(
    proba: FloatArray, calls: IntArray, decision: Decision, rows: HeldOut, chosen: IntArray | None = None
) -> dict[str, float]:
    """Figures of held-out predictions, of all rows or the ``chosen`` ones; costs at the prior in use."""
    index = np.arange(len(rows.y)) if chosen is None else chosen
    y, p, w, called = rows.y[index], proba[index], rows.weight[index], calls[index]
    hot = np.eye(p.shape[1])[y]
    squares = ((p - hot) ** 2).sum(axis=1) / (2 if p.shape[1] == 2 else 1)
    found = {
        "balanced_accuracy": float(np.mean([np.mean(called[y == c] == c) for c in np.unique(y)])),
        "average_precision": _mean_average_precision(y, p, w),
        "brier": float(np.average(squares, weights=w)),
        "log_loss": float(np.average(-np.log(np.clip(p[np.arange(len(y)), y], 1e-15, 1)), weights=w)),
    }
    w = w * (decision.prior / np.maximum(rows.data_prior, 1e-12))[y]
    costs = decision.wish.cost_table(p.shape[1])
    if rows.row_costs is not None:
        alarm, miss = rows.row_costs[0][index], rows.row_costs[1][index]
        paid = np.where((y == 0) & (called == 1), alarm, 0) + np.where((y == 1) & (called == 0), miss, 0)
        found["cost"] = float(np.average(paid, weights=w))
    elif costs is not None:
        found["cost"] = float(np.average(costs[y, called], weights=w))
    return found


@dataclass(frozen=True)
class Verdict:
    """What to use.

    Attributes
    ----------
    recommended : str
        The name in the leaderboard.
    metric : str
        The figure that decided.
    alternative : str or None
        The simplest treatment within one standard error of the best, where that is another one.
    difference, low, high : float
        By how much the recommended one is better than the alternative, with its 95 % interval.
    unable : tuple of str
        Treatments that cannot meet the wish; they are shown with the decision for balanced accuracy.
    """

    recommended: str
    metric: str
    alternative: str | None = None
    difference: float = 0.0
    low: float = 0.0
    high: float = 0.0
    unable: tuple[str, ...] = ()


def _deciding_metric(wish: Wish) -> str:
    """The figure by which treatments are compared: the wish's own, or the ranking behind it."""
    return {"cost": "cost", "balanced_accuracy": "balanced_accuracy"}.get(wish.objective, "average_precision")


def make_leaderboard(
    predictions: Mapping[str, FloatArray],
    labels: Mapping[str, str],
    simplicity: Mapping[str, int],
    seconds: Mapping[str, float],
    weights: Mapping[str, float],
    rows: HeldOut,
    wish: Wish,
    prior: FloatArray | None = None,
) -> tuple[pd.DataFrame, Verdict]:
    """Score every treatment on the held-out rows, and judge those that can meet the wish.

    The value of a figure is that of all held-out rows together, and its standard error comes from the folds, whose
    scores vary together because they share training rows: (1/J + 1/(J − 1))·s² for J folds (Nadeau & Bengio 2003).
    """
    metric = _deciding_metric(wish)
    unmet: dict[str, UnmetWish] = {}
    records, by_fold = [], {}
    blocks = [np.flatnonzero(rows.block == b) for b in np.unique(rows.block)]
    shares = rows.data_prior if prior is None else prior
    constant = {NEVER: 0, ALWAYS: 1} if len(shares) == 2 else {SAME: best_constant(wish, shares)}
    unmoved = np.tile(rows.data_prior, (len(rows.y), 1))
    for name, proba in {**predictions, **dict.fromkeys(constant, unmoved)}.items():
        if name in constant:
            calls = np.full(len(rows.y), constant[name])
            decision = Decision(1 - np.eye(len(shares)), shares, wish)
        else:
            try:
                decision, calls = rows.calls(proba, wish, prior)
            except UnmetWish as reason:
                unmet[name] = reason
                decision, calls = rows.calls(proba, Wish(), prior)
        total = _score_rows(proba, calls, decision, rows)
        folds = pd.DataFrame([_score_rows(proba, calls, decision, rows, b) for b in blocks if len(b)])
        by_fold[name] = folds[metric].to_numpy()
        spread = folds.std(ddof=1) if len(folds) > 1 else folds.iloc[0] * np.nan
        error = spread * np.sqrt(1 / len(folds) + 1 / max(len(folds) - 1, 1))
        records.append(
            {
                "name": name, "treatment": labels.get(name, name), **total,
                **{f"{key}_error": float(error[key]) for key in total},
                "seconds": seconds.get(name, 0.0), "weight": weights.get(name, 0.0),
            }
        )  # fmt: skip
    board = pd.DataFrame(records).set_index("name")
    able = [name for name in predictions if name not in unmet]
    if not able:
        raise max(unmet.values(), key=lambda reason: reason.most)
    verdict = replace(_judge(board, by_fold, metric, simplicity, able), unable=tuple(unmet))
    real = board.loc[list(predictions)].sort_values(metric, ascending=metric in _SMALLER_IS_BETTER)
    return pd.concat([real, board.loc[list(constant)]]), verdict


def best_constant(wish: Wish, prior: FloatArray) -> int:
    """The class that costs least if every row is called so; without costs by class the commonest."""
    costs = wish.cost_table(len(prior))
    return int((prior @ (1 - np.eye(len(prior)) if costs is None else costs)).argmin())


def _judge(
    board: pd.DataFrame,
    by_fold: Mapping[str, FloatArray],
    metric: str,
    simplicity: Mapping[str, int],
    names: list[str],
) -> Verdict:
    sign = -1.0 if metric in _SMALLER_IS_BETTER else 1.0
    values = sign * board.loc[names, metric]
    best = str(values.idxmax())
    sure = 1 - 0.05 / max(len(names) - 1, 1)  # the highest of many may owe its place to luck
    if ENSEMBLE in names and _paired(sign, by_fold, best, ENSEMBLE, sure)[0] <= 0:
        best = ENSEMBLE
    error = float(board[f"{metric}_error"][best]) / np.sqrt(2)
    near = [n for n in names if values[n] >= values[best] - (error if np.isfinite(error) else 0.0)]
    simple = min(near, key=lambda n: (simplicity.get(n, 99), -values[n]))
    if simplicity.get(simple, 99) >= simplicity.get(best, 99):
        return Verdict(best, metric)
    difference = float(values[best] - values[simple])
    loss = board["log_loss"]
    if abs(difference) <= _TIE and loss[simple] <= _LEVEL * loss[best]:
        return Verdict(simple, metric)
    low, high = _paired(sign, by_fold, best, simple, 0.975)
    middle = (low + high) / 2
    return Verdict(best, metric, simple, difference, difference + low - middle, difference + high - middle)


def _paired(
    sign: float, by_fold: Mapping[str, FloatArray], first: str, second: str, level: float
) -> tuple[float, float]:
    """The interval of the mean difference over folds, which share training rows (Nadeau & Bengio 2003)."""
    gaps = sign * (by_fold[first] - by_fold[second])
    n = len(gaps)
    if n < 2:
        return float(gaps.mean()), float(gaps.mean())
    reach = float(np.std(gaps, ddof=1)) * np.sqrt(1 / n + 1 / (n - 1)) * float(stats.t.ppf(level, n - 1))
    return float(gaps.mean()) - reach, float(gaps.mean()) + reach
