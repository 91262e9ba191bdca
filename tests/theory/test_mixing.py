"""Mixing of one class: the propositions against eigenvalues and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from equipoise.theory.mixing import (
    linearly_separable,
    lipschitz_bound,
    loss_variance,
    mixing_factor,
    risk_variance,
    scatter,
    separable_classes,
    smallest_eigenvalue,
)


def test_separable_sets_keep_their_mixes_apart():
    rng = np.random.default_rng(0)
    a, b = rng.normal([4, 0, 0], size=(60, 3)), rng.normal([-4, 0, 0], size=(60, 3))
    assert linearly_separable(a, b)
    mixes = [np.einsum("ij,jk->ik", rng.dirichlet(np.ones(60), 200), points) for points in (a, b)]
    assert linearly_separable(*mixes)
    assert linearly_separable(np.concatenate([a, mixes[0]]), np.concatenate([b, mixes[1]]))
    assert not linearly_separable(np.concatenate([a, b[:1]]), b)


@pytest.mark.parametrize("seed", range(6))
def test_separable_is_what_the_whole_linear_program_says(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(40, 12)), rng.normal(size=(40, 12))
    plane = rng.normal(size=12)
    tangled = np.concatenate([a, b])
    apart = tangled + np.sign(tangled @ plane)[:, None] * plane * 1e-3
    side = apart @ plane > 0
    assert linearly_separable(apart[side], apart[~side]), "by a hair"
    few, many = rng.normal(size=(2, 6, 12)), rng.normal(size=(2, 200, 12))
    assert linearly_separable(*few), "twelve points in general position"
    assert not linearly_separable(*many), "no plane parts two clouds on one place"


def linear_program(points, own):
    """Is there a plane with the class at 1 and above, and all others at −1 and below?"""
    rows = np.c_[points, np.ones(len(points))] * np.where(own, 1.0, -1.0)[:, None]
    found = linprog(np.zeros(rows.shape[1]), -rows, -np.ones(len(rows)), bounds=(None, None), method="highs")
    return found.status == 0


@pytest.mark.parametrize("seed", range(8))
def test_every_class_is_parted_where_a_linear_program_parts_it(seed):
    """Few rows, many columns, whole numbers that coincide: the easy, the hard and the degenerate cases."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(60) % 5)
    points = rng.normal(size=(60, 4)) + 2 * rng.normal(size=(5, 4))[codes]
    for rows in (points, points.round(), np.c_[points, np.ones((60, 2))]):
        wanted = [linear_program(rows, codes == code) for code in range(5)]
        assert separable_classes(rows, codes).tolist() == wanted


