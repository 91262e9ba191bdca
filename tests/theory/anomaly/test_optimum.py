"""Where the objectives peak, as the paper says and as direct scans say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from equipoise.theory.anomaly import (
    crossover_temperature,
    guide_regret,
    intrinsic_fraction,
    optimal_train_fraction,
    optimum_map,
    solve_saddle,
)
from equipoise.theory.anomaly.optimum import objective_of


def test_known_optima():
    o = optimal_train_fraction([8.0, 1.1], 0.5, [-1.5, -1.0])
    assert o.train_fraction == pytest.approx([0.4585, 0.5127], abs=6e-5)
    assert o.interior.all()


def test_optimum_agrees_with_a_scalar_search():
    def loss(rho):
        return -float(solve_saddle(3.0, 0.4, -1.2, rho).metrics(0.3).f1)

    o = optimal_train_fraction(3.0, 0.4, -1.2, "f1", test_fraction=0.3)
    direct = minimize_scalar(loss, bounds=(0.2, 0.8), method="bounded", options={"xatol": 1e-7})
    assert float(o.train_fraction) == pytest.approx(direct.x, abs=1e-5)
    assert float(o.value) == pytest.approx(-direct.fun, abs=1e-9)


def test_the_papers_order_of_peaks():
    """Fig 3(c): precision peaks between ρ0 and ρ(b*); recall and specificity only at the borders."""
    rho0 = float(intrinsic_fraction(-0.6))
    bias = optimal_train_fraction(1.1, 0.5, -0.6, "bias")
    precision = optimal_train_fraction(1.1, 0.5, -0.6, "precision")
    assert rho0 < precision.train_fraction < bias.train_fraction
    assert float(bias.value) == pytest.approx(0, abs=1e-8)
    for name in ("recall", "specificity"):
        assert not optimal_train_fraction(1.1, 0.5, -0.6, name).interior


BEHIND = [
    (0.5, 0.5, -1.5, "bias"),
    (0.5, 1.0, -2.5, "bias"),
    (4.0, 1.0, -1.0, "bias"),
    (16.0, 0.5, -4.0, "bias"),
    (2.0, 2.0, -1.5, "bias"),
    (1.1, 1.0, -1.5, "precision"),
    (4.0, 1.0, -0.6, "negative_precision"),
]


def check_against_a_scan(alpha, noise, b0, objective, count=400):
    rho = np.linspace(0.005, 0.995, count)
    point = solve_saddle(np.reshape(alpha, (-1, 1)), np.reshape(noise, (-1, 1)), np.reshape(b0, (-1, 1)), rho)
    best = objective_of(point, objective).max(axis=-1)
    found = optimal_train_fraction(alpha, noise, b0, objective)
    assert np.isfinite(found.value).all()
    assert (np.ravel(found.value) >= best - 1e-6).all()


@pytest.mark.parametrize("setting", BEHIND)
def test_no_optimum_lies_behind_a_scan(setting):
    """Where the dummy phase begins next to the peak; each of these was wrong."""
    check_against_a_scan(*setting)


def test_the_best_bias_is_followed_to_the_end_of_the_learned_branch():
    """There b falls like a square root: 1e-6 to the left there is no student, 1e-4 to the right b is worse."""
    found = optimal_train_fraction(2.0, 2.0, -1.5, "bias")
    near = solve_saddle(2.0, 2.0, -1.5, found.train_fraction + np.array([-1e-6, 1e-4]))
    assert near.phase[0] == "dummy"
    assert abs(near.bias[1] + 1.5) > -found.value + 0.005


@pytest.mark.slow
@pytest.mark.parametrize(
    "objective",
    ["overlap", "bias", "balanced_accuracy", "f1", "precision", "negative_precision", "negative_f1"],
)
def test_none_of_168_optima_lies_behind_a_scan_of_400_fractions(objective):
    alpha, noise, b0 = np.meshgrid(
        (0.5, 1.1, 2, 4, 8, 16, 32), (0.05, 0.5, 1.0, 2.0), (-0.2, -0.6, -1, -1.5, -2.5, -4), indexing="ij"
    )
    check_against_a_scan(alpha.ravel(), noise.ravel(), b0.ravel(), objective)


def test_the_best_share_for_the_bias_hits_it():
    found = optimal_train_fraction(4.0, 1.0, -1.0, "bias")
    assert found.train_fraction == pytest.approx(0.241, abs=1e-3)
    assert found.value == pytest.approx(0, abs=1e-7)


def test_the_best_share_for_precision_does_not_depend_on_the_test_share():
    """p = r/(r + odds·(1-s)) rises with r/(1-s) whatever the odds, so its peak is where that ratio's is."""
    found = optimal_train_fraction(1.1, 0.5, -0.6, "precision", test_fraction=[0.1, 0.5, 0.9])
    np.testing.assert_allclose(found.train_fraction, found.train_fraction[1], atol=1e-6)


