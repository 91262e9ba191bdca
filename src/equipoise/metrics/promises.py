"""Thresholds that promise a recall or a precision with confidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from equipoise._core.checks import FloatArray, IntArray
from equipoise.metrics.shares import binomial_interval, largest_effect
from equipoise.metrics.wishes import UnmetWish, Wish

_LOOKS, _STARTS = 60, 12  # numbers of alerts at which a wanted precision is tested


def recall_threshold(
    score: FloatArray, y: IntArray, wish: Wish, groups: npt.ArrayLike | None, folds: npt.ArrayLike | None
) -> float:
    """The highest threshold whose recall is at least the wanted one, with confidence.

    The share of all positives below the k-th lowest of n has the Beta(k, n − k + 1) distribution, whatever the
    distribution of the scores (Wilks 1941): an exact promise although the threshold was chosen on these rows. Rows
    that belong together are promised for as if those of one group were all alike. The mean of J models is none of
    those that were judged, and its recall is off by more than the luck of n positives: they count as n (1 − 1/J),
    which is an allowance and no law.
    """
    positives, level = np.sort(score[y == 1]), wish.level or 0.0
    n, models = len(positives), 1 if folds is None else len(np.unique(np.asarray(folds)))
    alike = largest_effect(groups, y == 1)
    less = alike * (models / (models - 1) if models > 1 else 1.0)
    k = np.ceil(np.arange(1, n + 1) / less)
    sure = np.flatnonzero(stats.beta.cdf(1 - level, k, n / less - k + 1) >= wish.confidence)
    if not sure.size:
        most = (1 - wish.confidence) ** (less / n) if n else 0.0
        raise UnmetWish(
            f"{wish.words} cannot be promised from {_counted(n, alike)}: the most that can be is "
            f"{_rounded_down(most)}; ask for less, accept less confidence, or collect more positives",
            most,
        )
    return float(positives[sure[-1]])


def _rounded_down(share: Any) -> str:
    """Three digits of a share that can still be asked for."""
    return f"{np.floor(1000 * share + 1e-9) / 1000:.3f}"


def _counted(positives: int, less: float) -> str:
    words = f"{positives} held-out positives"
    return f"{words} that are worth {positives / less:.0f} for belonging together" if less > 1 else words


def rates_at(score: FloatArray, y: IntArray, thresholds: FloatArray) -> tuple[IntArray, IntArray]:
    """How many positives and negatives lie at or above each threshold."""
    hits = np.sum(y == 1) - np.searchsorted(np.sort(score[y == 1]), thresholds, side="left")
    alarms = np.sum(y == 0) - np.searchsorted(np.sort(score[y == 0]), thresholds, side="left")
    return hits, alarms


def precision_threshold(
    score: FloatArray,
    y: IntArray,
    prior: FloatArray,
    wish: Wish,
    groups: npt.ArrayLike | None,
    weight: FloatArray | None,
) -> float:
    """The lowest threshold whose precision is at least the wanted one, with confidence.

    Numbers of alerts are tested in an order that the labels do not decide, each at the full level, until one fails
    (Bauer 1991, "Multiple testing in clinical trials", Statistics in Medicine 10, section 3): from where calibrated
    scores, of rows with these weights, are surest of enough precision on to ever more alerts. Without weights the
    scores are not taken at their word: the tests begin at a dozen numbers, which share the level.
    """
    order = np.argsort(-score, kind="stable")
    looks = np.unique(np.geomspace(3, len(order), _LOOKS).astype(int).clip(1, len(order)))
    thresholds = score[order][looks - 1]
    every = np.arange(0, len(looks), _LOOKS // _STARTS)
    error = (1 - wish.confidence) / (1 if weight is not None else len(every))
    low = _least_precision(*rates_at(score, y, thresholds), y, prior, error, groups)
    expected = low
    if weight is not None:
        w = weight[order]
        expected = (np.cumsum(w * score[order]) / np.maximum(np.cumsum(w), 1e-300))[looks - 1]

    def last(level: float) -> int:
        """The last test in a row that is passed; −1 where the first one fails."""
        starts = every if weight is None else [int(((expected - level) * np.sqrt(looks)).argmax())]
        passed = [(s, int(np.minimum.accumulate(low[s:] >= level).sum())) for s in starts]
        return int(max((s + run - 1 for s, run in passed if run), default=-1))

    level = wish.level or 0.0
    if (found := last(level)) >= 0:
        return float(thresholds[found])
    less = (step / 1000 for step in range(int(1000 * level), 0, -1))
    most = next((share for share in less if last(share) >= 0), 0.0)
    positives = _counted(int(np.sum(y == 1)), largest_effect(groups, y == 1))
    raise UnmetWish(
        f"{wish.words} cannot be promised from {positives}: the most that can be is {most:.3f}; ask for less, "
        "accept less confidence, or collect more positives",
        most,
    )


def _least_precision(
    hits: IntArray,
    alarms: IntArray,
    y: IntArray,
    prior: FloatArray,
    error: float,
    groups: npt.ArrayLike | None,
) -> FloatArray:
    """Lower bounds of the precision, each of which fails with a probability of at most ``error``.

    Of rows as they come the share of hits among the alerts is binomial (Clopper & Pearson 1934). At another prior,
    or where rows belong together, recall is bounded below and the share of false alarms above.
    """
    if groups is None and np.isclose(prior[1], np.mean(y == 1), rtol=1e-9):
        return binomial_interval(hits, hits + alarms, 1 - 2 * error)[0]
    less_yes, less_no = largest_effect(groups, y == 1), largest_effect(groups, y == 0)
    recall = binomial_interval(hits / less_yes, np.sum(y == 1) / less_yes, 1 - error)[0]
    false = binomial_interval(alarms / less_no, np.sum(y == 0) / less_no, 1 - error)[1]
    return prior[1] * recall / np.maximum(prior[1] * recall + prior[0] * false, 1e-300)
