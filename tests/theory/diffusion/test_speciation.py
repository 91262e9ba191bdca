import numpy as np
import pytest

from equipoise.theory.diffusion import (
    ClassMixture,
    centroid_overlaps,
    leading_speciation_time,
    speciation_time,
    spike_overlap,
)


def orthogonal(b2, norms=(1.0, 1.0)):
    return ClassMixture([1 - b2, b2], [0.5, 0.5], np.diag(norms))


def test_weak_imbalance_does_not_move_the_leading_order():
    n = 10**8
    times = speciation_time(orthogonal(0.3), n, 2.0).appearance / np.log(n)
    np.testing.assert_allclose(times, [0.5, 0.5], atol=0.04)
    np.testing.assert_allclose(leading_speciation_time(n), 0.5 * np.log(n))


@pytest.mark.parametrize("a", [0.25, 0.5, 0.75])
def test_strong_imbalance_delays_the_minority(a):
    n = 10**8
    times = speciation_time(orthogonal(n**-a), n, 2.0).appearance
    np.testing.assert_allclose(times[1] / np.log(n), (1 - a) / 2, atol=0.02)
    np.testing.assert_allclose(times[1], leading_speciation_time(n, a) + 0.25 * np.log(2), atol=1e-6)


def test_small_centroids_are_delayed_alike():
    n, a = 10**6, 0.4
    by_norm = speciation_time(orthogonal(0.5, (1.0, n**-a)), n, 2.0).appearance
    by_weight = leading_speciation_time(n, norm_exponent=a)
    assert by_norm[1] == pytest.approx(float(by_weight) + 0.5 * np.log(0.5 * np.sqrt(2.0)), abs=1e-6)


def test_overlap_vanishes_at_the_transition_and_tends_to_one():
    p = 3.0
    critical = 1 / np.sqrt(p)
    np.testing.assert_allclose(spike_overlap([critical * 0.99, critical * (1 + 1e-9)], p), [0, 0], atol=1e-8)
    assert spike_overlap(1e4, p) == pytest.approx(1, abs=1e-6)


def test_overlap_against_a_spiked_wishart_matrix():
    rng = np.random.default_rng(0)
    n, p, theta = 400, 2, 1.1
    found = []
    for _ in range(4):
        w = rng.standard_normal((p * n, n))
        spiked = w.copy()
        spiked[:, 0] *= np.sqrt(1 + theta)
        top = np.linalg.svd(spiked, full_matrices=False)[0][:, 0]
        found.append((top @ w[:, 0]) ** 2 / (w[:, 0] @ w[:, 0]))
    error = np.std(found) / np.sqrt(len(found)) + 0.01
    assert abs(np.mean(found) - spike_overlap(theta, p)) < 4 * error


@pytest.mark.agreement
def test_theory_line_against_the_equivalent_matrix():
    n = 300
    mix = orthogonal(n**-0.5)
    times = np.array([0.15, 0.4, 0.65]) * np.log(n)
    found = centroid_overlaps(mix, times, n, 2.0, samples_per_dim=5, n_instances=2, random_state=0)
    assert found.simulation is not None
    np.testing.assert_allclose(found.simulation[0], found.theory[0], atol=0.04)
    assert found.simulation[1, 0] == pytest.approx(found.theory[1, 0], abs=0.04)  # the majority is seen,
    assert found.simulation[1, 1] < 0.25  # the minority not yet,
    assert (found.simulation[2] < 0.25).all()  # and at last neither


def test_centered_classes_never_speciate():
    found = speciation_time(ClassMixture([0.5, 0.5], [1, 2]), 100, 2.0)
    assert (found.appearance == -np.inf).all()
    assert (found.separation == -np.inf).all()


def test_a_common_mean_appears_long_before_the_classes_separate():
    n, p = 300, 2
    near = ClassMixture([0.5, 0.5], [0.5, 0.5], [[1, 0.9], [0.9, 1]])
    found = speciation_time(near, n, p)
    np.testing.assert_allclose(found.appearance, 0.5 * np.log(n * 0.95 * np.sqrt(p)))
    np.testing.assert_allclose(found.separation, 0.5 * np.log(n * 0.05 * np.sqrt(p)))
    w = np.random.default_rng(0).standard_normal((p * n, n))
    for time, told_apart in ((found.separation[0] - 0.5, True), (found.separation[0] + 0.4, False)):
        spiked = w.copy()
        spiked[:, :2] *= np.sqrt(1 + np.exp(-2 * time) * n * np.array([0.95, 0.05]))
        top = np.linalg.svd(spiked, full_matrices=False)[0][:, :2]
        mean, difference = ((top.T @ w[:, :2]) ** 2).sum(axis=0) / (w[:, :2] ** 2).sum(axis=0)
        assert mean > 0.9
        assert (difference > 0.5) == told_apart


def test_classes_with_one_centroid_never_separate():
    same = ClassMixture([0.5, 0.3, 0.2], [0.5, 0.4, 0.3], [[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    found = speciation_time(same, 1000, 2.0)
    assert np.isfinite(found.appearance).all()
    assert (found.separation[:2] == -np.inf).all()
    assert np.isfinite(found.separation[2])


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="dimension must be at least 2"):
        speciation_time(orthogonal(0.3), 1, 2.0)
    with pytest.raises(ValueError, match="features_per_dim must be positive"):
        speciation_time(orthogonal(0.3), 10, 0.0)
    with pytest.raises(ValueError, match="weight_exponent must lie in"):
        leading_speciation_time(10, 1.5)
    with pytest.raises(ValueError, match="times must be positive"):
        centroid_overlaps(orthogonal(0.3), [0.0], 10, 2.0)
