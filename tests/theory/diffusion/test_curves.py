import numpy as np
import pytest

from equipoise.theory.diffusion import ClassMixture, RandomFeatures
from equipoise.theory.diffusion.curves import default_times, response
from equipoise.theory.diffusion.instances import draw, populations, true_decomposition
from equipoise.theory.diffusion.times import crossing_times, minimum_times

GRAM = [[1.0, 0.3], [0.3, 1.5]]
SMALL = RandomFeatures(ClassMixture([0.6, 0.4], [0.5, 0.25], GRAM), 0.1, 3, 2)


def matrices(model, dimension, seed):
    instance = draw(model, dimension, seed)
    parts = true_decomposition(model, instance)
    u = (parts.vectors * parts.eigenvalues) @ parts.vectors.T
    return instance, u, parts.vectors @ parts.target.T


def noisy_features(model, instance, x, rng):
    """Features of noisy copies of the columns of x, one noise each; also the noise."""
    n = instance.dimension
    xi = rng.standard_normal(x.shape)
    decay, delta = np.exp(-model.diffusion_time), model.noise_variance
    return np.tanh(instance.projections @ (decay * x + np.sqrt(delta) * xi) / np.sqrt(n)), xi


def test_true_matrices_against_sampled_noise():
    instance, u, v = matrices(SMALL, 12, 0)
    rng = np.random.default_rng(1)
    mixture = SMALL.mixture
    m = mixture.centroids(12)
    x = np.hstack([m[c][:, None] + np.sqrt(mixture.variances[c]) * instance.fluctuations[c] for c in (0, 1)])
    weights = np.concatenate(instance.sample_weights)
    draws_u, draws_v = [], []
    for _ in range(3000):
        f, xi = noisy_features(SMALL, instance, x, rng)
        draws_u.append((f * weights) @ f.T)
        draws_v.append((f * weights) @ xi.T)
    for exact, draws in ((u, np.array(draws_u)), (v, np.array(draws_v))):
        error = draws.std(axis=0) / np.sqrt(len(draws))
        assert np.abs((exact - draws.mean(axis=0)) / error).max() < 5.5


def test_population_matrices_against_samples():
    instance = draw(SMALL, 12, 0)
    rng = np.random.default_rng(2)
    m = SMALL.mixture.centroids(12)
    for c, population in enumerate(populations(SMALL, instance, equivalent=False)):
        form, readout = population.form(), population.readout
        x = m[c][:, None] + np.sqrt(SMALL.mixture.variances[c]) * rng.standard_normal((12, 200_000))
        f, xi = noisy_features(SMALL, instance, x, rng)
        np.testing.assert_allclose(form, f @ f.T / x.shape[1], atol=6e-3)
        np.testing.assert_allclose(readout, f @ xi.T / x.shape[1], atol=8e-3)


def test_closed_form_is_gradient_descent():
    n, step = 10, 2e-3
    seed_curves = SMALL.learning_curves(n, times=[step * 1, step * 40, step * 400], random_state=5, step=step)
    from equipoise._core.random import derive_seed

    instance, u, v = matrices(SMALL, n, derive_seed(5, "instance", 0))
    forms = [(p.form(), p.readout) for p in populations(SMALL, instance, equivalent=False)]
    delta = SMALL.noise_variance
    a = np.zeros((n, len(u)))
    errors = {}
    for k in range(1, 401):
        a = a - 2 * step * (a @ u + v.T / np.sqrt(delta))  # Eq 21 with η̃ = ηΔ/N
        if k in (1, 40, 400):
            both = [(u, v), *forms]
            errors[k] = [
                1 + (delta * np.sum((a @ f) * a) + 2 * np.sqrt(delta) * np.sum(g.T * a)) / n for f, g in both
            ]
    found = np.vstack([seed_curves.train, seed_curves.test_per_class]).T
    np.testing.assert_allclose(found, [errors[1], errors[40], errors[400]], rtol=1e-7)


def test_flow_is_the_limit_of_small_steps():
    lam, tau = np.array([1e-9, 1e-3, 1.0, 30.0]), np.array([0.01, 1.0, 100.0])
    np.testing.assert_allclose(response(lam, tau, 1e-6), response(lam, tau, None), rtol=1e-3)
    assert response(np.array([0.0]), tau, None)[0] == pytest.approx(2 * tau)


