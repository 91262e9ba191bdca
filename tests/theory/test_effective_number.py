"""Effective numbers against simulation, and the theorems as statements that could fail."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from equipoise.theory.effective_number import (
    ScatterStatistics,
    bounded_gaussian_split,
    class_factor,
    data_scatter,
    disc_split,
    effective_number,
    effective_number_path,
    effective_number_weights,
    gaussian_split,
    simulate_covering,
)

K_LOW, K_HIGH = 2 * np.sqrt(2) - 1, 2 * np.sqrt(2) + 1


@pytest.mark.agreement
@pytest.mark.parametrize("offset", [0.0, 0.3, 0.9])
def test_covering_simulation_agrees_within_its_standard_error(offset):
    paths = simulate_covering(60, volume=25, offset=offset, repeats=4000, random_state=1)
    theory = effective_number(np.arange(1, 61), 1 - 1 / 25, offset)
    error = paths.std(axis=0) / np.sqrt(len(paths))
    assert (np.abs(paths.mean(axis=0) - theory) <= 4.5 * error + 1e-12).all()


@given(st.floats(0, 0.999999), st.floats(0, 1), st.integers(1, 500))
@settings(max_examples=60, deadline=None)
def test_closed_form_solves_the_recursion(beta, offset, n):
    if offset == 1:
        assert effective_number(n, beta, offset) == 0
        return
    path = effective_number_path(np.full(n, offset), beta)
    assert effective_number(n, beta, offset) == pytest.approx(path[-1], rel=1e-9)


def test_lemma_1_enlarged_volumes_undo_any_offsets():
    offsets = np.random.default_rng(0).random(200) * 0.95
    enlarged = effective_number_path(offsets, 0.98, enlarged=True)
    np.testing.assert_allclose(enlarged, effective_number(np.arange(1, 201), 0.98), rtol=1e-12)
    paths = simulate_covering(200, 1000, offsets, enlarged=True, repeats=4000, random_state=1)
    error = paths.std(axis=0) / np.sqrt(4000)
    theory = effective_number(np.arange(1, 201), 1 - 1 / 1000)
    assert (np.abs(paths.mean(axis=0) - theory) <= 5 * error).all()
    unit = simulate_covering(200, 1000, offsets, repeats=4000, random_state=1)
    assert (unit.mean(axis=0) < theory - 10 * error)[20:].all()  # without the larger volumes it does not hold


def test_offsets_of_each_sample_follow_equation_14():
    offsets = np.random.default_rng(0).random(60)
    paths = simulate_covering(60, 40, offsets, repeats=6000, random_state=1)
    error = paths.std(axis=0) / np.sqrt(6000)
    assert (np.abs(paths.mean(axis=0) - effective_number_path(offsets, 1 - 1 / 40)) <= 5 * error).all()
    with pytest.raises(ValueError, match=r"offset must be a number or have 60 values, got shape \(3,\)"):
        simulate_covering(60, 40, [0.1, 0.2, 0.3])


@pytest.mark.parametrize("K", [1.84, 2.5, 3.83, 5.0, 8.0])
def test_theorems_1_and_2_hold_wherever_the_discs_overlap(K):
    assert disc_split(K, K**2).gap < 0 < disc_split(K, 1.0).gap
    inside = disc_split(1.82, 1.0)
    assert inside.accuracy_negative == inside.accuracy_positive == 1


def test_bounded_gaussians_keep_their_gap():
    """Supplement, section 2: what lies outside ρ is moved to the worst place, and the gap stays."""
    made = bounded_gaussian_split(2.0, np.sqrt(2))
    assert made.split.gap == pytest.approx(0.1512, abs=5e-5)
    assert made.bound == pytest.approx(7.21, abs=5e-3)
    assert made.least_gap >= 0.98 * made.split.gap >= 0.1482 - 5e-5
    rng = np.random.default_rng(0)
    n, right = 400_000, {}
    for sign, sigma in ((-1, 1.0), (1, 2.0)):
        x = sign * np.array([1.0, 1.0]) + sigma * rng.normal(size=(n, 2))
        far = np.linalg.norm(x - sign * np.array([1.0, 1.0]), axis=1) > made.bound
        assert far.mean() <= 0.01 * made.split.gap + 5 * np.sqrt(0.01 * made.split.gap / n)
        side = x.sum(axis=1) / np.sqrt(2) - made.split.threshold
        right[sign] = np.where(far, sign > 0, np.sign(side) == sign).mean()  # against the gap in both classes
    assert right[-1] - right[1] >= 0.1482 - 4 * np.sqrt(0.5 / n)
    for bounds in ((1.5, 2.0), (3.0, 2.0)):  # unequal volumes, either way round
        wider = bounded_gaussian_split(2.0, np.sqrt(2), bounds=bounds)
        assert made.least_gap < wider.least_gap <= made.split.gap


def test_limits():
    n = np.array([1.0, 10, 1000])
    np.testing.assert_allclose(effective_number(n, 0.0), 1)
    np.testing.assert_allclose(effective_number(n, 1.0), n)
    np.testing.assert_allclose(effective_number(n, 1 - 1e-14), n, rtol=1e-9)
    np.testing.assert_allclose(effective_number(1e9, 0.999), 1000)  # Eq 5: the volume
    np.testing.assert_allclose(effective_number(n, 0.9, 1.0), 0)
    np.testing.assert_allclose(effective_number(n, 1.0, 0.25), 0.75 * n)
    np.testing.assert_allclose(effective_number_weights([5, 50], 0.0), 1)
    inverse = 1 / np.array([5, 50, 500])
    np.testing.assert_allclose(effective_number_weights([5, 50, 500], 1.0), 3 * inverse / inverse.sum())


@given(st.floats(0, 1), st.lists(st.integers(1, 10**6), min_size=2, max_size=8))
@settings(max_examples=60, deadline=None)
def test_weights_fall_with_the_count_and_sum_to_the_number_of_classes(beta, counts):
    weights = effective_number_weights(counts, beta)
    assert weights.sum() == pytest.approx(len(counts))
    order = np.argsort(counts)
    assert (np.diff(weights[order]) <= 1e-12).all()


def test_scatter_from_logits_is_scatter_from_covariances():
    rng = np.random.default_rng(0)
    features, weight, y = rng.normal(size=(300, 6)), rng.normal(size=(4, 6)), rng.integers(4, size=300)
    features += 3 * rng.normal(size=(4, 6))[y]
    logits = features @ weight.T + rng.normal(size=4)  # the bias does not matter
    whole = ScatterStatistics.empty(4)
    whole.update(logits, y)
    scatter = whole.scatter(weight)
    for c in range(4):
        sigma = np.cov(features[y == c].T, bias=True)
        for z in range(4):
            expected = 0.0 if c == z else data_scatter(weight[c] - weight[z], sigma)
            assert scatter[c, z] == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(whole.mean_scatter(weight), scatter.sum(axis=1) / 3)
    np.testing.assert_allclose(whole.scatter(7 * weight) * 49, scatter)


def test_statistics_merge_exactly_in_any_order():
    rng = np.random.default_rng(1)
    logits, y = 100 + rng.normal(size=(500, 3)), rng.integers(3, size=500)
    whole = ScatterStatistics.empty(3)
    whole.update(logits, y)
    parts = [ScatterStatistics.empty(3) for _ in range(4)]
    for number, rows in enumerate(np.array_split(rng.permutation(500), 11)):
        parts[number % 4].update(logits[rows], y[rows])
    total = ScatterStatistics.empty(3)
    for part in parts[::-1]:
        total.merge(part)
    np.testing.assert_allclose(total.variances(), whole.variances(), rtol=1e-10)
    np.testing.assert_allclose(total.count, whole.count)


def test_scatter_knows_the_direction():
    """Fig 4: only the spread along the boundary's normal counts."""
    wide, tall = np.diag([4.0, 0.1]), np.diag([0.1, 4.0])
    assert data_scatter([1, 0], wide) > data_scatter([1, 0], tall)
    assert data_scatter([0, 1], wide) < data_scatter([0, 1], tall)


