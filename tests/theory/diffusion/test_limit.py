"""Test errors in the limit of large dimension, against instances and against what must hold."""

import numpy as np
import pytest

from equipoise.theory.diffusion import ClassMixture, RandomFeatures

TIMES = np.geomspace(0.01, 30, 9)


def limit(mixture, p=20, m=8, t=0.01, times=TIMES):
    return RandomFeatures(mixture, t, p, m).limit_curves(times)


def test_centered_classes_against_instances():
    rf = RandomFeatures(ClassMixture([0.6, 0.4], [0.5, 0.25]), 0.01, 20, 8)
    found = rf.learning_curves(60, TIMES, 3, 0, matrices="equivalent", step=None)
    error = found.test_per_class_spread / np.sqrt(3)
    np.testing.assert_array_less(
        np.abs(rf.limit_curves(TIMES).test_per_class - found.test_per_class), 4 * error + 1e-3
    )


@pytest.mark.agreement
def test_instances_with_centroids_approach_the_limit_as_one_over_the_dimension():
    rf = RandomFeatures(ClassMixture([0.7, 0.3], [0.5, 0.25], np.diag([1, 0.5])), 0.01, 20, 8)
    times = np.array([0.1, 0.3, 1.0])
    exact = rf.limit_curves(times).test_per_class
    off = []
    for n, repeats in ((15, 12), (60, 3)):
        found = rf.learning_curves(n, times, repeats, 0, matrices="equivalent", step=None)
        off.append(np.abs(found.test_per_class - exact).max())
    assert off[0] < 0.02
    assert off[1] < 0.4 * off[0]  # a fourth, and some noise


def test_equal_classes_have_equal_errors():
    found = limit(ClassMixture([0.5, 0.5], [0.4, 0.4], np.eye(2))).test_per_class
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_splitting_a_class_changes_nothing():
    whole = limit(ClassMixture([0.3, 0.7], [0.5, 0.3])).test_per_class
    split = limit(ClassMixture([0.3, 0.5, 0.2], [0.5, 0.3, 0.3])).test_per_class
    np.testing.assert_allclose(split[[0, 1]], whole, atol=1e-7)
    np.testing.assert_allclose(split[2], split[1], atol=1e-7)


def test_small_centroids_are_no_centroids():
    none = limit(ClassMixture([0.3, 0.7], [0.5, 0.3])).test_per_class
    tiny = limit(ClassMixture([0.3, 0.7], [0.5, 0.3], 1e-8 * np.eye(2))).test_per_class
    np.testing.assert_allclose(tiny, none, atol=1e-5)


def test_with_endless_samples_the_test_error_is_the_train_error():
    found = limit(ClassMixture([0.3, 0.7], [0.5, 0.3], [[1, 0.2], [0.2, 0.5]]), m=1e6, times=[0.1, 1.0, 10.0])
    np.testing.assert_allclose(found.test, found.train, atol=1e-4)


def test_times_may_come_in_any_order_and_far_apart():
    mixture = ClassMixture([0.3, 0.7], [0.5, 0.3], np.eye(2))
    alone = [limit(mixture, times=[tau]).test_per_class[:, 0] for tau in (100.0, 0.01)]
    np.testing.assert_allclose(limit(mixture, times=[100.0, 0.01]).test_per_class.T, alone, atol=1e-7)


def test_more_than_three_spanned_dimensions():
    five = ClassMixture(np.full(5, 0.2), np.full(5, 0.4), np.eye(5))
    found = limit(five, times=[0.1, 1.0, 10.0]).test_per_class
    np.testing.assert_allclose(found, np.broadcast_to(found.mean(axis=0), found.shape), atol=0.01)
    rf = RandomFeatures(five, 0.01, 20, 8)
    some = rf.learning_curves(60, [0.1, 1.0, 10.0], 2, 0, matrices="equivalent", step=None)
    np.testing.assert_allclose(found.mean(axis=0), some.test, atol=0.01)


@pytest.mark.parametrize(
    ("variances", "norms", "reversed_"),
    [
        ((0.5, 0.25), (1, 1), False),
        ((0.5, 0.4), (1, 1), False),
        ((0.5, 0.45), (1, 1), True),
        ((0.5, 0.5), (1, 1.21), True),
    ],
)
def test_result_3_where_scarcity_reverses_the_order_of_generalization(variances, norms, reversed_):
    """The paper says that undersampling the class of high variance makes the other one generalize first. In the
    limit this holds for variances up to about 10 % apart, and not for those of Figs 3 and 4."""

    def gap(weight):
        mixture = ClassMixture([weight, 1 - weight], variances, np.diag(norms))
        curves = RandomFeatures(mixture, 0.01, 60, 30).limit_curves(np.geomspace(0.03, 3, 24))
        return curves.generalization_gap[0, 1]

    assert gap(0.5) < 0
    assert (gap(0.05) > 0) == reversed_


def test_all_minima_of_a_test_error_are_told():
    mixture = ClassMixture([0.2, 0.8], [0.5, 0.25], np.eye(2))
    first, second = (
        RandomFeatures(mixture, 0.01, 60, 30).limit_curves(np.geomspace(0.03, 3, 30)).generalization_minima
    )
    assert len(first) == 2  # the deeper one, at τ = 0.09, counts; the other is at 0.9
    assert first[0][1] < first[1][1]
    assert len(second) == 1
