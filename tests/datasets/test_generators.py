"""Teacher–student data and Gaussian mixtures against their laws."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise import datasets
from equipoise.datasets import (
    GaussianMixture,
    TeacherStudent,
    gram_matrix,
    make_gaussian_mixture,
    make_teacher_student,
    mixture_like,
)
from equipoise.datasets.mixtures import centroids_from_gram


@settings(max_examples=30)
@given(
    n_features=st.integers(1, 30),
    bias=st.floats(-8, 8),
    fraction=st.floats(0.02, 0.98),
    seed=st.integers(0, 1000),
)
def test_the_teacher_agrees_and_counts_are_exact(n_features, bias, fraction, seed):
    model = make_teacher_student(n_features, bias=bias, random_state=seed)
    assert np.linalg.norm(model.weights) == pytest.approx(np.sqrt(n_features))
    train = model.sample_train(50, fraction, random_state=seed)
    assert train.y.sum() == round(50 * fraction)
    margin = train.X @ model.weights / np.sqrt(n_features) + bias
    clear = np.abs(margin) > 1e-9  # a draw on the boundary may round to either side
    assert np.array_equal(model.label(train.X)[clear], train.y[clear])


@pytest.mark.parametrize("label", [0, 1])
def test_along_the_teacher_it_is_a_truncated_gaussian_and_across_it_is_free(label):
    model = make_teacher_student(20, bias=-1.5, random_state=0)
    data = model.sample_train(20_000, 0.5, random_state=1)
    unit = model.weights / np.linalg.norm(model.weights)
    X = data.X[data.y == label]
    low, high = (1.5, np.inf) if label else (-np.inf, 1.5)
    assert scipy.stats.kstest(X @ unit, scipy.stats.truncnorm(low, high).cdf).pvalue > 1e-3
    across = np.eye(20)[0] - unit[0] * unit
    across /= np.linalg.norm(across)
    assert scipy.stats.kstest(X @ across, "norm").pvalue > 1e-3


def test_without_a_fraction_the_population_is_gaussian():
    model = make_teacher_student(10, bias=-0.6, random_state=3)
    data = model.sample_test(20_000, random_state=4)
    share, expected = data.y.mean(), model.intrinsic_fraction
    assert expected == pytest.approx(scipy.stats.norm.sf(0.6))
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / 20_000)
    assert scipy.stats.kstest(data.X @ model.weights / np.sqrt(10), "norm").pvalue > 1e-3
    assert np.cov(data.X.T) == pytest.approx(np.eye(10), abs=0.06)


def test_test_labels_are_independent_draws():
    model = make_teacher_student(3, bias=-1, random_state=0)
    shares = [model.sample_test(100, 0.3, random_state=seed).y.mean() for seed in range(400)]
    assert np.mean(shares) == pytest.approx(0.3, abs=0.01)
    assert np.var(shares) == pytest.approx(0.3 * 0.7 / 100, rel=0.3)


def test_a_given_teacher_is_kept_up_to_its_length():
    model = TeacherStudent(np.array([3.0, 0, 0, 0]), 0.0)
    assert model.weights == pytest.approx([2, 0, 0, 0])
    assert (model.sample_train(20, 0.5, random_state=0).X[:, 0] > 0).sum() == 10


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TeacherStudent(np.zeros(3), 0.0), "nonzero vector"),
        (lambda: TeacherStudent(np.ones(3), np.nan), "bias must be finite"),
        (lambda: make_teacher_student(0, bias=0), "n_features must be at least 1, got 0"),
        (lambda: make_teacher_student(2, bias=0).sample_train(5, 1.3), r"fraction must lie in \(0, 1\)"),
        (lambda: make_teacher_student(2, bias=0).sample_test(0), "n_samples must be at least 1"),
        (lambda: centroids_from_gram([[1, 2], [2, 1]], 5), "positive semidefinite, got the eigenvalue -1"),
        (lambda: centroids_from_gram([[1, 0], [1, 1]], 5), "symmetric"),
        (lambda: centroids_from_gram(np.eye(3), 2), "gram of rank 3 needs at least as many features, got 2"),
        (lambda: make_gaussian_mixture(5, variances=[1, -1]), "variances must be positive, got -1"),
        (lambda: make_gaussian_mixture(5, variances=[1, 1], weights=[0.5, 0.6]), "sums to 1"),
        (lambda: make_gaussian_mixture(5, variances=[1, 1], gram=np.eye(3)), "same length, got 2 and 3"),
        (lambda: GaussianMixture(np.ones(3), np.ones(1), np.ones(1)), "one row a class"),
        (lambda: gram_matrix([1, 1], 2), r"cosines must lie in \[-1, 1\], got 2"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@settings(max_examples=30)
@given(st.integers(1, 5), st.integers(5, 40), st.integers(0, 1000))
def test_centroids_have_the_given_gram(n_classes, n_features, seed):
    factor = np.random.default_rng(seed).normal(size=(n_classes, 2))  # rank two at most
    gram = factor @ factor.T
    centroids = centroids_from_gram(gram, n_features, random_state=seed)
    assert centroids.shape == (n_classes, n_features)
    assert centroids @ centroids.T == pytest.approx(gram, abs=1e-9)


def test_mixture_moments():
    gram = gram_matrix([1.0, 0.5], 0.3)
    mixture = make_gaussian_mixture(40, variances=[0.5, 0.25], weights=[0.9, 0.1], gram=gram, random_state=0)
    assert mixture.gram == pytest.approx(gram)
    data = mixture.sample(20_000, random_state=1)
    assert data.class_counts == {0: 18_000, 1: 2_000}
    for label in (0, 1):
        X = data.X[data.y == label]
        error = X.mean(axis=0) - mixture.centroids[label]
        variance = mixture.variances[label]
        assert (np.abs(error) < 5 * np.sqrt(variance / len(X))).all()
        assert X.var() - mixture.centroids[label].var() == pytest.approx(variance, rel=0.03)


def test_mixture_labels_can_be_drawn():
    mixture = make_gaussian_mixture(3, variances=[1, 1], weights=[0.5, 0.5], random_state=0)
    sizes = {mixture.sample(101, exact=False, random_state=seed).y.sum() for seed in range(20)}
    assert len(sizes) > 3


def test_a_mixture_like_the_data_has_its_geometry():
    data = datasets.load_digits_imbalanced()
    mixture = mixture_like(data.X, data.y, random_state=0)
    means = np.stack([data.X[data.y == c].mean(axis=0) for c in range(10)])
    assert mixture.centroids @ mixture.centroids.T == pytest.approx(means @ means.T)
    assert mixture.weights == pytest.approx(np.bincount(data.y) / len(data))
    smaller = mixture_like(data.images, data.y, n_features=20, random_state=0)
    assert smaller.gram == pytest.approx(mixture.gram)
    with pytest.raises(ValueError, match="variances must be positive, got 0"):
        mixture_like(np.eye(2), [0, 1])  # one sample a class has no variance


def test_all_centroids_at_the_origin():
    mixture = make_gaussian_mixture(4, variances=[1, 2], gram=np.zeros((2, 2)), random_state=0)
    assert not mixture.centroids.any()
