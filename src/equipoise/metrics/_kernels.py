"""The metrics' equations on counts, for many weightings of the samples at once.

A bootstrap resample is a vector of counts, one a sample. So each metric is also a function of a weight
matrix of the shape (resamples, samples): labels become weighted tallies a class, scores become weighted
counts along one sorted list of thresholds, losses become weighted means. Nothing is sorted or encoded twice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from equipoise._core.checks import FloatArray, IntArray
from equipoise.metrics._inputs import AnyArray, encode, label_input, positive_class, proba_input, score_input

Statistic: TypeAlias = "Callable[[FloatArray], FloatArray]"
"""Weights of the shape (resamples, samples) → one value a resample."""


def ratio(numerator: FloatArray, denominator: FloatArray, empty: float = 0.0) -> FloatArray:
    """Quotient, with ``empty`` where the denominator is zero."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    out = np.full(numerator.shape, empty)
    return np.divide(numerator, denominator, out=out, where=denominator != 0)


# --- tallies of labels, (resamples, classes) -------------------------------------------------------------


@dataclass(frozen=True)
class Tallies:
    """Weight of the samples per class: those it is called rightly, those that are it, those that are called it."""

    hits: FloatArray
    actual: FloatArray
    called: FloatArray

    @property
    def total(self) -> FloatArray:
        return self.actual.sum(-1)


def tally(true: IntArray, predicted: IntArray, n_classes: int, weights: FloatArray) -> Tallies:
    """Margins and diagonal of the weighted confusion matrices, one a row of ``weights``."""

    def sums(codes: IntArray, values: FloatArray) -> FloatArray:
        which = sparse.csr_array((values, (codes, np.arange(codes.size))), shape=(n_classes, codes.size))
        return np.asarray(which @ weights.T, dtype=np.float64).T

    ones = np.ones(true.size)
    return Tallies(sums(true, (true == predicted) * ones), sums(true, ones), sums(predicted, ones))


def class_recalls(counts: Tallies) -> FloatArray:
    """Share of each class that is found; NaN where the class does not occur."""
    return ratio(counts.hits, counts.actual, np.nan)


def class_specificities(counts: Tallies) -> FloatArray:
    """Share of the other classes that is not called this class; NaN where the class does not occur."""
    rest = counts.total[..., None] - counts.actual
    cleared = ratio(rest - counts.called + counts.hits, rest, np.nan)
    return np.where(counts.actual > 0, cleared, np.nan)


def class_precisions(counts: Tallies) -> FloatArray:
    return ratio(counts.hits, counts.called)


def class_f_betas(counts: Tallies, beta: float = 1.0) -> FloatArray:
    return ratio((1 + beta**2) * counts.hits, beta**2 * counts.actual + counts.called)


def error_rate(counts: Tallies) -> FloatArray:
    return 1 - counts.hits.sum(-1) / counts.total


def mean_present(values: FloatArray) -> FloatArray:
    """Mean over the classes that occur."""
    return np.nanmean(values, axis=-1)


def g_mean_macro(counts: Tallies) -> FloatArray:
    return np.sqrt(mean_present(class_recalls(counts)) * mean_present(class_specificities(counts)))


def g_mean_per_class(counts: Tallies) -> FloatArray:
    return mean_present(np.sqrt(class_recalls(counts) * class_specificities(counts)))


def g_mean(counts: Tallies) -> FloatArray:
    recalls = class_recalls(counts)
    with np.errstate(divide="ignore"):  # a class without a hit makes the product zero
        return np.exp(mean_present(np.log(recalls)))


def from_tallies(kernel: Callable[[Tallies], FloatArray]) -> Callable[..., Statistic]:
    """A metric that is one number of the tallies, as a statistic of the weights."""

    def prepare(
        y_true: npt.ArrayLike, y_pred: npt.ArrayLike, *, labels: npt.ArrayLike | None = None
    ) -> Statistic:
        true, predicted, _, _ = label_input(y_true, y_pred, labels)
        classes = np.union1d(true, predicted)
        a, b = encode(true, classes), encode(predicted, classes)
        return lambda weights: kernel(tally(a, b, classes.size, weights))

    return prepare


def is_binary(average: str, classes: AnyArray, pos_label: Hashable | None) -> bool:
    """Whether ``average`` means the positive class alone."""
    return average == "binary" or (average == "auto" and (pos_label is not None or classes.size == 2))


def from_classes(
    kernel: Callable[..., FloatArray], mean: Callable[[FloatArray], FloatArray]
) -> Callable[..., Statistic]:
    """A metric of one class (the positive one), or its mean over the classes."""

    def prepare(
        y_true: npt.ArrayLike,
        y_pred: npt.ArrayLike,
        *,
        pos_label: Hashable | None = None,
        average: str = "auto",
        labels: npt.ArrayLike | None = None,
        **params: Any,
    ) -> Statistic:
        true, predicted, known, _ = label_input(y_true, y_pred, labels)
        classes = known if is_binary(average, known, pos_label) else np.union1d(true, predicted)
        a, b = encode(true, classes), encode(predicted, classes)
        position = None
        if is_binary(average, known, pos_label):
            position = classes.tolist().index(positive_class(classes, pos_label))

        def statistic(weights: FloatArray) -> FloatArray:
            values = kernel(tally(a, b, classes.size, weights), **params)
            return mean(values) if position is None else values[..., position]

        return statistic

    return prepare