def test_a_plane_that_the_first_points_leave_open_is_found_among_all():
    """A thin class between two thick ones in many columns: the points that decide come in by and by."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 3))
    own = (points**2).sum(axis=1) > 9
    lifted = np.c_[points, points**2 + 1e-3 * rng.normal(size=points.shape)]
    assert separable_classes(lifted, own.astype(int)).tolist() == [linear_program(lifted, own)] * 2


def test_separable_refuses_tables_of_other_widths():
    with pytest.raises(ValueError, match="as many columns"):
        linearly_separable(np.zeros((3, 2)), np.zeros((3, 1)))


@pytest.mark.parametrize("seed", range(4))
def test_smallest_eigenvalue_is_that_of_the_matrix(seed):
    order = np.random.default_rng(seed).permutation(7 + seed)
    matrix = np.eye(len(order))[order]
    assert smallest_eigenvalue(order) == pytest.approx(np.linalg.eigvalsh(matrix + matrix.T)[0])
    with pytest.raises(ValueError, match="once each"):
        smallest_eigenvalue([0, 0])


def test_no_permutation_makes_the_bound_smaller():
    alphas = np.linspace(0, 1, 21)
    for k in np.linspace(-2, 2, 9):
        assert (mixing_factor(alphas, k) <= 1 + 1e-12).all()
        assert (lipschitz_bound(10, alphas, k) >= lipschitz_bound(10, 1.0, k) - 1e-12).all()


def test_the_bound_holds_and_the_least_norm_classifier_does_not_change():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(10, 200)) / np.sqrt(200)
    labels = np.repeat([1.0, -1.0], 5)
    partners = np.concatenate([rng.permutation(5), 5 + rng.permutation(5)])
    floor = np.linalg.eigvalsh(X @ X.T)[0]
    plain = np.linalg.norm(np.linalg.pinv(X) @ labels)
    for alpha in (0.9, 0.7):
        mixed = alpha * X + (1 - alpha) * X[partners]
        norm = np.linalg.norm(np.linalg.pinv(mixed) @ labels)
        assert norm == pytest.approx(plain)
        assert norm <= lipschitz_bound(10, alpha, smallest_eigenvalue(partners), floor)


@pytest.mark.agreement
@pytest.mark.parametrize("weights", [[0.5, 0.5], [0.8, 0.2], [1 / 3] * 3])
def test_variance_of_mixed_losses_stays_below_its_bound(weights):
    rng = np.random.default_rng(2)
    loss = lambda z: np.logaddexp(0, -z @ np.array([1.0, -2.0]))  # noqa: E731
    z = rng.normal([0.5, 0], size=(200_000, 2))
    found = loss_variance(loss(z), float(loss(z.mean(axis=0))))
    parents = rng.integers(len(z), size=(200_000, len(weights)))
    mixed = loss(np.einsum("j,ijk->ik", weights, z[parents]))
    error = np.sqrt(np.var((mixed - mixed.mean()) ** 2) / len(mixed))
    assert mixed.var() <= found.bound(weights) + 3 * error


def test_a_constant_loss_has_no_condition():
    assert loss_variance([0.0, 2.0], 0.5).bound([0.5, 0.5]) == pytest.approx(0.5 + 0.75)
    assert loss_variance([1.0, 1.0], 1.0).largest_norm == -np.inf


def _uniform(rng):
    return lambda groups: rng.dirichlet(np.ones(groups.shape[1]), size=len(groups))


def _halves(groups):
    return np.full(groups.shape[:2], 1 / groups.shape[1])


def test_less_variance_of_the_risk_is_not_guaranteed_where_proposition_2_promises_it():
    rng = np.random.default_rng(0)
    z = rng.uniform(0, 1, size=(400, 1))
    linear = lambda points: points[:, 0]  # noqa: E731
    promise = loss_variance(linear(z), float(z.mean()))
    assert promise.largest_norm == pytest.approx(1), "any weights will do, says the proposition"
    found = risk_variance(linear, z, _uniform(rng), n_rows=40, n_resamples=4000, random_state=1)
    low, high = found.ratio_interval(0.999)
    assert low < 7 / 6 < high, "coefficients 1 ± (α − α'), whose mean square is 1 + 1/6"
    assert low > 1
    assert abs(found.bias) < 0.01
    even = risk_variance(linear, z, _halves, n_rows=40, random_state=1)
    assert even.ratio == pytest.approx(1), "even weights leave a linear risk as it is"


def test_proposition_3_bounds_a_risk_of_1_by_less_than_1():
    n, delta = 10**6, 0.05
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], size=(n, 2))
    mixed = np.abs(signs.mean(axis=1))
    complexity = np.log(10 / delta)  # a single function has covering number 1
    bound = (
        mixed.mean() + np.sqrt(18 * mixed.var(ddof=1) * complexity / n) + 15 * complexity / (n - 1)
    )  # Maurer and Pontil 2009, Theorem 6, of which Eq 11 is the order
    assert np.abs(signs).mean() == 1
    assert bound < 0.51


def test_a_mixed_risk_is_biased_however_many_rows_there_are():
    z = np.repeat([[-1.0], [1.0]], 50, axis=0)
    for n_rows in (20, 2000):
        found = risk_variance(
            lambda p: np.abs(p[:, 0]), z, _halves, n_rows=n_rows, n_resamples=100, random_state=0
        )
        assert found.risk == 1
        assert found.bias == pytest.approx(-0.5, abs=0.05)
        assert np.isnan(found.ratio), "the plain risk does not vary at all"


def test_a_convex_loss_may_vary_less_and_be_the_worse_estimate():
    rng = np.random.default_rng(3)
    z = rng.normal(size=(300, 2))
    found = risk_variance(lambda p: (p**2).sum(axis=1), z, _uniform(rng), n_resamples=400, random_state=2)
    assert found.bias < -0.5
    assert found.ratio_interval()[1] < 1 < found.error_ratio


def test_risk_variance_refuses_what_it_cannot_resample():
    with pytest.raises(ValueError, match="points must be a table"):
        risk_variance(lambda p: p[:, 0], np.zeros(3), _halves)
    with pytest.raises(ValueError, match="n_mixed must be at least 2"):
        risk_variance(lambda p: p[:, 0], np.zeros((3, 2)), _halves, n_mixed=1)


def test_scatter_is_zero_of_collapsed_classes_and_knows_no_axes_or_scale():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], [50, 20, 5])
    centers = rng.normal(size=(3, 4))
    assert scatter(centers[codes], codes).ratio == pytest.approx(0)
    z = centers[codes] + 0.3 * rng.normal(size=(75, 4))
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    assert scatter(3 * z @ turn + 1, codes).ratio == pytest.approx(scatter(z, codes).ratio)
    wider = centers[codes] + 2 * (z - centers[codes])
    assert scatter(wider, codes).ratio > scatter(z, codes).ratio
    assert scatter(np.zeros((4, 2)), [0, 0, 1, 1]).ratio == np.inf
