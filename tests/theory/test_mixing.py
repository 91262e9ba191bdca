"""Mixing of one class: the propositions against eigenvalues and simulation."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.theory.mixing import (
    linearly_separable,
    lipschitz_bound,
    mixing_factor,
    risk_variance,
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
    found = risk_variance(loss(z), float(loss(z.mean(axis=0))))
    parents = rng.integers(len(z), size=(200_000, len(weights)))
    mixed = loss(np.einsum("j,ijk->ik", weights, z[parents]))
    error = np.sqrt(np.var((mixed - mixed.mean()) ** 2) / len(mixed))
    assert mixed.var() <= found.bound(weights) + 3 * error


def test_where_the_condition_fails_mixing_may_raise_nothing_is_promised():
    found = risk_variance([0.0, 2.0], 0.5)
    assert not found.promises_less(2)
    assert found.promises_less(4)
    assert risk_variance([1.0, 1.0], 1.0).largest_norm == -np.inf