def test_class_factor_fills_in_unknown_scatter():
    np.testing.assert_allclose(class_factor([0.0, 2.0, 4.0], [1, 1, 1]), [1.0, 2 / 3, 4 / 3])
    np.testing.assert_allclose(class_factor([0.0, 0.0], [1, 3]), [0.5, 1.5])


def _cap(height):
    h = np.clip(height, -1, 1)
    return (np.arccos(h) - h * np.sqrt(1 - h * h)) / np.pi


@pytest.mark.parametrize("K", np.linspace(K_LOW + 0.02, K_HIGH - 0.02, 9))
def test_theorems_1_and_2(K):
    """Equal densities favor the larger disc, equal priors the smaller: weights need more than the volume."""
    dense, even = disc_split(K, K**2), disc_split(K, 1.0)
    assert dense.accuracy_positive > dense.accuracy_negative
    assert even.accuracy_positive < even.accuracy_negative


@pytest.mark.parametrize("odds", [0.2, 1.0, 4.0, 9.0])
@pytest.mark.parametrize("K", [1.5, 2.0, 3.0, 5.0])
def test_disc_split_is_the_minimum_over_all_thresholds(K, odds):
    def error(t):
        return (odds * _cap((np.sqrt(2) - t) / K) + _cap(t + np.sqrt(2))) / (1 + odds)

    split = disc_split(K, odds)
    mine = (odds * (1 - split.accuracy_positive) + 1 - split.accuracy_negative) / (1 + odds)
    assert mine == pytest.approx(error(split.threshold), abs=1e-12)
    assert mine <= error(np.linspace(-8, 8, 4001)).min() + 1e-9
    if K < K_LOW:
        assert mine == 0


