import numpy as np
import pytest

from equipoise.theory.diffusion import ClassMixture, coefficients
from equipoise.theory.diffusion.coefficients import spread


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": [0.5, 0.6], "variances": [1, 1]}, "weights must be a vector that sums to 1"),
        ({"weights": [-0.5, 1.5], "variances": [1, 1]}, "weights must lie in"),
        ({"weights": [0.5, 0.5], "variances": [1, 0]}, "variances must be positive, got 0"),
        ({"weights": [0.5, 0.5], "variances": [1]}, "must have the same length"),
        (
            {"weights": [0.5, 0.5], "variances": [1, 1], "centroid_gram": [[1, 2], [2, 1]]},
            "centroid_gram must be positive semi-definite, got a lowest eigenvalue of -1",
        ),
        ({"weights": [0.5, 0.5], "variances": [1, 1], "centroid_gram": [[1, 0]]}, "must have shape"),
        ({"weights": [0.5, 0.5], "variances": [1, 1], "centroid_gram": [[1, 1], [0, 1]]}, "symmetric"),
    ],
)
def test_bad_mixtures_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        ClassMixture(**arguments)


def test_centroids_have_the_gram():
    gram = np.array([[1.0, -0.5, 0.2], [-0.5, 2.0, 0.1], [0.2, 0.1, 0.3]])
    mix = ClassMixture([0.2, 0.3, 0.5], [1, 1, 1], gram)
    m = mix.centroids(40)
    np.testing.assert_allclose(m @ m.T / 40, gram, atol=1e-12)


def test_collinear_centroids_need_one_direction():
    mix = ClassMixture([0.5, 0.5], [1, 1], [[1, -1], [-1, 1]])
    assert mix.centroid_factor().shape == (2, 1)


def test_from_data_recovers_the_mixture():
    rng = np.random.default_rng(0)
    truth = ClassMixture([0.75, 0.25], [0.5, 0.2], [[1.0, 0.3], [0.3, 0.5]], ["a", "b"])
    m = truth.centroids(60)
    X = np.vstack(
        [m[c] + np.sqrt(truth.variances[c]) * rng.normal(size=(n, 60)) for c, n in ((0, 3000), (1, 1000))]
    )
    y = np.repeat(["a", "b"], [3000, 1000])
    found = ClassMixture.from_data(X, y)
    np.testing.assert_allclose(found.weights, truth.weights)
    np.testing.assert_allclose(found.variances, truth.variances, rtol=0.02)
    np.testing.assert_allclose(found.centroid_gram, truth.centroid_gram, atol=0.02)
    scaled = ClassMixture.from_data(X, y, preprocess=lambda x: 2 * x)
    np.testing.assert_allclose(scaled.variances, 4 * found.variances)


@pytest.mark.parametrize("dtype", [str, object])
def test_a_class_of_one_sample_is_named_as_it_is_written(dtype):
    with pytest.raises(ValueError, match=r"^class 'rare' of y must have at least 2 samples"):
        ClassMixture.from_data(np.eye(4), np.array(["often"] * 3 + ["rare"], dtype=dtype))


def test_from_data_counts_are_repeats():
    rng = np.random.default_rng(1)
    X, y, k = rng.normal(size=(30, 4)), np.repeat([0, 1], 15), rng.integers(1, 4, size=30)
    a = ClassMixture.from_data(X, y, sample_weight=k)
    b = ClassMixture.from_data(np.repeat(X, k, axis=0), np.repeat(y, k))
    np.testing.assert_allclose(a.variances, b.variances)
    np.testing.assert_allclose(a.centroid_gram, b.centroid_gram, atol=1e-12)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros(3), [0, 0, 1], "samples and features"),
        (np.ones((4, 2)), [0, 0, 1, 1], "does not vary"),
        (
            np.where(np.arange(40)[:, None] < 20, 1.1, np.arange(40)[:, None]),
            np.repeat([0, 1], 20),
            "class 0 of y does not vary",
        ),
        (np.eye(3), [0, 0, 1], "at least 2 samples"),
        (np.eye(3), [0, 1], "same length"),
        (np.full((4, 2), np.nan), [0, 0, 1, 1], "X must be finite"),
    ],
)
def test_bad_data_is_named(X, y, message):
    with pytest.raises(ValueError, match=message):
        ClassMixture.from_data(X, y)


def test_counts_follow_the_weights():
    counts = ClassMixture([0.335, 0.335, 0.33], [1, 1, 1]).class_counts(10)
    assert counts.sum() == 10
    assert set(counts) == {3, 4}


def test_coefficients_against_sampling():
    rng = np.random.default_rng(0)
    variance, t, mu = 0.5, 0.3, 0.8
    c = coefficients(variance, t, mu)
    delta = 1 - np.exp(-2 * t)
    a, y1, y2 = rng.normal(size=(3, 400_000))
    signal = np.exp(-t) * (mu + np.sqrt(variance) * a)
    f1, f2 = np.tanh(signal + np.sqrt(delta) * y1), np.tanh(signal + np.sqrt(delta) * y2)
    for value, samples in (
        (c.alpha, f1),
        (c.second_moment, f1**2),
        (c.smoothed_second_moment, f1 * f2),
        (c.slope, a * f1),
        (c.slope_total * np.sqrt(delta) / spread(variance, t), y1 * f1),
    ):
        assert abs(value - samples.mean()) < 4 * samples.std() / np.sqrt(samples.size)
    assert c.floor == pytest.approx(
        c.second_moment - c.smoothed_second_moment - delta * c.slope**2 / (variance * np.exp(-2 * t))
    )


def test_coefficients_of_a_general_activation():
    c = coefficients(0.5, 0.1, 0.4, activation=lambda u: u**2 + u)
    total, shift = float(spread(0.5, 0.1)), 0.4 * np.exp(-0.1)
    assert c.alpha == pytest.approx(total**2 + shift**2 + shift)
    assert c.slope_total == pytest.approx(total * (1 + 2 * shift))
    rho = 0.5 * np.exp(-0.2) / total**2
    assert c.sample_noise == pytest.approx(2 * rho**2 * total**4)  # only He₂ is left
    assert c.floor == pytest.approx(2 * (1 - rho**2) * total**4)