def test_a_guide_that_is_the_overlap_loses_nothing_and_others_lose_what_they_say():
    assert guide_regret(1.1, 0.5, -0.6, "overlap") == pytest.approx(0, abs=1e-9)
    led = optimal_train_fraction(1.1, 0.5, -0.6, "f1").train_fraction
    lost = optimal_train_fraction(1.1, 0.5, -0.6).value - solve_saddle(1.1, 0.5, -0.6, led).overlap
    assert guide_regret(1.1, 0.5, -0.6, "f1") == pytest.approx(float(lost), abs=1e-9)


def test_regrets_are_what_they_say():
    o = optimal_train_fraction(1.1, 0.5, -0.6, "balanced_accuracy")
    at = solve_saddle(1.1, 0.5, -0.6, [0.5, intrinsic_fraction(-0.6)]).metrics().balanced_accuracy
    assert [float(o.regret_at_half), float(o.regret_at_intrinsic)] == pytest.approx(o.value - at, abs=1e-9)


def test_width_says_how_peaked():
    """One percent below the top is reached at the ends of the width; the curvature agrees near the top."""
    o = optimal_train_fraction(1.1, 0.5, -1.0)
    half = float(o.width) / 2
    s = solve_saddle(1.1, 0.5, -1.0, o.train_fraction + np.array([-half, half]))
    assert s.overlap == pytest.approx(0.99 * float(o.value), abs=5e-4)
    near = solve_saddle(1.1, 0.5, -1.0, o.train_fraction + 0.01).overlap
    assert float(o.value) - float(near) == pytest.approx(0.5 * float(o.curvature) * 0.01**2, rel=0.05)


def test_maps_have_the_shape_of_their_axes():
    alphas, rare = [1.1, 8.0], [0.05, 0.2, 0.4]
    found = optimum_map(alphas, rare, 0.5)
    assert found.value.shape == (2, 3)
    assert (found.value[1] > found.value[0]).all()  # more data, better student
    assert optimum_map(alphas, 0.1, [0.2, 0.5, 1.0]).value.shape == (2, 3)


def test_crossover_temperature():
    star = crossover_temperature(1.1, -0.6, 0.5)
    low, at, high = (
        solve_saddle(1.1, [0.0, float(star), 2 * float(star)], -0.6, 0.5).metrics().balanced_accuracy
    )
    assert at == pytest.approx(low - 0.05 * (low - 0.5), abs=2e-4)
    assert high < at
    assert np.isnan(crossover_temperature(50.0, -0.6, 0.5, highest=0.2))


def test_bad_input():
    with pytest.raises(ValueError, match="objective must be one of 'overlap'"):
        optimal_train_fraction(1.0, 0.5, -1.0, "loss")
    with pytest.raises(ValueError, match="test_fraction must lie in"):
        optimal_train_fraction(1.0, 0.5, -1.0, "f1", test_fraction=0.0)
    with pytest.raises(ValueError, match="intrinsic_fraction must lie in"):
        optimum_map(1.0, 0.0)
