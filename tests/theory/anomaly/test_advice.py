"""The inverse use: estimates that recover what made the data, verdicts that say no when they should."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from imblearn.over_sampling import RandomOverSampler
from imblearn.under_sampling import RandomUnderSampler

from equipoise.theory.anomaly import advise_train_fraction, effective_dimension, theory_sampling_strategy
from equipoise.theory.anomaly._estimates import overlap_from_area, rank_area, temperature_from_overlap
from equipoise.theory.anomaly.metrics import area_under_curve
from equipoise.theory.anomaly.saddle import solve_saddle


def anomalies(n=300, dim=20, bias=-1.2, seed=0):
    """Data of the model itself, turned so that no axis is the teacher's."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim))
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    return X @ turn, (X[:, 0] + bias > 0).astype(int)


def groups(n=500, dim=20, shift=3.0, spread=1.0, share=0.15, seed=0):
    """Two separate Gaussians."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    X = rng.standard_normal((n, dim)) * np.where(y, spread, 1.0)[:, None]
    X[:, 0] += shift * y
    return X, y


@pytest.fixture(scope="module")
def advice():
    return advise_train_fraction(*anomalies(), n_bootstrap=10, random_state=0)


def test_estimates_of_the_models_own_data(advice):
    assert advice.effective_dim == pytest.approx(20, rel=0.1)
    assert advice.samples_per_dim == pytest.approx(15, rel=0.1)
    assert advice.intrinsic_fraction == pytest.approx(0.115, abs=0.05)
    assert advice.shared is not None
    assert advice.shared.verdict == "one distribution"
    assert advice.verdict in ("usable", "weak")


def test_advice_is_consistent(advice):
    low, high = advice.interval
    assert 0 < low <= high < 1
    assert low - 0.05 < advice.train_fraction < high + 0.05
    assert advice.gain_over_half >= 0
    assert advice.gain_over_current > 0
    assert (advice.curve_low <= advice.curve_high).all()
    best = advice.fractions[advice.curve.argmax()]
    assert best == pytest.approx(advice.train_fraction, abs=0.06)
    text = advice.summary()
    assert advice.verdict in text
    assert "effective dimension" in text


@pytest.mark.parametrize("data", [groups(), groups(n=300, shift=1.5, spread=2.0)])
def test_separate_groups_are_called_worthless(data):
    advice = advise_train_fraction(*data, n_bootstrap=10, random_state=0)
    assert advice.verdict == "worthless"
    assert any("separate groups" in reason for reason in advice.reasons)


def test_no_signal_is_called_worthless():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 8)), (np.arange(200) < 40).astype(int)
    assert advise_train_fraction(X, y, n_bootstrap=10, random_state=0).verdict == "worthless"


def test_an_objective_without_a_peak_is_called_worthless():
    advice = advise_train_fraction(
        n_samples=100, n_features=50, n_positive=20, objective="recall", n_bootstrap=10, random_state=0
    )
    assert advice.verdict == "worthless"


def test_counts_alone_are_weak_and_overrides_hold():
    advice = advise_train_fraction(
        n_samples=200, n_features=100, n_positive=20, temperature=0.4, intrinsic_fraction=0.05, effective_dim=40,
        n_bootstrap=10, random_state=0,
    )  # fmt: skip
    assert advice.verdict == "weak"
    assert (advice.temperature, advice.intrinsic_fraction) == (0.4, 0.05)
    assert advice.samples_per_dim == pytest.approx(5)


def test_the_noise_is_recovered_from_the_models_own_area():
    alpha, b0 = np.array([3.0]), np.array([-1.0])
    s = solve_saddle(alpha, 0.6, b0, 0.5)
    area = float(area_under_curve(s.overlap[0], -1.0))
    overlap = overlap_from_area(area, -1.0)
    assert overlap == pytest.approx(float(s.overlap[0]), abs=1e-3)
    assert temperature_from_overlap(np.array([overlap]), alpha, b0)[0] == pytest.approx(0.6, abs=0.03)
    assert temperature_from_overlap(np.array([0.999]), alpha, b0)[0] == 0


def test_rank_area_counts_ties_half():
    assert rank_area(np.array([1.0, 2.0]), np.array([1.0, 0.0])) == pytest.approx(0.875)


def test_effective_dimension_sees_correlation():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3)) @ rng.standard_normal((3, 30))
    assert effective_dimension(X) < 4
    assert effective_dimension(rng.standard_normal((50, 200))) > 100  # more features than samples


@pytest.mark.parametrize(("sampler", "kind"), [(RandomOverSampler, "over"), (RandomUnderSampler, "under")])
def test_as_a_sampling_strategy(sampler, kind):
    X, y = anomalies(n=400)
    strategy = theory_sampling_strategy(X, kind=f"{kind}-sampling")
    _, resampled = sampler(sampling_strategy=strategy, random_state=0).fit_resample(X, y)
    assert resampled.mean() == pytest.approx(strategy.advice.train_fraction, abs=0.01)
    changed, kept = (1, 0) if kind == "over" else (0, 1)
    assert (resampled == kept).sum() == (y == kept).sum()
    assert (resampled == changed).sum() != (y == changed).sum()


def test_needs_no_scikit_learn():
    code = (
        "import sys; from equipoise.theory.anomaly import theory_sampling_strategy;"
        "theory_sampling_strategy(n_features=10)([0] * 40 + [1] * 10);"
        "sys.exit(bool({'sklearn', 'pandas', 'torch', 'matplotlib', 'imblearn'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs X and y, or n_samples"),
        ({"X": np.zeros((9, 2)), "y": [0] * 9}, "y must have exactly two classes, got 1"),
        ({"X": np.zeros((9, 2)), "y": [0] * 8 + [1]}, "at least 5 samples of each class, got 1"),
        ({"X": np.full((20, 2), np.nan), "y": [0, 1] * 10}, "X must be finite, got nan"),
        ({"X": np.zeros(20), "y": [0, 1] * 10}, "X must have two dimensions, got 1"),
        ({"X": np.zeros((20, 2)), "y": [0, 1]}, "X and y must have the same length, got 20 and 2"),
        ({"n_samples": 10, "n_features": 3, "n_positive": 10}, "n_positive must be at most 9, got 10"),
        ({"n_samples": 10, "n_features": 3, "n_positive": 3, "temperature": -1.0}, "temperature must lie in"),
        ({"n_samples": 10, "n_features": 3, "n_positive": 3, "objective": "x"}, "objective must be one of"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        advise_train_fraction(**arguments)


def test_strategy_refuses_what_it_cannot_know():
    with pytest.raises(ValueError, match="needs X or n_features"):
        theory_sampling_strategy()
    with pytest.raises(ValueError, match="two classes, got 3"):
        theory_sampling_strategy(n_features=4)([0, 1, 2])
