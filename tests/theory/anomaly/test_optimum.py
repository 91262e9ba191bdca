"""Where the objectives peak, as the paper says and as direct scans say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from equipoise.theory.anomaly import (
    crossover_temperature,
    intrinsic_fraction,
    optimal_train_fraction,
    optimum_map,
    solve_saddle,
)


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
