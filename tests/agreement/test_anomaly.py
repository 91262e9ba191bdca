"""The anomaly model: sampled and trained students against the saddle point."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.studies.locate import study_module
from equipoise.theory.anomaly import extrapolate, solve_saddle, train_sigmoid_perceptron

_study = study_module("anomaly-gibbs")
QUANTITIES, SETTINGS, SLOW, run_cell = _study.QUANTITIES, _study.SETTINGS, _study.SLOW, _study.run_cell

pytestmark = pytest.mark.agreement


def check_against_theory(setting, *, dims, datasets, sweeps, r_hat, balanced=False):
    """The difference from the saddle point is a 1/N correction: as N → ∞ it vanishes within three errors."""
    names = ("samples_per_dim", "temperature", "teacher_bias", "train_fraction", "learn_bias")
    control = dict(zip(names, setting, strict=True))
    cells = [
        run_cell(**control, dim=dim, datasets=datasets, sweeps=sweeps, seed=0, balanced=balanced)
        for dim in dims
    ]
    for cell in cells:
        assert cell["overlap_r_hat"] < r_hat
        assert cell["bias_r_hat"] < r_hat
    for name in QUANTITIES:
        if name == "bias" and not control["learn_bias"]:
            continue
        differences = [cell[name] - cell[f"{name}_theory"] for cell in cells]
        found = extrapolate(dims, differences, [cell[f"{name}_error"] for cell in cells])
        assert abs(found.limit) <= 3 * found.standard_error, name
    return cells


@pytest.mark.parametrize("setting", [SETTINGS[0], SETTINGS[-1]])
def test_sampled_students_agree_with_the_saddle_point(setting):
    check_against_theory(setting, dims=(16, 32), datasets=12, sweeps=60, r_hat=1.2)


@pytest.mark.slow
def test_weighted_students_agree_with_the_weighted_saddle_point():
    """And not with what the paper takes them for, fresh rows at equal shares."""
    cells = check_against_theory(
        _study.WEIGHTED, dims=(16, 32), datasets=12, sweeps=160, r_hat=1.2, balanced=True
    )
    large = cells[-1]
    fresh = float(solve_saddle(*_study.WEIGHTED[:3], 0.5).overlap)
    assert large["overlap"] == pytest.approx(large["overlap_theory"], abs=4 * large["overlap_error"])
    assert fresh - large["overlap"] > 3 * large["overlap_error"]


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_sampled_students_agree_at_ten_settings(setting):
    check_against_theory(setting, dims=(20, 40), datasets=48, sweeps=120 * SLOW.get(setting, 1), r_hat=1.15)


def test_sgd_has_a_low_and_a_high_noise_regime():
    """Fig 15: with small batches the student loses the teacher."""
    scores = [
        float(
            train_sigmoid_perceptron(
                2.0,
                -0.6,
                0.5,
                dim=400,
                learning_rate=0.2,
                batch_size=size,
                epochs=epochs,
                scale="unit",
                random_state=0,
            )
            .metrics()
            .balanced_accuracy
        )
        for size, epochs in ((80, 80), (1, 6))
    ]
    assert scores[0] > 0.75
    assert scores[1] < 0.6


def test_sgd_learns_the_bias_that_the_fraction_asks_for():
    """More positives in training, a higher bias, as in Fig 3(b)."""
    biases = [
        train_sigmoid_perceptron(
            2.0,
            -0.6,
            fraction,
            dim=300,
            learning_rate=0.1,
            batch_size=10,
            epochs=20,
            scale="unit",
            random_state=1,
        ).bias
        for fraction in (0.2, 0.5, 0.8)
    ]
    theory = solve_saddle(2.0, 0.5, -0.6, [0.2, 0.5, 0.8]).bias
    assert (np.diff(biases) > 0).all()
    assert (np.diff(theory) > 0).all()


def test_the_overlap_of_sgd_depends_on_the_dimension_in_one_scale_only():
    """G.1 finds its results stable in N: they are with Eq 1's scale, and not with ‖w‖ = 1."""

    def overlap(dim, scale, rate):
        runs = [
            train_sigmoid_perceptron(
                2.0,
                -0.6,
                0.5,
                dim=dim,
                learning_rate=rate,
                batch_size=5,
                epochs=30,
                scale=scale,
                random_state=seed,
            ).overlap
            for seed in range(3)
        ]
        return np.mean(runs)

    assert overlap(800, "equation-1", 20.0) == pytest.approx(overlap(200, "equation-1", 20.0), abs=0.05)
    assert overlap(800, "unit", 0.1) < overlap(200, "unit", 0.1) - 0.1
