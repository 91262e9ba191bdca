"""How sure is a metric? Bootstrap intervals, stratified by class and evaluated for many resamples at once.

A resample is a row of weights, so that scores are sorted once for all of them. ``scipy.stats.bootstrap`` resamples
the rows themselves, without strata, and calls the metric for each: 6 to 130 times as long for average precision and
recall. Given a function of all resamples at once it is quicker (.2 to .8) for a plain count such as the recall
(``benchmarks/library_choices.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtr, ndtri

from equipoise._core.checks import (
    FloatArray,
    IntArray,
    check_choice,
    check_fraction,
    check_integer,
    check_same_length,
)
from equipoise._core.random import RandomState, as_generator, draw_seed
from equipoise.metrics._inputs import AnyArray, check_labels, proba_input
from equipoise.metrics._kernels import Statistic
from equipoise.metrics._registry import Metric, get_metric

METHODS = ("percentile", "bca", "basic")
_CELLS = 4_000_000  # weights held at once: 32 MB
_GROUPS = 200  # groups a stratum of the jackknife, which estimates only BCa's acceleration


@dataclass(frozen=True)
class BootstrapInterval:
    """An estimate between two bounds.

    Attributes
    ----------
    estimate : float
        The value on the samples at hand.
    low : float
        The lower bound.
    high : float
        The upper bound.
    standard_error : float
        The standard deviation over the resamples.
    confidence : float
        The nominal coverage.
    method : str
        How the bounds were found: ``"percentile"``, ``"bca"`` or ``"basic"``.
    n_resamples : int
        How many resamples were drawn.

    Examples
    --------
    >>> 0.5 in BootstrapInterval(0.45, 0.4, 0.6, 0.05, 0.95, "percentile", 1000)
    True
    """

    estimate: float
    low: float
    high: float
    standard_error: float
    confidence: float
    method: str
    n_resamples: int

    def __contains__(self, value: float) -> bool:
        return bool(self.low <= value <= self.high)

    def __str__(self) -> str:
        return f"{self.estimate:.4g} [{self.low:.4g}, {self.high:.4g}]"


def _strata(y_true: AnyArray, stratified: bool) -> list[IntArray]:
    if not stratified:
        return [np.arange(y_true.size)]
    codes = np.unique(y_true, return_inverse=True)[1]
    return [np.flatnonzero(codes == c) for c in range(codes.max() + 1)]


def resample_weights(strata: Sequence[IntArray], count: int, rng: np.random.Generator) -> FloatArray:
    """``count`` bootstrap resamples as counts, each stratum keeping its size."""
    n = sum(part.size for part in strata)
    weights = np.empty((count, n))
    for part in strata:
        drawn = rng.integers(0, part.size, (count, part.size)) + part.size * np.arange(count)[:, None]
        weights[:, part] = np.bincount(drawn.ravel(), minlength=count * part.size).reshape(count, -1)
    return weights


def _chunks(total: int, n: int) -> Iterator[int]:
    size = max(1, _CELLS // n)
    for start in range(0, total, size):
        yield min(size, total - start)


def _by_row(function: Callable[[IntArray], float]) -> Statistic:
    """A plain function of indices as a statistic of weights."""

    def statistic(weights: FloatArray) -> FloatArray:
        every = np.arange(weights.shape[1])
        return np.array([function(np.repeat(every, row.astype(np.int64))) for row in weights])

    return statistic


def _acceleration(statistic: Statistic, strata: Sequence[IntArray], rng: np.random.Generator) -> float:
    """BCa's acceleration by a delete-a-group jackknife, for several independent samples.

    a = Σ U³/g³ / (6·(Σ U²/g²)^(3/2)), where U = (g − 1)·(mean − value without the group), summed over the g
    groups of every stratum; with groups of one it is the usual jackknife (Efron & Tibshirani 1993, Eq 14.15).
    """
    n = sum(part.size for part in strata)
    cubes = squares = 0.0
    for part in strata:
        groups = np.array_split(rng.permutation(part), min(part.size, _GROUPS))
        if len(groups) < 2:
            continue
        values: list[float] = []
        for size in _chunks(len(groups), n):
            weights = np.ones((size, n))
            for row, group in zip(weights, groups[len(values) : len(values) + size], strict=True):
                row[group] = 0
            values.extend(statistic(weights))
        left_out = np.array(values)
        influence = (len(groups) - 1) * (left_out.mean() - left_out)
        cubes += float((influence**3).sum()) / len(groups) ** 3
        squares += float((influence**2).sum()) / len(groups) ** 2
    return cubes / (6 * squares**1.5) if squares > 0 else 0.0


def _bounds(
    values: FloatArray, estimate: float, method: str, confidence: float, acceleration: float
) -> tuple[float, float]:
    tails = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    if method == "bca":
        share = ((values < estimate).mean() + (values <= estimate).mean()) / 2
        edge = 1 / (values.size + 1)
        shift = ndtri(np.clip(share, edge, 1 - edge))
        z = shift + ndtri(tails)
        tails = ndtr(shift + z / (1 - acceleration * z))
    low, high = np.quantile(values, tails)
    return (2 * estimate - high, 2 * estimate - low) if method == "basic" else (low, high)


def bootstrap(
    statistic: Statistic,
    strata: Sequence[IntArray],
    *,
    estimate: float | None = None,
    confidence: float = 0.95,
    method: str = "percentile",
    n_resamples: int = 1000,
    random_state: RandomState = None,
) -> BootstrapInterval:
    """An interval for a statistic of weights; :func:`bootstrap_interval` is the usual way in.

    Parameters
    ----------
    statistic
        Weights of the shape (resamples, samples) → one value per resample.
    strata
        Indices of the samples that are resampled among each other.
    """
    confidence = float(check_fraction("confidence", confidence))
    check_choice("method", method, METHODS)
    check_integer("n_resamples", n_resamples, low=2)
    rng = as_generator(random_state)
    n = sum(part.size for part in strata)
    if estimate is None:
        estimate = float(statistic(np.ones((1, n)))[0])
    values = np.concatenate(
        [statistic(resample_weights(strata, size, rng)) for size in _chunks(n_resamples, n)]
    )
    undefined = int(np.isnan(values).sum())
    if undefined:
        raise ValueError(
            f"the metric is undefined in {undefined} of {n_resamples} resamples (a class is missing); "
            "use stratified=True"
        )
    acceleration = _acceleration(statistic, strata, rng) if method == "bca" else 0.0
    low, high = _bounds(values, estimate, method, confidence, acceleration)
    spread = float(values.std(ddof=1))
    return BootstrapInterval(estimate, float(low), float(high), spread, confidence, method, n_resamples)


def _statistic(
    metric: str | Metric | Callable[..., float],
    y_true: AnyArray,
    values: npt.ArrayLike,
    keywords: dict[str, Any],
) -> tuple[float, Statistic]:
    """The metric's value, which also checks the input, and its form on weights."""
    found = get_metric(metric) if isinstance(metric, (str, Metric)) else None
    keywords = {**found.params, **keywords} if found else keywords
    function = found.function if found else metric
    if not callable(function):
        raise TypeError(f"metric must be a name, a Metric or a function, got {type(metric).__name__}")
    table = np.asarray(values)
    check_same_length(y_true=y_true, values=table)
    estimate = float(function(y_true, table, **keywords))
    if found and found.weighted:
        return estimate, found.weighted(y_true, table, **keywords)
    return estimate, _by_row(lambda rows: float(function(y_true[rows], table[rows], **keywords)))