@pytest.mark.agreement
def test_no_tilted_line_beats_the_split():
    """Among lines of any direction the one across the line of centers is best."""
    rng = np.random.default_rng(0)
    K, n = 2.2, 40_000
    angle, radius = rng.uniform(0, 2 * np.pi, (2, n)), np.sqrt(rng.random((2, n)))
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    negative, positive = points[0] - 1, K * points[1] + 1
    split = disc_split(K, 1.0)
    best = (2 - split.accuracy_negative - split.accuracy_positive) / 2
    for tilt in np.linspace(-1.2, 1.2, 9):
        normal = np.array([np.cos(np.pi / 4 + tilt), np.sin(np.pi / 4 + tilt)])
        below, above = np.sort(negative @ normal), np.sort(positive @ normal)
        t = np.linspace(-4, 4, 401)
        error = (1 - np.searchsorted(below, t) / n + np.searchsorted(above, t) / n) / 2
        assert error.min() >= best - 4 * np.sqrt(best / n)
        if tilt == 0:
            assert error.min() == pytest.approx(best, abs=4 * np.sqrt(best / n))


@pytest.mark.parametrize("K", [1.1, 2.0, 5.0])
@pytest.mark.parametrize("s", [0.0, 0.5, 2.0])
def test_equation_9(K, s):
    from scipy.stats import norm

    def error(t):
        return norm.sf(t + s) + norm.cdf((t - s) / K)

    split = gaussian_split(K, s)
    found = minimize_scalar(error, bounds=(split.threshold - 1, split.threshold + 1), method="bounded")
    assert split.threshold == pytest.approx(found.x, abs=1e-4)
    assert split.accuracy_negative == pytest.approx(norm.cdf(split.threshold + s))
    assert split.accuracy_positive == pytest.approx(norm.sf((split.threshold - s) / K))
    B = 2 * s / (K**2 - 1)
    R = np.sqrt(B**2 + 2 * np.log(K) / (K**2 - 1))
    assert split.gap == pytest.approx(norm.cdf(R - K * B) - norm.cdf(B - K * R))
    assert split.gap > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: effective_number(5, 1.2), r"beta must lie in \[0, 1\], got 1.2"),
        (lambda: effective_number(-1, 0.9), "n must lie in"),
        (lambda: effective_number_weights([5, 0]), "class_counts must be whole numbers of at least 1, got 0"),
        (lambda: disc_split(1.0, 1.0), "radius_ratio"),
        (lambda: ScatterStatistics.empty(2).update([[1.0, 2.0, 3.0]], [0]), "2 columns"),
        (lambda: ScatterStatistics.empty(2).update([[1.0, 2.0]], [2]), "below 2, got up to 2"),
        (lambda: ScatterStatistics.empty(2).update([[np.nan, 2.0]], [1]), "finite, got nan"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
