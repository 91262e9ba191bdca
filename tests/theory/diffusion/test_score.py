"""The random-features score as a model, the true score of a mixture, and samples drawn backwards."""

import numpy as np
import pytest

from equipoise.theory.diffusion import (
    ClassMixture,
    MixtureScore,
    RandomFeatures,
    RandomFeaturesScore,
    divergence_bound,
    sample_backwards,
)

MIX = ClassMixture([0.7, 0.3], [0.4, 0.2], np.diag([1.0, 1.5]))


def data(n_samples, dimension, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(2, n_samples, p=MIX.weights)
    noise = rng.standard_normal((n_samples, dimension)) * np.sqrt(MIX.variances[labels])[:, None]
    return MIX.centroids(dimension)[labels] + noise, labels


def test_the_trained_model_has_the_train_error_of_the_closed_form():
    """Eq 3 by Monte Carlo against the mean over instances of the learning curves."""
    n, t, tau, rng = 16, 0.2, 5.0, np.random.default_rng(0)
    X, _ = data(4 * n, n)
    score = RandomFeaturesScore.train(
        X, diffusion_time=t, training_time=tau, features_per_dim=20, random_state=0
    )
    delta, found = 1 - np.exp(-2 * t), []
    for _ in range(300):
        noise = rng.standard_normal(X.shape)
        noisy = np.exp(-t) * X + np.sqrt(delta) * noise
        found.append(((np.sqrt(delta) * score(noisy) + noise) ** 2).mean())
    runs = RandomFeatures(MIX, t, 20, 4).learning_curves(n, [tau], 8, 1, step=None)
    assert np.mean(found) == pytest.approx(runs.train[0], abs=4 * runs.train_spread[0] + 0.01)


def test_training_goes_towards_the_true_score_and_then_away_to_the_samples():
    n, t = 12, 0.1
    X, _ = data(6 * n, n)
    fresh, _ = data(2000, n, seed=9)
    noisy = np.exp(-t) * fresh + np.sqrt(1 - np.exp(-2 * t)) * np.random.default_rng(1).standard_normal(
        fresh.shape
    )
    true = MixtureScore.of(MIX, n)(noisy, t)
    options = {"diffusion_time": t, "features_per_dim": 30, "random_state": 0}
    errors = [
        ((RandomFeaturesScore.train(X, training_time=tau, **options)(noisy) - true) ** 2).mean()
        for tau in (1e-3, 0.5, 1e4)
    ]
    assert errors[1] < errors[0]
    assert errors[2] > 2 * errors[1]


def test_the_true_score_is_the_gradient_of_the_log_density():
    score, t = MixtureScore.of(MIX, 4), 0.3
    x = np.random.default_rng(0).normal(size=(5, 4))

    def log_density(rows):
        width = MIX.variances * np.exp(-2 * t) + 1 - np.exp(-2 * t)
        away = rows[:, None] - np.exp(-t) * score.centroids
        return np.log((MIX.weights * np.exp(-0.5 * (away**2).sum(2) / width) / width**2).sum(axis=1))

    h = 1e-5
    numeric = np.stack(
        [(log_density(x + h * e) - log_density(x - h * e)) / (2 * h) for e in np.eye(4)], axis=1
    )
    np.testing.assert_allclose(score(x, t), numeric, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(score.responsibilities(x, t).sum(axis=1), 1)


def test_classes_are_separated_in_high_dimension_and_early_only():
    assert MixtureScore.of(MIX, 200).separation(0.01).min() > 0.999
    assert MixtureScore.of(MIX, 200).separation(6.0).min() < 0.9
    assert MixtureScore.of(MIX, 2).separation(0.01).min() < 0.99


def test_backward_samples_of_the_true_score_are_the_mixture():
    true = MixtureScore.of(MIX, 6)
    drawn = sample_backwards({t: true.at(t) for t in np.geomspace(1e-3, 5, 150)}, 3000, 6, random_state=0)
    share = true.responsibilities(drawn, 1e-3)
    assert share[:, 1].mean() == pytest.approx(0.3, abs=0.04)
    own = drawn[share[:, 0] > 0.9]
    np.testing.assert_allclose(own.mean(axis=0), true.centroids[0], atol=0.08)
    assert own.var(axis=0).mean() == pytest.approx(0.4, rel=0.1)


def test_a_model_trained_too_long_draws_its_samples():
    n = 8
    X, _ = data(10, n)
    grid = np.geomspace(5e-3, 4, 30)

    def nearest(tau):
        scores = {
            t: RandomFeaturesScore.train(
                X, diffusion_time=t, training_time=tau, features_per_dim=40, random_state=1
            )
            for t in grid
        }
        drawn = sample_backwards(scores, 60, n, random_state=0)
        return np.median(np.linalg.norm(drawn[:, None] - X, axis=2).min(axis=1))

    assert nearest(1e6) < 0.5 * nearest(0.3)


def test_the_divergence_is_below_its_bound():
    """A score that is too weak by a factor: samples of a normal distribution stay normal, with another variance."""
    n, variance, factor = 5, 0.5, 0.9
    times = np.linspace(1e-3, 6, 4000)
    width = variance * np.exp(-2 * times) + 1 - np.exp(-2 * times)
    found = 1.0
    for h, w in zip(
        np.diff(times)[::-1], width[1:][::-1], strict=True
    ):  # backwards: x ← x + h(x + 2s) + √(2h) z
        found = (1 + h * (1 - 2 * factor / w)) ** 2 * found + 2 * h
    ratio = variance / found
    divergence = 0.5 * n * (ratio - 1 - np.log(ratio))
    errors = (1 - factor) ** 2 / width
    assert 0 < divergence < divergence_bound(times, errors, n)


def test_bad_input_is_named():
    X = np.random.default_rng(0).normal(size=(10, 4))
    with pytest.raises(ValueError, match="features_per_dim must exceed 1"):
        RandomFeaturesScore.train(X, diffusion_time=0.1, training_time=1, features_per_dim=0.5)
    with pytest.raises(ValueError, match="training_time must be positive"):
        RandomFeaturesScore.train(X, diffusion_time=0.1, training_time=0)
    with pytest.raises(ValueError, match="diffusion times must be positive"):
        sample_backwards({0.0: lambda x: x, 1.0: lambda x: x}, 2, 4)
