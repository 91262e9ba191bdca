"""The free energy away from its saddle point, and where the student changes abruptly."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise._core.solution import ConvergenceError
from equipoise.theory.anomaly import free_energy_at, landscape, phase_transitions, solve_saddle

CONTROL = {"samples_per_dim": 1.7, "temperature": 0.5, "teacher_bias": -0.8, "train_fraction": 0.3}


def test_parts_add_up_to_the_saddle_point():
    weights = {"positive_weight": 2.0, "negative_weight": 0.8}
    s = solve_saddle(**CONTROL, **weights)
    f = free_energy_at(s.self_overlap, s.overlap, s.bias, **CONTROL, **weights)
    assert f.volume + f.positive + f.negative == pytest.approx(float(s.log_partition), abs=1e-12)
    error = 0.3 * f.positive_error + 0.7 * f.negative_error
    assert error == pytest.approx(float(s.train_error), abs=1e-12)
    cost = 1.7 / 0.5 * (0.3 * 2.0 * f.positive_error + 0.7 * 0.8 * f.negative_error)
    assert f.entropy == pytest.approx(float(s.log_partition) + float(cost), abs=1e-12)


def test_the_saddle_point_is_stationary_in_every_direction():
    s = solve_saddle(**CONTROL)
    order = np.array([s.self_overlap, s.overlap, s.bias])
    for step in 1e-4 * np.eye(3):
        up, down = (free_energy_at(*(order + sign * step), **CONTROL).log_partition for sign in (1, -1))
        assert abs(up - down) / 2e-4 < 1e-6


def test_the_entropy_is_that_of_thermodynamics():
    """S = -∂F/∂T at the saddle point, by differences over the temperature."""
    h = 1e-4
    control = {**CONTROL, "temperature": 0.5 + h * np.array([-1, 0, 1])}
    s = solve_saddle(**control)
    f = free_energy_at(s.self_overlap, s.overlap, s.bias, **control)
    slope = -(s.free_energy[2] - s.free_energy[0]) / (2 * h)
    assert f.entropy[1] == pytest.approx(slope, abs=1e-6)


def test_energy_against_entropy():
    """Section 3.2: a strong bias costs the rare class and frees the volume."""
    s = solve_saddle(**CONTROL, student_bias=[-3.0, -0.8])
    f = free_energy_at(s.self_overlap, s.overlap, s.bias, **CONTROL)
    assert f.volume[0] > f.volume[1]
    assert f.positive[0] < f.positive[1]
    assert f.positive_error[0] > 0.9


def test_a_jump_where_the_paper_sees_none():
    found = phase_transitions(8.0, 0.5, -1.5)
    assert found.lower_transition == pytest.approx(0.0564, abs=2e-4)
    assert found.lower_jump == pytest.approx(0.50, abs=0.01)
    assert found.lower_spinodal < found.lower_transition
    inside, outside = solve_saddle(8.0, 0.5, -1.5, found.lower_transition + np.array([1e-4, -1e-4])).phase
    assert (inside, outside) == ("learned", "metastable")
    end = float(found.lower_spinodal)
    assert solve_saddle(8.0, 0.5, -1.5, [end + 1e-5, end - 1e-5]).phase.tolist() == ["metastable", "dummy"]


@pytest.mark.parametrize("samples_per_dim", [1e3, 1e6])
def test_without_noise_there_is_no_jump_to_search_for(samples_per_dim, monkeypatch):
    """A thousand samples per dimension took 43 s, and an unreachable student passed for a smooth change."""
    solved = []

    def counted(*control, **options):
        solved.append(solve_saddle(*control, **options))
        return solved[-1]

    monkeypatch.setattr(landscape, "solve_saddle", counted)
    if samples_per_dim > 1e5:
        with pytest.raises(ConvergenceError, match=r"did not converge, the first at samples_per_dim 1e\+06"):
            phase_transitions(samples_per_dim, 0.0, -1.5)
    else:
        assert np.isnan(phase_transitions(samples_per_dim, 0.0, -1.5).lower_transition)
        assert len(solved) < 10  # four scans, and few zooms
        assert np.mean([point.steps.mean() for point in solved]) < 40
    assert len(solved) > 0


def test_a_known_bias_jumps_too_and_low_noise_does_not():
    known = phase_transitions(2.0, 0.5, -4.0, learn_bias=False)
    assert known.lower_transition == pytest.approx(0.387, abs=1e-3)
    assert known.lower_jump > 0.85
    assert np.isnan(known.lower_spinodal)
    cold = phase_transitions(2.0, 0.05, -0.5)
    assert np.isnan(cold.lower_transition)
    assert np.isnan(cold.upper_spinodal)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"self_overlap": 1.0}, r"self_overlap must lie in \(0, 1\), got 1"),
        ({"overlap": 0.9}, "overlap must be below √self_overlap, got 0.9"),
        ({"temperature": 0.0}, "temperature must be positive, got 0"),
        ({"positive_weight": 0.0}, "positive_weight must be positive, got 0"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        free_energy_at(**({"self_overlap": 0.5, "overlap": 0.4, "bias": -1.0} | CONTROL | change))