def test_oscillating_steps_still_follow_descent():
    lam, step = np.array([3.0]), 0.25  # 1 − 2·step·λ = −0.5
    found = response(lam, step * np.array([1, 2, 3]), step)[0]
    np.testing.assert_allclose(found, (1 - (-0.5) ** np.array([1, 2, 3])) / 3.0)


def test_too_large_a_step_is_named():
    with pytest.raises(ValueError, match="step must be below 1/λ_max"):
        SMALL.learning_curves(10, times=[1.0], random_state=0, step=1.0)


def test_curves_begin_at_one_and_train_error_falls():
    curves = SMALL.learning_curves(16, n_instances=2, random_state=0)
    assert curves.train[0] == pytest.approx(1, abs=1e-3)
    assert curves.test_per_class[:, 0] == pytest.approx([1, 1], abs=1e-3)
    assert (np.diff(curves.train) <= 1e-12).all()
    assert (curves.test_spread >= 0).all()
    assert np.isfinite(curves.generalization_time_error).all()
    shift = curves.score_error_per_class - curves.test_per_class / curves.noise_variance
    np.testing.assert_allclose(shift, np.broadcast_to(shift[:, :1], shift.shape))


def test_same_seed_same_bits_and_label_symmetry():
    a = SMALL.learning_curves(10, random_state=3, times=[0.1, 1])
    b = SMALL.learning_curves(10, random_state=3, times=[0.1, 1])
    np.testing.assert_array_equal(a.test_runs, b.test_runs)


def test_classes_keep_their_samples_when_weights_change():
    other = RandomFeatures(SMALL.mixture.with_weights([0.3, 0.7]), 0.1, 3, 2)
    a, b = draw(SMALL, 10, 0), draw(other, 10, 0)
    for x, y in zip(a.fluctuations, b.fluctuations, strict=True):
        shared = min(x.shape[1], y.shape[1])
        np.testing.assert_array_equal(x[:, :shared], y[:, :shared])
    np.testing.assert_allclose([w.sum() for w in b.sample_weights], [0.3, 0.7])


def test_gram_side_equals_the_dense_side():
    mix = ClassMixture([0.5, 0.5], [0.5, 0.25])
    small = RandomFeatures(mix, 0.05, 8, 3).learning_curves(12, random_state=0, matrices="equivalent")
    nearly = ClassMixture([0.5, 0.5], [0.5, 0.25], np.eye(2) * 1e-14)
    dense = RandomFeatures(nearly, 0.05, 8, 3).learning_curves(12, random_state=0, matrices="equivalent")
    np.testing.assert_allclose(small.train, dense.train, rtol=1e-5)
    np.testing.assert_allclose(small.test_per_class, dense.test_per_class, rtol=1e-4)


def test_times_of_known_curves():
    tau = default_times()
    bowl = np.vstack([(np.log(tau) - 1) ** 2 / 4, (np.log(tau) + 2) ** 2 / 4 + 0.5])
    np.testing.assert_allclose(minimum_times(tau, bowl), np.exp([1, -2]), rtol=1e-4)
    np.testing.assert_allclose(crossing_times(tau, bowl), np.exp([3, -2 + 2 * np.sqrt(0.5)]), rtol=1e-3)
    assert np.isnan(crossing_times(tau, bowl, threshold=40)).all()


def test_threshold_is_adjustable():
    curves = SMALL.learning_curves(16, n_instances=1, random_state=0)
    early, late = curves.with_threshold(0.9).memorization_time, curves.memorization_time
    assert (early[np.isfinite(early)] < late[np.isfinite(early)]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dimension": 1}, "dimension must be at least 2"),
        ({"times": [0.0]}, "times must be positive"),
        ({"n_instances": 0}, "n_instances must be at least 1"),
        ({"matrices": "exact"}, "matrices must be one of"),
        ({"step": -1}, "step must be positive"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        SMALL.learning_curves(**({"dimension": 10, "random_state": 0} | arguments))
    with pytest.raises(ValueError, match="features_per_dim must exceed 1"):
        RandomFeatures(SMALL.mixture, 0.1, 0.5, 2).learning_curves(10)
