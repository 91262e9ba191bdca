"""Operating points: every threshold of a score, and the best of them. A sample is called positive if score ≥
threshold.

All of it is exact over all thresholds and costs one sort, O(n log n).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray, check_choice, check_in_range, check_positive
from equipoise.metrics import _kernels as kernels
from equipoise.metrics._inputs import check_costs, check_labels, classes_of, positive_class, score_input
from equipoise.metrics._registry import metric
from equipoise.metrics.by_class import costs_by_name

OBJECTIVES = ("f_beta", "balanced_accuracy", "g_mean", "precision", "recall", "accuracy", "cost")


@dataclass(frozen=True)
class ThresholdCurve:
    """What every distinct threshold does, from +∞ (nothing is positive) down to the lowest score (all is).

    Attributes
    ----------
    thresholds : array
        The distinct thresholds in falling order; the first is +∞.
    hits : array
        The weight of the true positives at each threshold.
    alarms : array
        The weight of the false positives at each threshold.
    """

    thresholds: FloatArray
    hits: FloatArray
    alarms: FloatArray

    @property
    def recall(self) -> FloatArray:
        """The share of the positives that each threshold finds."""
        return self.hits / self.hits[-1]

    @property
    def specificity(self) -> FloatArray:
        """The share of the negatives that each threshold leaves alone."""
        return 1 - self.alarms / self.alarms[-1]

    @property
    def precision(self) -> FloatArray:
        """The share of what is called positive that is, at each threshold; one where nothing is called positive."""
        return kernels.ratio(self.hits, self.hits + self.alarms, 1.0)

    @property
    def prevalence(self) -> float:
        """The share of the positives among all samples."""
        return float(self.hits[-1] / (self.hits[-1] + self.alarms[-1]))

    def f_beta(self, beta: float = 1.0) -> FloatArray:
        """F-beta at each threshold.

        Parameters
        ----------
        beta : float
            Recall weighs ``beta``² times as much as precision in F-beta.

        Returns
        -------
        array
            A value for each threshold.
        """
        return kernels.ratio((1 + beta**2) * self.hits, beta**2 * self.hits[-1] + self.hits + self.alarms)

    def cost(self, cost_matrix: npt.ArrayLike) -> FloatArray:
        """Mean cost a sample of ``cost_matrix[truth, decision]``, negatives first.

        Parameters
        ----------
        cost_matrix : array of shape (2, 2)
            ``cost_matrix[truth, decision]``, negatives first.

        Returns
        -------
        array
            The mean cost at each threshold.
        """
        costs = check_costs(cost_matrix, 2)
        positives, negatives = self.hits[-1], self.alarms[-1]
        paid = (
            costs[1, 1] * self.hits
            + costs[1, 0] * (positives - self.hits)
            + costs[0, 1] * self.alarms
            + costs[0, 0] * (negatives - self.alarms)
        )
        return paid / (positives + negatives)


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold and what it does; +∞ means that nothing is called positive.

    Attributes
    ----------
    threshold : float
        From this score on a sample is called positive.
    value : float
        The value of the objective there.
    recall : float
        The share of the positives that is found.
    specificity : float
        The share of the negatives that is left alone.
    precision : float
        The share of what is called positive that is.
    """

    threshold: float
    value: float
    recall: float
    specificity: float
    precision: float


