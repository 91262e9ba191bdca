"""Do the probabilities mean what they say? Brier score, log loss, calibration error, reliability curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import sklearn.metrics

from equipoise._core.checks import FloatArray, IntArray, check_choice, check_integer
from equipoise.metrics import _kernels as kernels
from equipoise.metrics._inputs import proba_input
from equipoise.metrics._registry import metric


def _squares(
    y_true: npt.ArrayLike, proba: npt.ArrayLike, *, labels: npt.ArrayLike | None = None
) -> FloatArray:
    codes, table, classes, _ = proba_input(y_true, proba, labels)
    squares = ((table - np.eye(classes.size)[codes]) ** 2).sum(axis=1)
    return squares / 2 if classes.size == 2 else squares


@metric(needs="proba", greater_is_better=False, bounds=(0.0, 2.0), weighted=kernels.from_losses(_squares))
def brier(
    y_true: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Brier score: the mean squared distance between probabilities and truth.

    For two classes (y − p)² of one of them (Lieberman et al., Eq 19, as a mean), within [0, 1]; for more
    the sum over the classes, within [0, 2], as in scikit-learn and in Brier (1950).

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    proba : array of shape (samples, classes) or (samples,)
        The class probabilities, a column for each label; with two classes a vector holds those of the
        second.
    labels : array, optional
        The labels of the columns of ``proba``; by default the sorted labels of ``y_true``.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> brier([0, 1], [0.5, 0.75])
    0.15625
    """
    codes, table, classes, weight = proba_input(y_true, proba, labels, sample_weight)
    if classes.size == 2:
        score = sklearn.metrics.brier_score_loss(codes, table[:, 1], sample_weight=weight, pos_label=1)
        return float(score)
    return float(np.average(_squares(classes[codes], table, labels=classes), weights=weight))


def _logs(y_true: npt.ArrayLike, proba: npt.ArrayLike, *, labels: npt.ArrayLike | None = None) -> FloatArray:
    codes, table, _, _ = proba_input(y_true, proba, labels)
    truth = table[np.arange(codes.size), codes] / table.sum(axis=1)
    tiny = np.finfo(np.float64).eps
    return -np.log(np.clip(truth, tiny, 1 - tiny))