# --- counts along the sorted scores (..., thresholds) -----------------------------------------------------


def sorted_ends(score: FloatArray) -> tuple[IntArray, IntArray]:
    """The order by falling score, and where each run of equal scores ends in it."""
    order = np.argsort(-score, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(score[order])), score.size - 1)
    return order, ends


def cumulated(positive: npt.NDArray[np.bool_], ends: IntArray, weights: FloatArray) -> FloatArray:
    """Weight of ``positive`` samples at or above each threshold, after a zero for the threshold +∞."""
    sums = np.cumsum(weights * positive, axis=-1)[..., ends]
    return np.concatenate([np.zeros((*sums.shape[:-1], 1)), sums], axis=-1)


def area_under_roc(hits: FloatArray, alarms: FloatArray) -> FloatArray:
    """Trapezoids: ties between classes count one half."""
    total = hits[..., -1] * alarms[..., -1]
    area = (np.diff(alarms) * (hits[..., 1:] + hits[..., :-1]) / 2).sum(-1)
    return ratio(area, total, np.nan)


def step_precision(hits: FloatArray, alarms: FloatArray) -> FloatArray:
    """Average precision: precision at each threshold times the recall that it adds."""
    precision = ratio(hits, hits + alarms)
    return ratio((np.diff(hits) * precision[..., 1:]).sum(-1), hits[..., -1], np.nan)


def best_f_beta(hits: FloatArray, alarms: FloatArray, beta: float = 1.0) -> FloatArray:
    scores = ratio((1 + beta**2) * hits, beta**2 * hits[..., -1:] + hits + alarms)
    return scores.max(-1)


def best_mean_recall(hits: FloatArray, alarms: FloatArray) -> FloatArray:
    recall = ratio(hits, hits[..., -1:], np.nan)
    specificity = 1 - ratio(alarms, alarms[..., -1:], np.nan)
    return ((recall + specificity) / 2).max(-1)


def precision_where(hits: FloatArray, alarms: FloatArray, min_recall: float = 0.99) -> FloatArray:
    enough = ratio(hits, hits[..., -1:], np.nan) >= min_recall - 1e-12
    return np.where(enough, ratio(hits, hits + alarms), -np.inf).max(-1)


def recall_where(hits: FloatArray, alarms: FloatArray, min_precision: float = 0.9) -> FloatArray:
    enough = ratio(hits, hits + alarms, 1.0) >= min_precision - 1e-12
    return np.where(enough, ratio(hits, hits[..., -1:], np.nan), 0.0).max(-1)


def _on_curve(
    kernel: Callable[..., FloatArray], positive: npt.NDArray[np.bool_], score: FloatArray, **params: Any
) -> Statistic:
    """A kernel of hits and false alarms, as a statistic of the weights; the sort is done once."""
    order, ends = sorted_ends(score)
    truth = positive[order]

    def statistic(weights: FloatArray) -> FloatArray:
        ordered = weights[..., order]
        return kernel(cumulated(truth, ends, ordered), cumulated(~truth, ends, ordered), **params)

    return statistic


def from_curve(kernel: Callable[..., FloatArray]) -> Callable[..., Statistic]:
    """A metric of binary scores."""

    def prepare(
        y_true: npt.ArrayLike, y_score: npt.ArrayLike, *, pos_label: Hashable | None = None, **params: Any
    ) -> Statistic:
        positive, score, _ = score_input(y_true, y_score, pos_label)
        return _on_curve(kernel, positive, score, **params)

    return prepare


def one_vs_all(kernel: Callable[..., FloatArray]) -> Callable[..., Statistic]:
    """The mean over the classes that occur of a metric of binary scores."""

    def prepare(
        y_true: npt.ArrayLike, proba: npt.ArrayLike, *, labels: npt.ArrayLike | None = None
    ) -> Statistic:
        codes, table, _, _ = proba_input(y_true, proba, labels, scores=True)
        parts = [_on_curve(kernel, codes == c, table[:, c]) for c in np.unique(codes)]
        return lambda weights: np.mean([part(weights) for part in parts], axis=0)

    return prepare


def from_losses(losses: Callable[..., FloatArray]) -> Callable[..., Statistic]:
    """A metric that is the mean of one loss a sample."""

    def prepare(y_true: npt.ArrayLike, proba: npt.ArrayLike, **params: Any) -> Statistic:
        values = losses(y_true, proba, **params)
        return lambda weights: weights @ values / weights.sum(-1)

    return prepare
