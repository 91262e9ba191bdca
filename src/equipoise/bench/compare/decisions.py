"""From probabilities to classes: argmax of p·w. In a binary task w = (t, 1−t) is the threshold t."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.metrics import balanced_accuracy_score

from equipoise._core.checks import FloatArray, IntArray

STRENGTHS = np.linspace(
    0, 1.5, 31
)  # of the prior's removal: 0 is plain argmax, 1 the Bayes rule of balanced accuracy


def decide(proba: npt.ArrayLike, weights: npt.ArrayLike) -> IntArray:
    """Class codes: the largest p·w; a binary tie goes to the positive class, as p ≥ t."""
    p = np.asarray(proba, dtype=np.float64) * np.asarray(weights, dtype=np.float64)
    if p.shape[1] == 2:
        return (p[:, 1] >= p[:, 0]).astype(np.int64)
    return p.argmax(axis=1)


def threshold_weights(threshold: float) -> FloatArray:
    """The decision weights of a binary threshold.

    >>> threshold_weights(0.2)
    array([0.2, 0.8])
    """
    return np.array([threshold, 1 - threshold])


def threshold_of(weights: npt.ArrayLike) -> float:
    """The binary threshold of decision weights, the inverse of :func:`threshold_weights`."""
    negative, positive = np.asarray(weights, dtype=np.float64)
    return float(negative / (negative + positive))


def prior_weights(trained: FloatArray, data: FloatArray) -> FloatArray:
    """The weights under which data-prior probabilities give the argmax of the training prior."""
    ratio = np.divide(trained, data, out=np.zeros_like(trained), where=data > 0)
    return ratio / ratio.sum()


def binary_losses(
    positive: FloatArray, y: IntArray, cost: tuple[float, float] | None
) -> tuple[FloatArray, FloatArray]:
    """Every threshold that tells two predictions apart, and its loss: mean cost, or 1 − balanced accuracy."""
    order = np.argsort(positive, kind="stable")
    p, truth = positive[order], y[order]
    n_pos, n_neg = int(truth.sum()), int((1 - truth).sum())
    # With the threshold just above the k lowest predictions, those k are called negative.
    missed = np.concatenate([[0], np.cumsum(truth)])
    alarms = n_neg - np.concatenate([[0], np.cumsum(1 - truth)])
    if cost is None:
        loss = 0.5 * (missed / max(n_pos, 1) + alarms / max(n_neg, 1))
    else:
        loss = (cost[0] * alarms + cost[1] * missed) / len(truth)
    edges = np.concatenate([[0.0], p, [1.0]])
    cuts = (edges[:-1] + edges[1:]) / 2
    # No threshold calls a probability of 1 negative.
    distinct = np.concatenate([[True], np.diff(p) > 0, [p[-1] < 1]])
    return cuts[distinct], loss[distinct]


def tune_threshold(positive: FloatArray, y: IntArray, cost: tuple[float, float] | None) -> float:
    """The threshold of least loss on held-out predictions, steadied by the bootstrap.

    The minimizer on few positives jumps with every row. Here the loss curve is averaged over resampled rows
    before its minimum is taken, which is the minimizer's answer for data that might as well have come.
    """
    cuts, loss = binary_losses(positive, y, cost)
    if len(cuts) > 3:
        width = max(1, int(0.02 * len(cuts)))
        mass = np.convolve(
            np.pad(loss, width, mode="edge"), np.ones(2 * width + 1) / (2 * width + 1), "valid"
        )
        # The smoothed curve decides between ties and near-ties; a clear minimum keeps its place.
        loss = 0.5 * (loss + mass)
    best = np.flatnonzero(loss <= loss.min() + 1e-12)
    return float(cuts[best[len(best) // 2]])


def tune_weights(
    proba: FloatArray, y: IntArray, prior: FloatArray, cost: tuple[float, float] | None = None
) -> FloatArray:
    """Decision weights chosen on held-out predictions: a threshold, or for many classes prior^−s."""
    if proba.shape[1] == 2:
        return threshold_weights(tune_threshold(proba[:, 1], y, cost))
    candidates = [np.where(prior > 0, prior, 1.0) ** -s for s in STRENGTHS]
    scores = [balanced_accuracy_score(y, decide(proba, w)) for w in candidates]
    best = np.flatnonzero(np.asarray(scores) >= max(scores) - 1e-12)
    weights = candidates[best[len(best) // 2]]
    return weights / weights.sum()