@metric(needs="proba", greater_is_better=False, bounds=(0.0, np.inf), weighted=kernels.from_losses(_logs))
def log_loss(
    y_true: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Log loss: the mean of −log of the true class's probability, clipped at the machine's epsilon.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    proba : array of shape (samples, classes) or (samples,)
        The class probabilities, a column for each label; with two classes a vector holds those of the
        second.
    labels : array, optional
        The labels of the columns of ``proba``; by default the sorted labels of ``y_true``.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> log_loss([0, 1], [0.5, 0.5])
    0.693...
    """
    codes, table, classes, weight = proba_input(y_true, proba, labels, sample_weight)
    table = table / table.sum(axis=1, keepdims=True)
    score = sklearn.metrics.log_loss(codes, table, labels=np.arange(classes.size), sample_weight=weight)
    return float(score)


@dataclass(frozen=True)
class ReliabilityCurve:
    """Bins of confidence: their edges, how confident and how right the model is there, and their weight.

    Attributes
    ----------
    edges : array of shape (bins + 1,)
        The edges of the bins.
    confidence : array of shape (bins,)
        The mean confidence in each bin; NaN where it is empty.
    frequency : array of shape (bins,)
        The observed frequency in each bin; NaN where it is empty.
    weight : array of shape (bins,)
        The share of the samples in each bin.
    """

    edges: FloatArray
    confidence: FloatArray
    frequency: FloatArray
    weight: FloatArray


def _confidence(codes: IntArray, table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Two classes: probability and truth of the second. More: of the class that is called."""
    if table.shape[1] == 2:
        return table[:, 1], (codes == 1).astype(np.float64)
    called = table.argmax(axis=1)
    return table.max(axis=1), (called == codes).astype(np.float64)


def _edges(confidence: FloatArray, n_bins: int, strategy: str) -> FloatArray:
    check_integer("n_bins", n_bins, low=1)
    check_choice("strategy", strategy, ("uniform", "quantile"))
    if strategy == "uniform":
        return np.linspace(0, 1, n_bins + 1)
    inner = np.quantile(confidence, np.linspace(0, 1, n_bins + 1)[1:-1])
    return np.concatenate([[0.0], np.unique(inner), [1.0]])


def _binned(
    codes: IntArray, table: FloatArray, n_bins: int, strategy: str
) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
    """The bins' edges, each sample's bin, confidence and truth. Bins are closed on the right."""
    confidence, right = _confidence(codes, table)
    edges = _edges(confidence, n_bins, strategy)
    bins = np.searchsorted(edges[1:-1], confidence, side="left").astype(np.int64)
    return edges, bins, confidence, right


def reliability_curve(
    y_true: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> ReliabilityCurve:
    """Mean confidence and observed frequency a bin; NaN where a bin is empty.

    With two classes the confidence is the probability of the second class and the frequency its share;
    with more it is that of the called class and the share of right calls.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    proba : array of shape (samples, classes) or (samples,)
        The class probabilities, a column for each label; with two classes a vector holds those of the
        second.
    n_bins : int
        The number of bins of confidence.
    strategy : {"uniform", "quantile"}
        Bins of equal width or of equal weight.
    labels : array, optional
        The labels of the columns of ``proba``; by default the sorted labels of ``y_true``.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    ReliabilityCurve
        The bins with their mean confidence, observed frequency and weight.

    Examples
    --------
    >>> curve = reliability_curve([0, 0, 1, 1], [0.1, 0.3, 0.7, 0.9], n_bins=2)
    >>> curve.confidence, curve.frequency
    (array([0.2, 0.8]), array([0., 1.]))
    """
    codes, table, _, weight = proba_input(y_true, proba, labels, sample_weight)
    edges, bins, confidence, right = _binned(codes, table, n_bins, strategy)
    w = np.ones(codes.size) if weight is None else weight

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(bins, values, edges.size - 1).astype(np.float64)

    mass = total(w)
    return ReliabilityCurve(
        edges,
        kernels.ratio(total(w * confidence), mass, np.nan),
        kernels.ratio(total(w * right), mass, np.nan),
        mass / mass.sum(),
    )


def _prepare_ece(
    y_true: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    labels: npt.ArrayLike | None = None,
) -> kernels.Statistic:
    codes, table = proba_input(y_true, proba, labels)[:2]
    edges, bins, confidence, right = _binned(codes, table, n_bins, strategy)
    gaps = np.eye(edges.size - 1)[bins] * (confidence - right)[:, None]
    return lambda weights: np.abs(weights @ gaps).sum(-1) / weights.sum(-1)


@metric(needs="proba", greater_is_better=False, weighted=_prepare_ece)
def expected_calibration_error(
    y_true: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Expected calibration error: the weighted mean over bins of |confidence − frequency|.

    Bins of equal width (``strategy="uniform"``) or of equal weight (``"quantile"``), see
    :func:`reliability_curve`.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    proba : array of shape (samples, classes) or (samples,)
        The class probabilities, a column for each label; with two classes a vector holds those of the
        second.
    n_bins : int
        The number of bins of confidence.
    strategy : {"uniform", "quantile"}
        Bins of equal width or of equal weight.
    labels : array, optional
        The labels of the columns of ``proba``; by default the sorted labels of ``y_true``.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    References
    ----------
    Naeini, Cooper & Hauskrecht (2015); Guo et al. (2017), Eq 3, for more than two classes.

    Examples
    --------
    >>> expected_calibration_error([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75], n_bins=2)
    0.25
    """
    curve = reliability_curve(
        y_true, proba, n_bins=n_bins, strategy=strategy, labels=labels, sample_weight=sample_weight
    )
    gaps = np.abs(curve.confidence - curve.frequency)
    return float(np.nansum(gaps * curve.weight))