def threshold_curve(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    pos_label: Hashable | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> ThresholdCurve:
    """Hits and false alarms at every distinct threshold.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels, of two classes.
    y_score : array of shape (samples,)
        Scores that grow with the probability of the positive class.
    pos_label : label, optional
        The positive class; by default the last in sorted order.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    ThresholdCurve
        The distinct thresholds with the weight of hits and false alarms at each.

    Examples
    --------
    >>> curve = threshold_curve([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8])
    >>> curve.thresholds.tolist(), curve.recall.tolist()
    ([inf, 0.8, 0.5, 0.4, 0.1], [0.0, 0.5, 0.5, 1.0, 1.0])
    """
    positive, score, weight = score_input(y_true, y_score, pos_label, sample_weight)
    order, ends = kernels.sorted_ends(score)
    ordered = np.ones(score.size) if weight is None else weight[order]
    truth = positive[order]
    return ThresholdCurve(
        np.append(np.inf, score[order][ends]),
        kernels.cumulated(truth, ends, ordered),
        kernels.cumulated(~truth, ends, ordered),
    )


def _objective(
    curve: ThresholdCurve, name: str, beta: float, cost_matrix: npt.ArrayLike | None
) -> FloatArray:
    """Values to maximize."""
    if name == "f_beta":
        check_positive("beta", beta)
        return curve.f_beta(beta)
    if name == "balanced_accuracy":
        return (curve.recall + curve.specificity) / 2
    if name == "g_mean":
        return np.sqrt(curve.recall * curve.specificity)
    if name == "accuracy":
        return curve.prevalence * curve.recall + (1 - curve.prevalence) * curve.specificity
    if name == "cost":
        if cost_matrix is None:
            raise ValueError("cost_matrix must be given for the objective 'cost', got None")
        return -curve.cost(cost_matrix)
    return curve.precision if name == "precision" else curve.recall


def best_threshold(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    objective: str = "f_beta",
    *,
    beta: float = 1.0,
    min_recall: float = 0.0,
    min_precision: float = 0.0,
    cost_matrix: npt.ArrayLike | None = None,
    pos_label: Hashable | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> OperatingPoint:
    """The best of all thresholds, among those with enough recall and precision.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels, of two classes.
    y_score : array of shape (samples,)
        Scores that grow with the probability of the positive class.
    objective : str
        One of ``"f_beta"``, ``"balanced_accuracy"``, ``"g_mean"``, ``"precision"``, ``"recall"``,
        ``"accuracy"`` or ``"cost"``, whose value is the mean of ``cost_matrix[truth, decision]`` (negatives
        first) and is minimized. Among equals the highest threshold wins.
    beta : float
        Recall weighs ``beta``² times as much as precision in F-beta.
    min_recall, min_precision : float
        Constraints. If no threshold meets them, the error says how near one comes.
    cost_matrix : array of shape (2, 2), DataFrame or mapping, optional
        For the objective ``"cost"``, which needs it. A DataFrame or a mapping names the classes.
    pos_label : label, optional
        The positive class; by default the last in sorted order.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    OperatingPoint
        The threshold, the value of the objective there, and what the threshold does.

    Raises
    ------
    ValueError
        If no threshold meets the constraints.

    Notes
    -----
    Choose the threshold on data that neither trained the model nor judge it.

    Examples
    --------
    >>> best_threshold([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8]).threshold
    0.4
    >>> best_threshold([1, 0, 0, 1], [0.1, 0.4, 0.5, 0.4], "recall", min_precision=0.9)
    Traceback (most recent call last):
    ...
    ValueError: no threshold reaches min_precision=0.9 with min_recall=0; the best precision is 0.5
    """
    check_choice("objective", objective, OBJECTIVES)
    low_recall = float(check_in_range("min_recall", min_recall, 0, 1))
    low_precision = float(check_in_range("min_precision", min_precision, 0, 1))
    curve = threshold_curve(y_true, y_score, pos_label=pos_label, sample_weight=sample_weight)
    classes = classes_of(None, ("y_true", check_labels("y_true", y_true)))
    last = positive_class(classes, pos_label)
    named = costs_by_name(cost_matrix, [*(c for c in classes.tolist() if c != last), last])
    cost_matrix = cost_matrix if named is None else named
    values = _objective(curve, objective, beta, cost_matrix)
    enough = curve.recall >= low_recall - 1e-12
    fine = enough & (curve.precision >= low_precision - 1e-12)
    if objective == "precision" or low_precision > 0:
        fine[0] = False  # nothing is called positive: its precision is empty
        enough[0] = False
    if not fine.any():
        raise ValueError(
            f"no threshold reaches min_precision={low_precision:g} with min_recall={low_recall:g}; "
            f"the best precision is {curve.precision[enough].max():.4g}"
        )
    at = int(np.where(fine, values, -np.inf).argmax())
    value = float(values[at])
    return OperatingPoint(
        float(curve.thresholds[at]),
        -value if objective == "cost" else value,
        float(curve.recall[at]),
        float(curve.specificity[at]),
        float(curve.precision[at]),
    )


@metric(needs="scores", multiclass=False, weighted=kernels.from_curve(kernels.best_f_beta))
def best_f1(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    beta: float = 1.0,
    pos_label: Hashable | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Best F1 over all thresholds (F-beta with ``beta``).

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels, of two classes.
    y_score : array of shape (samples,)
        Scores that grow with the probability of the positive class.
    beta : float
        Recall weighs ``beta``² times as much as precision in F-beta.
    pos_label : label, optional
        The positive class; by default the last in sorted order.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> best_f1([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8])
    0.8
    """
    keywords: dict[str, Any] = {"pos_label": pos_label, "sample_weight": sample_weight}
    return best_threshold(y_true, y_score, "f_beta", beta=beta, **keywords).value


@metric(needs="scores", multiclass=False, weighted=kernels.from_curve(kernels.best_mean_recall))
def best_balanced_accuracy(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    pos_label: Hashable | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Best balanced accuracy over all thresholds (Lieberman et al., Table 16).

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels, of two classes.
    y_score : array of shape (samples,)
        Scores that grow with the probability of the positive class.
    pos_label : label, optional
        The positive class; by default the last in sorted order.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> best_balanced_accuracy([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8])
    0.75
    """
    keywords: dict[str, Any] = {"pos_label": pos_label, "sample_weight": sample_weight}
    return best_threshold(y_true, y_score, "balanced_accuracy", **keywords).value


@metric(needs="scores", multiclass=False, weighted=kernels.from_curve(kernels.precision_where))
def precision_at_recall(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    min_recall: float = 0.99,
    pos_label: Hashable | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Precision at recall ≥ r: the highest over the thresholds whose recall is at least ``min_recall``.

    The lowest threshold finds everything, so there always is one; the value is at least the prevalence.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels, of two classes.
    y_score : array of shape (samples,)
        Scores that grow with the probability of the positive class.
    min_recall : float
        The least recall.
    pos_label : label, optional
        The positive class; by default the last in sorted order.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> precision_at_recall([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8], min_recall=0.5)
    1.0
    """
    keywords: dict[str, Any] = {"pos_label": pos_label, "sample_weight": sample_weight}
    return best_threshold(y_true, y_score, "precision", min_recall=min_recall, **keywords).value


@metric(needs="scores", multiclass=False, weighted=kernels.from_curve(kernels.recall_where))
def recall_at_precision(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    min_precision: float = 0.9,
    pos_label: Hashable | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Recall at precision ≥ p: the highest over the thresholds whose precision is at least ``min_precision``.

    Zero if no threshold is that precise: then only calling nothing positive is. (:func:`best_threshold`
    raises an error there and says how near one comes.)

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels, of two classes.
    y_score : array of shape (samples,)
        Scores that grow with the probability of the positive class.
    min_precision : float
        The least precision.
    pos_label : label, optional
        The positive class; by default the last in sorted order.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> recall_at_precision([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8], min_precision=0.9)
    0.5
    """
    wanted = float(check_in_range("min_precision", min_precision, 0, 1))
    curve = threshold_curve(y_true, y_score, pos_label=pos_label, sample_weight=sample_weight)
    return float(kernels.recall_where(curve.hits, curve.alarms, wanted))
