"""What the rows one has can give: subsets, weights and fresh rows against the saddle point itself."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.theory.anomaly import balanced_weights, optimal_from_pool, solve_saddle, teacher_bias


def four_ways(rho, alpha, noise):
    """As is, with balanced weights, fresh rows at one half, and one half by leaving rows out."""
    b0 = float(teacher_bias(rho))
    plus, minus = balanced_weights(rho)
    return [
        solve_saddle(alpha, noise, b0, rho),
        solve_saddle(alpha, noise, b0, rho, positive_weight=plus, negative_weight=minus),
        solve_saddle(alpha, noise, b0, 0.5),
        solve_saddle(2 * alpha * rho, noise, b0, 0.5),
    ]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ((0.1, 10.0, 0.5), (0.7621, 0.8327, 0.9255, 0.7548)),
        ((0.1, 10.0, 0.05), (0.8425, 0.8425, 0.9441, 0.7917)),
    ],
)
def test_weights_are_neither_fresh_rows_nor_a_subset(setting, expected):
    """Solved independently with another quadrature and another solver."""
    found = [float(point.metrics().balanced_accuracy) for point in four_ways(*setting)]
    assert found == pytest.approx(expected, abs=1e-4)
    rho, alpha, noise = setting
    plan = optimal_from_pool(round(1000 * rho), round(1000 * (1 - rho)), 1000 / alpha, noise)
    gains = [way.gain_at_half for way in (plan.weights, plan.fresh, plan.subset)]
    assert gains == pytest.approx([value - found[0] for value in found[1:]], abs=1e-9)


def test_overlaps_of_the_four_ways():
    found = [float(point.overlap) for point in four_ways(0.2, 4.0, 0.5)]
    assert found == pytest.approx((0.7121, 0.7578, 0.8204, 0.5484), abs=1e-4)


@pytest.mark.parametrize(
    ("pool", "best", "share"),
    [
        ((100, 900, 100, 0.5), 0.019, 0.26),
        ((200, 3800, 100, 0.5), 0.009, 0.18),
        ((668, 9332, 50, 0.17), 0.0, 0.0668),
    ],
)
def test_the_best_subset(pool, best, share):
    plan = optimal_from_pool(*pool)
    assert plan.subset.gain == pytest.approx(best, abs=6e-4)
    assert plan.subset.train_fraction == pytest.approx(share, abs=6e-3)
    kept = plan.subset.n_positive / (plan.subset.n_positive + plan.subset.n_negative)
    assert kept == pytest.approx(plan.subset.train_fraction, abs=2e-3)
    assert plan.subset.n_positive == pool[0]  # no rare row is left out


@pytest.mark.parametrize(
    ("rho", "alpha", "noise"), [(0.05, 2.0, 0.1), (0.05, 20.0, 0.5), (0.2, 2.0, 0.5), (0.2, 20.0, 0.1)]
)
def test_no_subset_has_a_better_direction_than_all_rows(rho, alpha, noise):
    """On a grid of shares, apart from the plan's own search."""
    b0, share = float(teacher_bias(rho)), np.linspace(rho, 0.9, 12)[1:]
    whole = solve_saddle(alpha, noise, b0, rho)
    assert whole.phase == "learned"
    assert (solve_saddle(alpha * rho / share, noise, b0, share).overlap < float(whole.overlap)).all()


def test_a_subset_helps_where_all_rows_teach_nothing():
    """At high noise a rare class is ignored: the student of all rows is the dummy, that of a subset is not."""
    assert solve_saddle(2.0, 0.5, teacher_bias(0.05), 0.05).phase == "dummy"
    assert optimal_from_pool(50, 950, 500, 0.5, objective="overlap").subset.gain > 0.1


def test_a_plan_never_loses_to_the_rows_as_they_are():
    plan = optimal_from_pool(30, 170, 50, 0.0)
    assert plan.weights.gain == 0  # without noise no errors are made, and weights do nothing
    assert plan.weights.positive_weight == 1
    assert plan.weights.gain_at_half == pytest.approx(0, abs=1e-6)
    assert plan.subset.gain >= 0
    assert plan.best == ("subset" if plan.subset.gain > 0 else "as is")


def test_a_bound_on_the_rows_is_kept():
    plan = optimal_from_pool(100, 900, 100, 0.5, max_rows=300)
    assert plan.as_is == pytest.approx(
        float(solve_saddle(3.0, 0.5, teacher_bias(0.1), 0.1).metrics().balanced_accuracy), abs=1e-9
    )
    assert plan.subset.n_positive + plan.subset.n_negative <= 300
    assert plan.subset.gain > optimal_from_pool(100, 900, 100, 0.5).subset.gain


def test_an_error_is_minimized():
    plan = optimal_from_pool(60, 140, 50, 0.5, objective="error", test_fraction=0.5)
    mirror = optimal_from_pool(60, 140, 50, 0.5, objective="accuracy", test_fraction=0.5)
    assert plan.as_is == pytest.approx(1 - mirror.as_is, abs=1e-12)
    assert plan.fresh.value == pytest.approx(1 - mirror.fresh.value, abs=1e-9)
    assert plan.fresh.gain == pytest.approx(mirror.fresh.gain, abs=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_positive": 0}, "n_positive must be at least 1, got 0"),
        ({"n_negative": 0}, "n_negative must be at least 1, got 0"),
        ({"max_rows": 101}, "max_rows must be at most 100, got 101"),
        ({"temperature": 6.0}, r"temperature must lie in \[0, 5\], got 6"),
        ({"temperature": -1.0}, r"temperature must lie in \[0, 5\], got -1"),
        ({"dimensions": 1e5}, r"rows per dimension must lie in \[0.01, 2000\], got 0.001"),
        ({"dimensions": 0.0}, "dimensions must be positive, got 0"),
        ({"intrinsic_fraction": 1.0}, r"intrinsic_fraction must lie in \(0, 1\), got 1"),
        ({"objective": "x"}, "objective must be one of"),
    ],
)
def test_bad_input(change, message):
    good = {"n_positive": 10, "n_negative": 90, "dimensions": 20.0, "temperature": 0.5}
    with pytest.raises(ValueError, match=message):
        optimal_from_pool(**(good | change))
