"""The saddle-point equations (Eqs 71-75) as a residual with its exact Jacobian, and the free energy (Eq 54).

The unknowns are (log R̂, log q̂, b): any real triple is a legal state, since both conjugates are positive, and
q and R follow from Eqs 71-72 in closed form. With ρ± the training shares, the residuals are

    log R̂ - log[α/√(1-q)·Σ ρ± B±[g]],  log q̂ - log[α/(1-q)·Σ ρ± M±[g²]],  log(ρ₊M₊[g]) - log(ρ₋M₋[g]),

relative errors, so that they keep their meaning when R̂ and q̂ are as small as e^(-60) or as large as e^(20).
With a known bias (appendix E) the third is b - b0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray
from equipoise.theory.anomaly.integrals import (
    State,
    class_energy,
    class_moments,
    log_odds_of_error,
    state_of,
)

_MIRROR = np.array([[1.0], [1.0], [-1.0]])  # the mirrored class runs against b


class Problem(NamedTuple):
    """Control parameters, each of shape (points,)."""

    samples_per_dim: FloatArray  # α
    temperature: FloatArray  # T
    teacher_bias: FloatArray  # b0
    train_fraction: FloatArray  # ρ

    def take(self, index: npt.NDArray[np.integer] | npt.NDArray[np.bool_] | slice) -> Problem:
        return Problem(*(values[index] for values in self))

    @property
    def beta(self) -> FloatArray:
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(1.0 / self.temperature)


def dummy_share(problem: Problem) -> FloatArray:
    """1/(1+e^β): outside [this, 1 - this] the dummy classifier is a local optimum over the bias.

    As b → ∓∞ the bias equation compares ρ₊φ/A with ρ₋φ/(A+1) (or the reverse), and (A+1)/A = e^β.
    """
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / (1.0 + np.exp(np.minimum(problem.beta, 700.0))))


def _chain(state: State, by_q: FloatArray, by_r: FloatArray, by_b: FloatArray) -> list[FloatArray]:
    """A gradient in (q, R, b) as one in (log R̂, log q̂, b)."""
    total = state.q_hat + state.r_hat**2
    d_gap = -(state.gap**2) / (1.0 + 2.0 * total * state.gap)
    gap_r, gap_q = 2.0 * state.r_hat**2 * d_gap, state.q_hat * d_gap
    return [
        by_r * (state.overlap + state.r_hat * gap_r) - by_q * gap_r,
        by_r * state.r_hat * gap_q - by_q * gap_q,
        by_b,
    ]


def residual_and_jacobian(x: FloatArray, problem: Problem, learn_bias: bool) -> tuple[FloatArray, FloatArray]:
    """Residuals (3, points) and Jacobian (3, 3, points) at ``x`` of shape (3, points)."""
    alpha, temperature, b0, rho = problem
    log_a = log_odds_of_error(temperature)
    state = state_of(*x)
    plus = class_moments(state, b0, log_a)
    minus = class_moments(state._replace(bias=-state.bias), -b0, log_a)
    edge = rho * plus.edge + (1 - rho) * minus.edge
    square = rho * plus.square + (1 - rho) * minus.square
    d_edge = (rho * plus.d_edge + (1 - rho) * minus.d_edge * _MIRROR) / edge
    d_square = (rho * plus.d_square + (1 - rho) * minus.d_square * _MIRROR) / square
    d_edge[0] += 0.5 / state.gap
    d_square[0] += 1.0 / state.gap
    residual = np.empty_like(x)
    residual[0] = x[0] - np.log(alpha * edge / np.sqrt(state.gap))
    residual[1] = x[1] - np.log(alpha * square / state.gap)
    jacobian = -np.array([_chain(state, *d_edge), _chain(state, *d_square), np.zeros_like(x)])
    jacobian[0, 0] += 1.0
    jacobian[1, 1] += 1.0
    if learn_bias:
        residual[2] = np.log(rho * plus.mean) - np.log((1 - rho) * minus.mean)
        jacobian[2] = _chain(state, *(plus.d_mean / plus.mean - minus.d_mean * _MIRROR / minus.mean))
    else:
        residual[2] = x[2] - b0
        jacobian[2, 2] = 1.0
    return residual, jacobian


def log_partition_and_error(x: FloatArray, problem: Problem) -> tuple[FloatArray, FloatArray]:
    """-βF (Eq 54, conjugates eliminated) and the train error (Eq 80) at a state.

    The entropic term of Eq 70 at its stationary conjugates is ½log(1-q) + (q-R²)/(2(1-q)).
    """
    alpha, temperature, b0, rho = problem
    log_a, beta = log_odds_of_error(temperature), problem.beta
    state = state_of(*x)
    energy_plus, error_plus = class_energy(state, b0, log_a, beta)
    energy_minus, error_minus = class_energy(state._replace(bias=-state.bias), -b0, log_a, beta)
    volume = 0.5 * np.log(state.gap) + 0.5 * state.q_hat * state.gap
    energy = alpha * (rho * energy_plus + (1 - rho) * energy_minus)
    return volume + energy, rho * error_plus + (1 - rho) * error_minus
