"""The sampler's parts and the makers of data, each against what it must do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import truncnorm

from equipoise.theory.anomaly import sample_gibbs, sample_training_set, train_sigmoid_perceptron
from equipoise.theory.anomaly.gibbs import _Chains, _draw, split_r_hat
from equipoise.theory.anomaly.sgd import _epoch


def test_training_set_has_its_fraction_and_its_law():
    data = sample_training_set(3, 40_000, -1.0, 0.3, np.random.default_rng(0))
    assert (data.labels > 0).mean() == pytest.approx(0.3)
    assert (((data.inputs[:, 0] - 1.0) > 0) == (data.labels > 0)).all()
    positive, negative = data.inputs[data.labels > 0, 0], data.inputs[data.labels < 0, 0]
    assert positive.mean() == pytest.approx(truncnorm(1.0, np.inf).mean(), abs=0.02)
    assert negative.mean() == pytest.approx(truncnorm(-np.inf, 1.0).mean(), abs=0.02)
    assert data.inputs[:, 1].std() == pytest.approx(1.0, abs=0.02)


def test_training_set_of_extremely_rare_positives():
    data = sample_training_set(2, 1000, -6.0, 0.5, np.random.default_rng(0))
    assert np.isfinite(data.inputs).all()
    assert (data.inputs[data.labels > 0, 0] > 6.0).all()


def test_draw_follows_its_density():
    """Levels 2, 0, 1 on [0, 1): probabilities ∝ length·e^(-E/T)."""
    generator = np.random.default_rng(0)
    count = 60_000
    positions = np.broadcast_to([0.7, 0.4], (count, 2))  # unsorted on purpose
    changes = np.broadcast_to([1.0, -2.0], (count, 2))
    points = _draw(positions, changes, np.full(count, 2.0), (0.0, 1.0), 0.8, generator)
    expected = np.array([0.4, 0.3, 0.3]) * np.exp(-np.array([2, 0, 1]) / 0.8)
    counts = np.histogram(points, [0.0, 0.4, 0.7, 1.0])[0] / count
    assert counts == pytest.approx(expected / expected.sum(), abs=0.01)
    frozen = _draw(positions, changes, np.full(count, 2.0), (0.0, 1.0), 0.0, generator)
    assert ((frozen >= 0.4) & (frozen <= 0.7)).all()


def test_moves_keep_the_sphere_and_the_fields():
    rng = np.random.default_rng(0)
    data = sample_training_set(8, 30, -0.5, 0.5, rng, np.float32)
    chains = _Chains(data.inputs[None], data.labels, np.ones(30), 0.5, -0.5, 3.0, rng)
    for _ in range(50):
        chains.move_weight()
        chains.move_bias()
    np.testing.assert_allclose(np.linalg.norm(chains.weight, axis=-1), 1.0, atol=1e-5)
    np.testing.assert_allclose(chains.field, chains.weight @ chains.inputs, atol=1e-3)
    assert (np.abs(chains.bias) <= 3.0).all()


def test_without_data_pressure_the_sampler_is_uniform():
    """At a very high temperature the overlap of a student on the circle (N = 2) is cos of a uniform angle."""
    run = sample_gibbs(2.0, 1e6, 0.0, 0.5, dim=2, datasets=200, sweeps=40, random_state=0)
    assert abs(run.overlap) < 4 * run.standard_error["overlap"]
    assert abs(run.self_overlap) < 4 * run.standard_error["self_overlap"]
    assert abs(run.train_error - 0.5) < 4 * run.standard_error["train_error"] + 0.02


def test_weights_count_in_the_energy():
    """At a very high weight on the positives and a low temperature none of them is given up."""
    options = {"dim": 6, "datasets": 6, "sweeps": 12, "random_state": 0}
    heavy = sample_gibbs(6.0, 1.0, -0.5, 0.5, positive_weight=50.0, negative_weight=0.1, **options)
    light = sample_gibbs(6.0, 1.0, -0.5, 0.5, positive_weight=0.1, negative_weight=50.0, **options)
    assert heavy.bias > 0.5 > light.bias
    same = [
        sample_gibbs(2.0, 0.5 * w, -0.5, 0.5, positive_weight=w, negative_weight=w, **options) for w in (1, 2)
    ]
    assert same[0].overlap == pytest.approx(
        same[1].overlap, abs=1e-12
    )  # twice the cost at twice the temperature


def test_the_noise_of_sgd_grows_with_the_dimension_only_in_the_unit_scale():
    """One step from the same start turns w by the same angle times N more where ‖w‖ = 1."""
    data = sample_training_set(50, 40, -0.5, 0.5, np.random.default_rng(0), np.float32)
    start = np.full(50, 50**-0.5, dtype=np.float32)
    turned = []
    for slower in (1, 50):
        weight, bias, _ = _epoch(data, start, 0.0, 1e-3, slower, 40, np.random.default_rng(1))
        turned.append((float(np.linalg.norm(weight - start)), bias))
    assert turned[0][0] / turned[1][0] == pytest.approx(50, rel=0.01)
    assert turned[0][1] == turned[1][1]


def test_split_r_hat_sees_chains_that_disagree():
    rng = np.random.default_rng(0)
    same = rng.standard_normal((500, 2))
    assert split_r_hat(same) < 1.02
    assert split_r_hat(same + np.array([0.0, 3.0])) > 2


def test_same_seed_same_run():
    a, b = (sample_gibbs(1.0, 0.5, -0.5, 0.5, dim=6, datasets=3, sweeps=8, random_state=5) for _ in range(2))
    assert (a.overlap, a.bias, a.r_hat) == (b.overlap, b.bias, b.r_hat)
    c, d = (train_sigmoid_perceptron(2.0, -0.5, 0.5, dim=20, epochs=4, random_state=5) for _ in range(2))
    assert (c.overlap, c.bias) == (d.overlap, d.bias)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": -1.0}, "temperature must lie in"),
        ({"train_fraction": 1.0}, r"train_fraction must lie in \(0, 1\), got 1"),
        ({"dim": 1}, "dim must be at least 2, got 1"),
        ({"bias_limit": 0.0}, "bias_limit must be positive, got 0"),
        ({"positive_weight": -1.0}, "positive_weight must be positive, got -1"),
    ],
)
def test_bad_input_of_the_sampler(change, message):
    good = {"samples_per_dim": 1.0, "temperature": 0.5, "teacher_bias": -1.0, "train_fraction": 0.5}
    with pytest.raises(ValueError, match=message):
        sample_gibbs(**(good | change))


def test_bad_input_of_sgd():
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        train_sigmoid_perceptron(1.0, -1.0, 0.5, batch_size=0)
    with pytest.raises(ValueError, match="train_fraction must lie in"):
        train_sigmoid_perceptron(1.0, -1.0, 0.0)
    with pytest.raises(ValueError, match="scale must be one of 'equation-1', 'unit', got 'x'"):
        train_sigmoid_perceptron(1.0, -1.0, 0.5, scale="x")
