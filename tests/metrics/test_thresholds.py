"""Operating points against a search over every threshold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise import metrics
from metric_cases import scorings


def brute(true, score, value):
    """The best value over all ways to cut the scores."""
    cuts = [np.inf, *np.unique(score)]
    return max(value(true, (score >= cut).astype(int)) for cut in cuts)


@given(scorings())
@settings(max_examples=60, deadline=None)
def test_best_over_thresholds_is_exact(data):
    true, score = data
    f1 = brute(true, score, lambda a, b: 2 * (a * b).sum() / (a.sum() + b.sum()))
    assert metrics.best_f1(true, score) == pytest.approx(f1)
    balanced = brute(true, score, lambda a, b: (b[a == 1].mean() + 1 - b[a == 0].mean()) / 2)
    assert metrics.best_balanced_accuracy(true, score) == pytest.approx(balanced)


@given(scorings(), st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]))
@settings(max_examples=60, deadline=None)
def test_constrained_points_are_exact(data, r):
    true, score = data

    def precision_if(a, b):
        return a[b == 1].mean() if b.any() and b[a == 1].mean() >= r else -1

    def recall_if(a, b):
        return b[a == 1].mean() if b.any() and a[b == 1].mean() >= r else 0

    best = metrics.precision_at_recall(true, score, min_recall=r)
    assert best == pytest.approx(brute(true, score, precision_if))
    assert best >= true.mean() - 1e-12
    assert metrics.recall_at_precision(true, score, min_precision=r) == pytest.approx(
        brute(true, score, recall_if)
    )


@given(scorings())
@settings(max_examples=15, deadline=None)
def test_the_threshold_does_what_the_point_says(data):
    true, score = data
    for objective in ("f_beta", "balanced_accuracy", "g_mean", "accuracy", "recall", "precision"):
        point = metrics.best_threshold(true, score, objective)
        called = (score >= point.threshold).astype(int)
        assert point.recall == pytest.approx(metrics.recall(true, called))
        assert point.specificity == pytest.approx(metrics.specificity(true, called))
        if objective in metrics.METRICS:
            assert point.value == pytest.approx(metrics.get_metric(objective)(true, called)), "one meaning"
    cost = metrics.best_threshold(true, score, "cost", cost_matrix=[[0, 1], [5, -1]])
    called = (score >= cost.threshold).astype(int)
    paid = metrics.expected_cost(true, called, cost_matrix=[[0, 1], [5, -1]], labels=[0, 1])
    assert cost.value == pytest.approx(paid)


@given(scorings(), st.floats(0.05, 0.95))
@settings(max_examples=40, deadline=None)
def test_cost_curve_is_the_least_cost_over_thresholds(data, prior):
    true, score = data
    curve = metrics.cost_curve(true, score, n_points=21)
    assert (curve.cost <= curve.trivial + 1e-12).all()
    assert (np.diff(curve.cost, 2) <= 1e-12).all()  # a minimum of lines is concave
    at = metrics.probability_cost(prior, 3, 2)
    misses_cost, alarms_cost = 3 * prior, 2 * (1 - prior)
    weight = np.where(true == 1, misses_cost / (true == 1).sum(), alarms_cost / (true == 0).sum())
    point = metrics.best_threshold(true, score, "cost", cost_matrix=[[0, 1], [1, 0]], sample_weight=weight)
    least = (1 - point.recall) * at + (1 - point.specificity) * (1 - at)
    exact = metrics.threshold_curve(true, score)
    assert least == pytest.approx(((1 - exact.recall) * at + (1 - exact.specificity) * (1 - at)).min())


def test_perfect_and_useless_scores():
    y = np.array([0, 0, 1, 1])
    assert metrics.cost_curve(y, [0.1, 0.2, 0.8, 0.9]).area == 0
    assert metrics.cost_curve(y, [0.5] * 4).area == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"objective": "f3"}, "objective must be one of .* got 'f3'"),
        ({"objective": "cost"}, "cost_matrix must be given .* got None"),
        ({"min_recall": 1.2}, r"min_recall must lie in \[0, 1\], got 1.2"),
        (
            {"objective": "recall", "min_precision": 0.9, "min_recall": 1},
            "no threshold reaches min_precision=0.9 with min_recall=1; the best precision is 0.6667",
        ),
    ],
)
def test_impossible_wishes(keywords, message):
    with pytest.raises(ValueError, match=message):
        metrics.best_threshold([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8], **keywords)
