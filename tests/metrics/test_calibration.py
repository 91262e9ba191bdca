"""Calibration: agreement with scikit-learn, and zero error where probabilities are true."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics

from equipoise import metrics
from equipoise.metrics import METRICS


def forecasts(n_classes, n=400, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), n)
    y = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return y, proba


@pytest.mark.parametrize("n_classes", [2, 5])
def test_agreement_with_scikit_learn(n_classes):
    y, proba = forecasts(n_classes)
    assert metrics.log_loss(y, proba) == pytest.approx(sklearn.metrics.log_loss(y, proba))
    assert metrics.brier(y, proba) == pytest.approx(sklearn.metrics.brier_score_loss(y, proba))


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("name", ["brier", "log_loss", "expected_calibration_error"])
def test_kernel_is_the_metric_and_classes_may_be_permuted(name, n_classes):
    y, proba = forecasts(n_classes)
    value = METRICS[name](y, proba)
    assert METRICS[name].weighted(y, proba)(np.ones((1, y.size)))[0] == pytest.approx(value)
    order = np.random.default_rng(1).permutation(n_classes)
    renamed = METRICS[name](y, proba[:, order], labels=order)
    if name != "expected_calibration_error" or n_classes > 2:  # bins are closed on one side
        assert renamed == pytest.approx(value)


def test_true_probabilities_have_small_error_and_distorted_ones_do_not():
    y, proba = forecasts(2, n=40_000)
    for strategy in ("uniform", "quantile"):
        right = metrics.expected_calibration_error(y, proba, strategy=strategy)
        wrong = metrics.expected_calibration_error(y, proba[:, 1] ** 2, strategy=strategy)
        assert right < 0.015 < 0.1 < wrong
    curve = metrics.reliability_curve(y, proba, n_bins=10)
    assert curve.weight.sum() == pytest.approx(1)
    np.testing.assert_allclose(curve.confidence, curve.frequency, atol=0.03)


def test_one_bin_is_the_bias_and_weights_are_repetitions():
    y, p = np.array([0, 1, 1, 0]), np.array([0.2, 0.3, 0.9, 0.6])
    assert metrics.expected_calibration_error(y, p, n_bins=1) == pytest.approx(abs(p.mean() - y.mean()))
    counts = np.array([1, 3, 2, 1])
    assert metrics.expected_calibration_error(y, p, sample_weight=counts) == pytest.approx(
        metrics.expected_calibration_error(np.repeat(y, counts), np.repeat(p, counts))
    )


def test_a_bin_holds_its_upper_edge_and_not_its_lower_one():
    curve = metrics.reliability_curve([0, 1, 1, 0], [0.25, 0.5, 0.75, 1.0], n_bins=2)
    np.testing.assert_allclose(curve.confidence, [0.375, 0.875])
    np.testing.assert_allclose(curve.frequency, [0.5, 0.5])
    np.testing.assert_allclose(curve.weight, [0.5, 0.5])


def test_bad_bins_are_named():
    with pytest.raises(ValueError, match="n_bins must be at least 1, got 0"):
        metrics.expected_calibration_error([0, 1], [0.5, 0.5], n_bins=0)
    with pytest.raises(ValueError, match=r"strategy must be one of .* got 'equal'"):
        metrics.expected_calibration_error([0, 1], [0.5, 0.5], strategy="equal")
