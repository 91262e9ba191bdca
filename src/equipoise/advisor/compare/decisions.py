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
    positive: FloatArray,
    y: IntArray,
    cost: tuple[float, float] | None,
    row_weight: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Every threshold that tells two predictions apart, and its loss: mean cost, or 1 − balanced accuracy."""
    order = np.argsort(positive, kind="stable")
    p, w = positive[order], (np.ones(len(y)) if row_weight is None else row_weight[order])
    on_positive, on_negative = w * (y[order] == 1), w * (y[order] == 0)
    # With the threshold just above the k lowest predictions, those k are called negative.
    missed = np.concatenate([[0.0], np.cumsum(on_positive)])
    alarms = on_negative.sum() - np.concatenate([[0.0], np.cumsum(on_negative)])
    if cost is None:
        loss = 0.5 * (missed / max(on_positive.sum(), 1e-300) + alarms / max(on_negative.sum(), 1e-300))
    else:
        loss = (cost[0] * alarms + cost[1] * missed) / w.sum()
    edges = np.concatenate([[0.0], p, [1.0]])
    cuts = (edges[:-1] + edges[1:]) / 2
    # No threshold calls a probability of 1 negative.
    distinct = np.concatenate([[True], np.diff(p) > 0, [p[-1] < 1]])
    return cuts[distinct], loss[distinct]


def tune_threshold(
    positive: FloatArray,
    y: IntArray,
    cost: tuple[float, float] | None,
    row_weight: FloatArray | None = None,
) -> float:
    """The threshold of least loss on held-out predictions, between near-ties the one with the flattest
    surroundings.

    The exact minimizer on few positives jumps with every row. The loss is averaged with its own running mean over
    2 % of the thresholds to either side, so that a lone dip loses against a broad one.
    """
    cuts, loss = binary_losses(positive, y, cost, row_weight)
    width = int(0.02 * len(cuts))
    if width:
        kernel = np.ones(2 * width + 1) / (2 * width + 1)
        loss = 0.5 * (loss + np.convolve(np.pad(loss, width, mode="edge"), kernel, "valid"))
    best = np.flatnonzero(loss <= loss.min() + 1e-12)
    return float(cuts[best[len(best) // 2]])


def threshold_for_recall(positive: FloatArray, y: IntArray, recall: float) -> float:
    """The highest threshold that still finds at least ``recall`` of the positives.

    >>> threshold_for_recall(np.array([0.1, 0.3, 0.6, 0.9]), np.array([0, 1, 1, 1]), 0.6)
    0.6
    """
    found = np.sort(positive[y == 1])[::-1]
    return float(found[int(np.ceil(recall * len(found) - 1e-9)) - 1])


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
