"""The saddle-point equations (Eqs 71-75) as a residual with its exact Jacobian, and the free energy (Eq 54).

The unknowns are (log R̂, log q̂, b): any real triple is a legal state, since both conjugates are positive, and
q and R follow from Eqs 71-72 in closed form. With ρ± the training shares, the residuals are

    log R̂ - log[α/√(1-q)·Σ ρ± B±[g±]],  log q̂ - log[α/(1-q)·Σ ρ± M±[g±²]],  log(ρ₊M₊[g₊]) - log(ρ₋M₋[g₋]),

relative errors, so that they keep their meaning when R̂ and q̂ are as small as e^(-60) or as large as e^(20).
With a given bias (appendix E) the third is b minus that bias.

Class weights: an error on class ± costs w± in the energy, E = Σ w±·[error]. Each sample's Boltzmann factor then has
its class's own β± = w±β, and nothing else changes: g± = φ/(A± + H) with A± = 1/(e^(β±) - 1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray
from equipoise.theory.anomaly._integrals import (
    Moments,
    State,
    class_energy,
    class_moments,
    log_odds_of_error,
    state_of,
)

_BORDER_MARGIN = 1.02
_MIRROR = np.array([[1.0], [1.0], [-1.0]])  # the mirrored class runs against b


class Setting(NamedTuple):
    """Control parameters, each of shape (points,)."""

    samples_per_dim: FloatArray  # α
    temperature: FloatArray  # T
    teacher_bias: FloatArray  # b0
    train_fraction: FloatArray  # ρ
    positive_weight: FloatArray  # w₊
    negative_weight: FloatArray  # w₋

    def take(self, index: npt.NDArray[np.integer] | npt.NDArray[np.bool_] | slice) -> Setting:
        return Setting(*(values[index] for values in self))

    @property
    def betas(self) -> tuple[FloatArray, FloatArray]:
        """β± = w±/T, the cost of an error of each class over the temperature."""
        with np.errstate(divide="ignore", over="ignore"):
            return self.positive_weight / self.temperature, self.negative_weight / self.temperature

    @property
    def weighted_shares(self) -> tuple[FloatArray, FloatArray]:
        """ρ·w₊ and (1-ρ)·w₋: the energy, per sample, of ignoring the positives or the negatives."""
        return (
            self.train_fraction * self.positive_weight,
            (1 - self.train_fraction) * self.negative_weight,
        )

    def moments(self, state: State) -> tuple[Moments, Moments]:
        """The integrals of both classes; the negative one as the positive class of the mirrored problem."""
        noise, b0 = self.temperature, self.teacher_bias
        plus = class_moments(state, b0, log_odds_of_error(noise / self.positive_weight))
        mirrored = state._replace(bias=-state.bias)
        return plus, class_moments(mirrored, -b0, log_odds_of_error(noise / self.negative_weight))


def dummy_is_stable(setting: Setting) -> npt.NDArray[np.bool_]:
    """Whether the dummy classifier that ignores the cheaper class is a local optimum over the bias.

    As b → -∞ the bias equation compares ρ·φ/A₊ with (1-ρ)·φ/(A₋+1), and 1/A = e^β - 1, 1/(A+1) = 1 - e^(-β); as
    b → ∞ the classes change places. Without weights: min(ρ, 1-ρ) ≤ 1/(1 + e^β). Just inside of this border the
    learned bias is too large to be told from an infinite one, hence the margin.
    """
    rho, (beta_plus, beta_minus) = setting.train_fraction, setting.betas
    ignores_positives = np.less_equal(*setting.weighted_shares)
    cheap = np.where(ignores_positives, rho, 1 - rho)
    beta = np.where(ignores_positives, beta_plus, beta_minus)
    other = np.where(ignores_positives, beta_minus, beta_plus)
    with np.errstate(over="ignore"):
        pull = cheap * np.expm1(np.minimum(beta, 700.0))
    return np.asarray(pull <= _BORDER_MARGIN * (1 - cheap) * -np.expm1(-other))


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


def residual_and_jacobian(
    x: FloatArray, setting: Setting, given_bias: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Residuals (3, points) and Jacobian (3, 3, points) at ``x`` of shape (3, points)."""
    alpha, rho = setting.samples_per_dim, setting.train_fraction
    state = state_of(*x)
    plus, minus = setting.moments(state)
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
    if given_bias is None:
        residual[2] = np.log(rho * plus.mean) - np.log((1 - rho) * minus.mean)
        jacobian[2] = _chain(state, *(plus.d_mean / plus.mean - minus.d_mean * _MIRROR / minus.mean))
    else:
        residual[2] = x[2] - given_bias
        jacobian[2, 2] = 1.0
    return residual, jacobian


def replica_stability(state: State, setting: Setting) -> FloatArray:
    """1 - α·Σ ρ± M±[g±'²]: the replicon eigenvalue over its entropic part (de Almeida and Thouless 1978).

    Differences between replicas that average to zero see the entropy's curvature 1/(1-q)² and the energy's
    α·Σ ρ± M±[(∂²log z/∂h²)²], with ∂/∂h = (1-q)^(-½) ∂/∂u and ∂²log z/∂u² = -g'. Positive: stable.
    """
    plus, minus = setting.moments(state)
    rho = setting.train_fraction
    return 1.0 - setting.samples_per_dim * (rho * plus.bend + (1 - rho) * minus.bend)


class Terms(NamedTuple):
    """The parts of -βF = volume + α(ρ·positive + (1-ρ)·negative), and each class's train error."""

    volume: FloatArray
    positive: FloatArray
    negative: FloatArray
    positive_error: FloatArray
    negative_error: FloatArray


def free_energy_terms(state: State, setting: Setting) -> Terms:
    """Eqs 54, 62-63 and 80 at any state.

    The entropic term of Eq 70 at its stationary conjugates is ½log(1-q) + (q-R²)/(2(1-q)).
    """
    b0, (beta_plus, beta_minus) = setting.teacher_bias, setting.betas
    noise = setting.temperature
    odds = (log_odds_of_error(noise / w) for w in (setting.positive_weight, setting.negative_weight))
    plus, error_plus = class_energy(state, b0, next(odds), beta_plus)
    minus, error_minus = class_energy(state._replace(bias=-state.bias), -b0, next(odds), beta_minus)
    volume = 0.5 * np.log(state.gap) + 0.5 * state.q_hat * state.gap
    return Terms(volume, plus, minus, error_plus, error_minus)


def log_partition_and_error(state: State, setting: Setting) -> tuple[FloatArray, FloatArray]:
    """-βF (Eq 54, conjugates eliminated) and the train error (Eq 80) at a state."""
    alpha, rho = setting.samples_per_dim, setting.train_fraction
    terms = free_energy_terms(state, setting)
    energy = alpha * (rho * terms.positive + (1 - rho) * terms.negative)
    return terms.volume + energy, rho * terms.positive_error + (1 - rho) * terms.negative_error
