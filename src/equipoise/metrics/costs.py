"""What decisions cost: a cost matrix, the decision of least expected cost, and cost curves."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.integrate import trapezoid

from equipoise._core.checks import FloatArray, check_in_range, check_integer, check_positive
from equipoise.metrics import _kernels as kernels
from equipoise.metrics._inputs import AnyArray, check_costs, check_weight, encode, label_input
from equipoise.metrics._registry import metric
from equipoise.metrics.by_class import costs_by_name
from equipoise.metrics.thresholds import threshold_curve


def _cost_losses(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    cost_matrix: npt.ArrayLike,
    labels: npt.ArrayLike | None = None,
) -> FloatArray:
    true, predicted, classes, _ = label_input(y_true, y_pred, labels)
    named = costs_by_name(cost_matrix, classes.tolist())
    costs = check_costs(cost_matrix, classes.size) if named is None else named
    return costs[encode(true, classes), encode(predicted, classes)]


@metric(
    needs="labels",
    greater_is_better=False,
    bounds=(-np.inf, np.inf),
    weighted=kernels.from_losses(_cost_losses),
)
def expected_cost(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    cost_matrix: npt.ArrayLike,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Expected cost: the mean of ``cost_matrix[truth, decision]``, classes in the order of ``labels``.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    y_pred : array of shape (samples,)
        The decisions, as labels.
    cost_matrix : array of shape (classes, classes), DataFrame or mapping
        ``cost_matrix[truth, decision]``, classes in the order of ``labels``; a DataFrame or a mapping names them.
    labels : array, optional
        The labels in the order of the cost matrix; by default the sorted labels that occur.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The mean cost per sample.

    Examples
    --------
    >>> expected_cost([0, 0, 1, 1], [0, 1, 1, 0], cost_matrix=[[0, 1], [10, 0]])
    2.75
    """
    losses = _cost_losses(y_true, y_pred, cost_matrix=cost_matrix, labels=labels)
    weight = check_weight(sample_weight, losses)
    return float(np.average(losses, weights=weight))


def cheapest_decision(
    proba: npt.ArrayLike, cost_matrix: npt.ArrayLike, *, labels: npt.ArrayLike | None = None
) -> AnyArray:
    """Bayes' decision: for each row of class probabilities the class of least expected cost.

    Parameters
    ----------
    proba : array of shape (samples, classes)
        The class probabilities.
    cost_matrix : array of shape (classes, classes), DataFrame or mapping
        ``cost_matrix[truth, decision]``, classes in the order of ``labels``; a DataFrame or a mapping names them.
    labels : array, optional
        The labels of the columns; by default 0, 1, ….

    Returns
    -------
    array of shape (samples,)
        The label of the cheapest decision for each row.

    Examples
    --------
    >>> cheapest_decision([[0.95, 0.05], [0.8, 0.2]], [[0, 1], [10, 0]])
    array([0, 1])
    """
    table = check_in_range("proba", proba, 0, 1)
    if table.ndim != 2:
        raise ValueError(f"proba must have the shape (samples, classes), got {table.shape}")
    names = np.arange(table.shape[1]) if labels is None else np.asarray(labels)
    if names.shape != (table.shape[1],):
        raise ValueError(f"labels must name the {table.shape[1]} columns of proba, got {names.tolist()}")
    named = costs_by_name(cost_matrix, names.tolist())
    return names[(table @ (check_costs(cost_matrix, names.size) if named is None else named)).argmin(axis=1)]


@dataclass(frozen=True)
class CostCurve:
    """The least normalized expected cost of a score, for every mix of prior and costs.

    Attributes
    ----------
    probability_cost : array
        From 0 to 1: p·c₊/(p·c₊ + (1−p)·c₋) for a prior p, the cost c₊ of a miss and c₋ of an alarm.
    cost : array
        (1 − recall)·probability_cost + (1 − specificity)·(1 − probability_cost), the least over
        thresholds.
    trivial : array
        The cost of the better of "always" and "never".
    thresholds : array
        Where the least cost is reached.
    """

    probability_cost: FloatArray
    cost: FloatArray
    trivial: FloatArray
    thresholds: FloatArray

    @property
    def area(self) -> float:
        """Mean cost when every probability-cost is as likely; 1/4 for a useless score."""
        return float(trapezoid(self.cost, self.probability_cost))


def probability_cost(prior: npt.ArrayLike, miss_cost: float, alarm_cost: float) -> FloatArray:
    """Where on a cost curve a prior and two costs lie.

    Parameters
    ----------
    prior : array-like
        The share of the positives.
    miss_cost : float
        The cost of a miss.
    alarm_cost : float
        The cost of a false alarm.

    Returns
    -------
    array
        p·c₊/(p·c₊ + (1−p)·c₋).

    Examples
    --------
    >>> float(probability_cost(0.1, miss_cost=9, alarm_cost=1))
    0.5
    """
    p = check_in_range("prior", prior, 0, 1)
    miss, alarm = check_positive("miss_cost", miss_cost), check_positive("alarm_cost", alarm_cost)
    return p * miss / (p * miss + (1 - p) * alarm)


def cost_curve(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    n_points: int = 101,
    pos_label: Hashable | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> CostCurve:
    """Cost curve: the lower envelope of the costs of all thresholds, exact at each of ``n_points``.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels, of two classes.
    y_score : array of shape (samples,)
        Scores that grow with the probability of the positive class.
    n_points : int
        The number of points from 0 to 1.
    pos_label : label, optional
        The positive class; by default the last in sorted order.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    CostCurve
        The least cost at each point, beside that of deciding without the score.

    References
    ----------
    Drummond & Holte (2006), Cost curves, Machine Learning 65, section 4.

    Examples
    --------
    >>> curve = cost_curve([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8], n_points=3)
    >>> curve.cost.tolist()
    [0.0, 0.25, 0.0]
    """
    check_integer("n_points", n_points, low=2)
    curve = threshold_curve(y_true, y_score, pos_label=pos_label, sample_weight=sample_weight)
    misses, alarms = 1 - curve.recall, 1 - curve.specificity
    grid = np.linspace(0, 1, n_points)
    at = np.array([int((misses * x + alarms * (1 - x)).argmin()) for x in grid])
    cost = misses[at] * grid + alarms[at] * (1 - grid)
    return CostCurve(grid, cost, np.minimum(grid, 1 - grid), curve.thresholds[at])
