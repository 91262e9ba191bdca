"""Density, coverage and Fréchet distance against direct formulas and known limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg
from scipy.spatial.distance import cdist

from equipoise.metrics import (
    balls,
    coverage,
    density,
    frechet_distance,
    generative,
    generative_interval,
)


def direct(real, fake, k):
    """The definition, pair by pair."""
    own = np.sort(cdist(real, real, "sqeuclidean") + np.diag(np.full(len(real), np.inf)), axis=1)
    inside = cdist(fake, real, "sqeuclidean") < own[:, k - 1]
    return inside.sum() / (k * len(fake)), inside.any(axis=0).mean()


@given(st.integers(0, 10_000), st.integers(1, 3), st.booleans())
@settings(max_examples=60, deadline=None)
def test_agreement_with_the_definition_even_on_lattices_full_of_ties(seed, k, lattice):
    rng = np.random.default_rng(seed)
    real, fake = rng.normal(size=(20, 3)), rng.normal(size=(15, 3))
    if lattice:
        real, fake = np.round(real) + 1000, np.round(fake) + 1000
    expected = direct(real, fake, k)
    assert density(real, fake, k=k) == pytest.approx(expected[0], abs=1e-12)
    assert coverage(real, fake, k=k) == pytest.approx(expected[1], abs=1e-12)


def test_memory_is_bounded_by_blocks_and_blocks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(0)
    real, fake = rng.normal(size=(300, 8)), rng.normal(size=(200, 8))
    whole = balls(real, fake)
    monkeypatch.setattr(generative, "_CELLS", 1000)
    parts = balls(real, fake)
    np.testing.assert_array_equal(whole.hits, parts.hits)
    np.testing.assert_array_equal(whole.covered, parts.covered)


def test_equal_distributions_have_their_known_means():
    rng = np.random.default_rng(1)
    real, fake = rng.normal(size=(1500, 4)), rng.normal(size=(1500, 4))
    assert density(real, fake) == pytest.approx(1, abs=0.08)
    assert coverage(real, fake, k=3) == pytest.approx(1 - 2.0**-3, abs=0.04)
    assert coverage(real, fake + 100) == density(real, fake + 100) == 0


def test_moving_and_turning_both_changes_nothing():
    rng = np.random.default_rng(2)
    real, fake = rng.normal(size=(80, 3)), 1.5 * rng.normal(size=(60, 3))
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    moved = real @ turn + 5, fake @ turn + 5
    assert density(*moved) == density(real, fake)
    assert frechet_distance(*moved) == pytest.approx(frechet_distance(real, fake))
    assert frechet_distance(fake, real) == pytest.approx(frechet_distance(real, fake))


@pytest.mark.parametrize("n", [4, 200])
def test_frechet_agrees_with_the_matrix_root(n):
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(n, 6)), rng.normal(size=(n, 6)) @ rng.normal(size=(6, 6)) + 1
    first, second = np.cov(a.T), np.cov(b.T)
    half = linalg.sqrtm(first + 1e-14 * np.eye(6)).real
    cross = np.sqrt(np.clip(np.linalg.eigvalsh(half @ second @ half), 0, None)).sum()
    expected = ((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(first + second) - 2 * cross
    assert frechet_distance(a, b) == pytest.approx(expected, rel=1e-5)
    assert frechet_distance(a, a) == pytest.approx(0, abs=1e-10)
    assert frechet_distance(a, a + 2) == pytest.approx(24)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("name", ["density", "coverage"])
def test_interval_holds_the_estimate_and_is_seeded(name, method):
    rng = np.random.default_rng(4)
    real, fake = rng.normal(size=(100, 3)), rng.normal(size=(100, 3))
    got = generative_interval(name, real, fake, method=method, n_resamples=200, random_state=0)
    assert got.estimate in got
    assert got.estimate == {"density": density, "coverage": coverage}[name](real, fake)
    assert got == generative_interval(name, real, fake, method=method, n_resamples=200, random_state=0)


def test_frechet_interval_turns_the_bias_around():
    rng = np.random.default_rng(5)
    real, fake = rng.normal(size=(150, 3)), rng.normal(size=(150, 3)) + np.array([0.5, 0, 0])
    options = {"n_resamples": 200, "random_state": 0}
    raw = generative_interval("frechet_distance", real, fake, **options)
    basic = generative_interval("frechet_distance", real, fake, method="basic", **options)
    assert raw.low < raw.high
    assert basic.low < 0.25 < basic.high
    assert (basic.low + basic.high) / 2 < raw.estimate < (raw.low + raw.high) / 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: density([[1.0], [np.nan]], [[1.0]]), "real must be finite, got nan"),
        (lambda: density([[1.0]] * 3, [[1.0]], k=5), "real must have at least 6 samples, got 3"),
        (lambda: density([1.0, 2.0], [[1.0]]), r"real must have the shape \(samples, features\), got \(2,\)"),
        (lambda: coverage([[1.0]] * 6, [[1.0, 2.0]]), "as many features, got 1 and 2"),
        (lambda: coverage([[1.0]] * 6, [[1.0]], k=0), "k must be at least 1, got 0"),
        (lambda: coverage([[1.0]] * 6, []), "fake must not be empty"),
        (lambda: frechet_distance([[1.0], [2.0]], [[1.0]]), "fake must have at least 2 samples, got 1"),
        (lambda: generative_interval("fid", [[1.0]], [[1.0]]), "name must be one of .* got 'fid'"),
    ],
)
def test_message_names_argument_and_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()
