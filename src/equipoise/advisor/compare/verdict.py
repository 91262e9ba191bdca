"""Which treatment, why, and how sure: a verdict that says so when there is no difference worth having."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from equipoise._core.checks import FloatArray

ROPE = 0.01  # differences of a metric smaller than this are not worth having
CREDIBLE = 0.95
REFERENCE = "weights_threshold"  # the honest baseline that a recommendation must not fall below
SMALLER_IS_BETTER = frozenset({"cost", "brier"})


@dataclass(frozen=True)
class Difference:
    """One treatment against another on one metric: positive means that ``first`` is better.

    ``better``, ``equal`` and ``worse`` are the posterior probabilities that ``first`` is better by more
    than the region of practical equivalence, within it, and worse.
    """

    first: str
    second: str
    metric: str
    mean: float
    low: float
    high: float
    better: float
    equal: float
    worse: float


@dataclass(frozen=True)
class Verdict:
    """The recommended treatment, the best on each metric, how far each is from it, and all pairs with it."""

    recommended: str
    best: Mapping[str, str]
    shortfalls: Mapping[str, float]
    differences: tuple[Difference, ...]
    metrics: tuple[str, ...]

    def against(self, other: str, metric: str) -> Difference | None:
        found = [d for d in self.differences if d.second == other and d.metric == metric]
        return found[0] if found else None


def difference(
    first: FloatArray, second: FloatArray, test_share: float, *, rope: float = ROPE
) -> tuple[float, float, float, float, float, float]:
    """Mean, 95 % interval and the three probabilities of a paired difference over folds.

    The Bayesian correlated t-test (Corani & Benavoli 2015): the posterior of the mean difference is a
    Student t with
    J − 1 degrees of freedom, the mean difference as location, and scale² = (1/J + n_test/n_train)·s².
    """
    d = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    folds = len(d)
    mean = float(d.mean())
    scale = float(d.std(ddof=1)) * np.sqrt(1 / folds + test_share / (1 - test_share)) if folds > 1 else 0.0
    if scale < 1e-12:
        return mean, mean, mean, float(mean > rope), float(abs(mean) <= rope), float(mean < -rope)
    posterior = stats.t(folds - 1, loc=mean, scale=scale)
    low, high = (float(x) for x in posterior.interval(0.95))
    worse, better = float(posterior.cdf(-rope)), float(posterior.sf(rope))
    return mean, low, high, better, 1 - better - worse, worse


def judge(scores: pd.DataFrame, order: list[str], test_share: float, metrics: tuple[str, ...]) -> Verdict:
    """Recommend the simplest treatment that is as good as the best.

    As good means: on every one of ``metrics`` within one standard error (s/√J over folds, the stricter of the
    two in use) of the best mean, and no other treatment is credibly better on any. If none is, the one
    with the smallest worst shortfall is recommended among those not credibly below class weights with a tuned
    threshold.

    Parameters
    ----------
    scores
        One row a treatment and fold.
    order
        Treatments from simple to elaborate.
    test_share
        Share of the rows in a test fold.
    metrics
        Columns of ``scores`` that decide.
    """
    table = {m: _by_fold(scores, m, order) for m in metrics}
    shortfalls = {name: max(_shortfall(table[m], name) for m in metrics) for name in order}
    best = {m: str(table[m].mean().idxmax()) for m in metrics}

    def beaten_by(name: str, others: list[str]) -> bool:
        return any(
            difference(table[m][other].to_numpy(), table[m][name].to_numpy(), test_share)[3] > CREDIBLE
            for other in others
            if other != name
            for m in metrics
        )

    good = [n for n in order if shortfalls[n] <= 1 and not beaten_by(n, order)]
    if not good:
        sound = [n for n in order if not beaten_by(n, [REFERENCE] if REFERENCE in order else [])]
        good = sorted(sound or order, key=lambda n: shortfalls[n])
    chosen = good[0]
    pairs = []
    for other in order:
        for m in metrics if other != chosen else ():
            values = difference(table[m][chosen].to_numpy(), table[m][other].to_numpy(), test_share)
            pairs.append(Difference(chosen, other, m, *values))
    return Verdict(chosen, best, shortfalls, tuple(pairs), metrics)


def _by_fold(scores: pd.DataFrame, metric: str, order: list[str]) -> pd.DataFrame:
    table = scores.pivot(index="fold", columns="treatment", values=metric)[order]
    return -table if metric in SMALLER_IS_BETTER else table


def _shortfall(table: pd.DataFrame, name: str) -> float:
    """How many standard errors of the best the treatment's mean lies below it."""
    means = table.mean()
    best = str(means.idxmax())
    gap = float(means[best] - means[name])
    error = float(table[best].std(ddof=1)) / np.sqrt(len(table)) if len(table) > 1 else 0.0
    if gap <= 1e-12:
        return 0.0
    return gap / error if error > 0 else float("inf")