def bootstrap_interval(
    metric: str | Metric | Callable[..., float],
    y_true: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    confidence: float = 0.95,
    method: str = "percentile",
    n_resamples: int = 1000,
    stratified: bool = True,
    random_state: RandomState = None,
    **keywords: Any,
) -> BootstrapInterval:
    """A metric with its bootstrap interval.

    Parameters
    ----------
    metric : str, Metric or callable
        A name in ``METRICS``, a :class:`Metric`, or any function ``(y_true, values) → float`` (slower: it is
        called once a resample).
    y_true : array of shape (samples,)
        The true labels.
    values : array
        Labels, scores or probabilities, whatever the metric needs.
    confidence : float
        The nominal coverage of the interval.
    method : {"percentile", "bca", "basic"}
        ``"percentile"``, ``"bca"`` (corrected for bias and skewness) or ``"basic"``.
    n_resamples : int
        The number of bootstrap resamples.
    stratified : bool
        Keep the class counts in every resample, so that no class can vanish. Without it the class counts vary
        too, and metrics that need both classes may be undefined in a resample.
    random_state : int, generator or None
        The source of the resamples.
    **keywords : Any
        For the metric.

    Returns
    -------
    BootstrapInterval
        The estimate with its bounds and standard error.

    Raises
    ------
    ValueError
        If the metric is undefined in a resample.

    References
    ----------
    Efron & Tibshirani (1993), An Introduction to the Bootstrap, chapters 13 and 14.

    Examples
    --------
    >>> interval = bootstrap_interval("auc", [0, 0, 0, 1, 1, 1], [.1, .4, .2, .3, .9, .8], random_state=0)
    >>> print(interval)
    0.8889 [0.5556, 1]
    """
    true = check_labels("y_true", y_true)
    estimate, statistic = _statistic(metric, true, values, keywords)
    return bootstrap(
        statistic,
        _strata(true, stratified),
        estimate=estimate,
        confidence=confidence,
        method=method,
        n_resamples=n_resamples,
        random_state=random_state,
    )


