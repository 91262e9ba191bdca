"""The anomaly model: sampled and trained students against the saddle point."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.studies.locate import study_module
from equipoise.theory.anomaly import extrapolate, solve_saddle, train_sigmoid_perceptron

_study = study_module("anomaly-gibbs")
QUANTITIES, SETTINGS, SLOW, run_cell = _study.QUANTITIES, _study.SETTINGS, _study.SLOW, _study.run_cell

pytestmark = pytest.mark.agreement


def check_against_theory(setting, *, dims, datasets, sweeps, r_hat):
    """The difference from the saddle point is a 1/N correction: as N → ∞ it vanishes within three errors."""
    names = ("samples_per_dim", "temperature", "teacher_bias", "train_fraction", "learn_bias")
    control = dict(zip(names, setting, strict=True))
    cells = [run_cell(**control, dim=dim, datasets=datasets, sweeps=sweeps, seed=0) for dim in dims]
    for cell in cells:
        assert cell["overlap_r_hat"] < r_hat
        assert cell["bias_r_hat"] < r_hat
    for name in QUANTITIES:
        if name == "bias" and not control["learn_bias"]:
            continue
        differences = [cell[name] - cell[f"{name}_theory"] for cell in cells]
        found = extrapolate(dims, differences, [cell[f"{name}_error"] for cell in cells])
        assert abs(found.limit) <= 3 * found.standard_error, name


@pytest.mark.parametrize("setting", [SETTINGS[0], SETTINGS[-1]])
def test_sampled_students_agree_with_the_saddle_point(setting):
    check_against_theory(setting, dims=(16, 32), datasets=12, sweeps=60, r_hat=1.2)


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_sampled_students_agree_at_ten_settings(setting):
    check_against_theory(setting, dims=(20, 40), datasets=48, sweeps=120 * SLOW.get(setting, 1), r_hat=1.15)


def test_sgd_has_a_low_and_a_high_noise_regime():
    """Fig 15: with small batches the student loses the teacher."""
    scores = [
        float(
            train_sigmoid_perceptron(
                2.0, -0.6, 0.5, dim=400, learning_rate=0.2, batch_size=size, epochs=epochs, random_state=0
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
            2.0, -0.6, fraction, dim=300, learning_rate=0.1, batch_size=10, epochs=20, random_state=1
        ).bias
        for fraction in (0.2, 0.5, 0.8)
    ]
    theory = solve_saddle(2.0, 0.5, -0.6, [0.2, 0.5, 0.8]).bias
    assert (np.diff(biases) > 0).all()
    assert (np.diff(theory) > 0).all()