def bootstrap_difference(
    metric: str | Metric | Callable[..., float],
    y_true: npt.ArrayLike,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    confidence: float = 0.95,
    method: str = "percentile",
    n_resamples: int = 1000,
    stratified: bool = True,
    random_state: RandomState = None,
    **keywords: Any,
) -> BootstrapInterval:
    """The difference ``first − second`` of a metric between two models on the same samples.

    Both see the same resamples, so what they have in common cancels.

    Parameters
    ----------
    metric : str, Metric or callable
        As in :func:`bootstrap_interval`.
    y_true : array of shape (samples,)
        The true labels.
    first : array
        What the first model predicts: labels, scores or probabilities, whatever the metric needs.
    second : array
        What the second model predicts.
    confidence : float
        The nominal coverage of the interval.
    method : {"percentile", "bca", "basic"}
        The kind of bootstrap interval.
    n_resamples : int
        The number of bootstrap resamples.
    stratified : bool
        Whether to keep the class counts in every resample.
    random_state : int, generator or None
        The source of the resamples.
    **keywords : Any
        Keywords of the metric.

    Returns
    -------
    BootstrapInterval
        The difference with its bounds and standard error.

    Examples
    --------
    >>> y = [0, 0, 0, 1, 1, 1]
    >>> good, poor = [.1, .2, .3, .7, .8, .9], [.1, .8, .2, .3, .9, .4]
    >>> print(bootstrap_difference("auc", y, good, poor, random_state=0))
    0.2222 [0, 0.6667]
    """
    true = check_labels("y_true", y_true)
    a, left = _statistic(metric, true, first, keywords)
    b, right = _statistic(metric, true, second, keywords)
    return bootstrap(
        lambda weights: left(weights) - right(weights),
        _strata(true, stratified),
        estimate=a - b,
        confidence=confidence,
        method=method,
        n_resamples=n_resamples,
        random_state=random_state,
    )


def interval_table(
    y_true: npt.ArrayLike,
    proba: npt.ArrayLike,
    metrics: Sequence[str | Metric],
    *,
    labels: npt.ArrayLike | None = None,
    pos_label: Hashable | None = None,
    random_state: RandomState = None,
    **options: Any,
) -> pd.DataFrame:
    """Several metrics with their intervals from one table of class probabilities, on the same resamples.

    ``options`` are those of :func:`bootstrap_interval`.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    proba : array of shape (samples, classes) or (samples,)
        The class probabilities, a column for each label; with two classes a vector holds those of the
        second.
    metrics : sequence of str or Metric
        The metrics.
    labels : array, optional
        The labels of the columns of ``proba``; by default the sorted labels of ``y_true``.
    pos_label : label, optional
        The positive class of two; by default the last in sorted order.
    random_state : int, generator or None
        The source of the resamples.
    **options : Any
        Options of :func:`bootstrap_interval`.

    Returns
    -------
    DataFrame
        A row for each metric with its estimate, bounds and standard error.

    Examples
    --------
    >>> table = interval_table([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], ["auc", "brier"], random_state=0)
    >>> table.columns.tolist()
    ['estimate', 'low', 'high', 'standard_error']
    """
    _, table, classes, _ = proba_input(y_true, proba, labels)
    true = check_labels("y_true", y_true)
    seed = draw_seed(random_state)
    rows = {}
    for name in metrics:
        found = get_metric(name)
        values, keywords = found.arguments(true, table, labels=classes, pos_label=pos_label)
        got = bootstrap_interval(found, true, values, random_state=seed, **options, **keywords)
        rows[found.name] = (got.estimate, got.low, got.high, got.standard_error)
    columns = ["estimate", "low", "high", "standard_error"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)
