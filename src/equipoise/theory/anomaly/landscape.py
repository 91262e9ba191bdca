"""The free energy away from its saddle point, and where its minima appear, cross and vanish.

Section 3.2 explains the bad models of Fig 1 by energy against entropy; these are the terms it speaks of.
Section 4 sees no phase transition; :func:`phase_transitions` finds them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray, check_array, check_fraction, check_in_range, check_positive
from equipoise._core.solution import ConvergenceWarning
from equipoise.theory.anomaly._equations import Setting, free_energy_terms
from equipoise.theory.anomaly._integrals import state_of
from equipoise.theory.anomaly.saddle import SaddlePoint, solve_saddle

_SMALLEST_JUMP = 0.01  # of the overlap; smaller ones count as continuous
_SCAN, _ZOOM, _ZOOMS = 25, 9, 6
_LOWEST = 1e-4  # the smallest and, mirrored, the largest share that is searched


@dataclass(frozen=True)
class FreeEnergy:
    """The parts of -βF per dimension at given order parameters (Eqs 54, 62-63 and 70).

    Attributes
    ----------
    volume : ndarray
        The entropic term G₀ at its stationary conjugates: the log-volume of students with this q and R.
    positive, negative : ndarray
        The energetic terms -αρG⁺ and -α(1-ρ)G⁻: what each class takes away. Never positive.
    log_partition : ndarray
        Their sum, -βF.
    entropy : ndarray
        -βF + βE: the log-volume of the students at the typical number of errors.
    positive_error, negative_error : ndarray
        The share of each class's training samples that is wrong.
    """

    volume: FloatArray
    positive: FloatArray
    negative: FloatArray
    log_partition: FloatArray
    entropy: FloatArray
    positive_error: FloatArray
    negative_error: FloatArray


def free_energy_at(
    self_overlap: npt.ArrayLike,
    overlap: npt.ArrayLike,
    bias: npt.ArrayLike,
    *,
    samples_per_dim: npt.ArrayLike,
    temperature: npt.ArrayLike,
    teacher_bias: npt.ArrayLike,
    train_fraction: npt.ArrayLike,
    positive_weight: npt.ArrayLike = 1.0,
    negative_weight: npt.ArrayLike = 1.0,
) -> FreeEnergy:
    """Entropy and energy, class by class, at any (q, R, b), not only at the saddle point.

    Parameters
    ----------
    self_overlap, overlap, bias : array-like
        q in (0, 1), R in (0, √q) and b.
    samples_per_dim, temperature, teacher_bias, train_fraction, positive_weight, negative_weight : array-like
        The control parameters as in :func:`solve_saddle`; the temperature is positive.

    Returns
    -------
    FreeEnergy
        The entropy, the energy of each class, and -βF.

    References
    ----------
    Pezzicoli et al., Eqs 54, 62-63, 70 and 80; section 3.2 and Figs 1, 2.

    Examples
    --------
    >>> s = solve_saddle(1.1, 0.5, -0.6, 0.5)
    >>> control = dict(samples_per_dim=1.1, temperature=0.5, teacher_bias=-0.6, train_fraction=0.5)
    >>> f = free_energy_at(s.self_overlap, s.overlap, s.bias, **control)
    >>> bool(np.isclose(f.log_partition, s.log_partition))
    True
    """
    q = check_fraction("self_overlap", self_overlap)
    r = check_fraction("overlap", overlap)
    if (np.square(r) >= q).any():
        raise ValueError(f"overlap must be below √self_overlap, got {float(np.max(r)):g}")
    b = check_array("bias", bias)
    control = (
        check_positive("samples_per_dim", samples_per_dim),
        check_positive("temperature", temperature),
        check_in_range("teacher_bias", teacher_bias, -30.0, 30.0),
        check_fraction("train_fraction", train_fraction),
        check_positive("positive_weight", positive_weight),
        check_positive("negative_weight", negative_weight),
    )
    q, r, b, *rest = np.broadcast_arrays(q, r, b, *control)
    setting = Setting(*(np.ravel(values) for values in rest))
    gap = 1 - q
    state = state_of(np.log(r / gap).ravel(), np.log((q - r**2) / gap**2).ravel(), b.ravel())
    terms = free_energy_terms(state, setting)
    alpha, rho, (beta_plus, beta_minus) = setting.samples_per_dim, setting.train_fraction, setting.betas
    plus, minus = alpha * rho, alpha * (1 - rho)
    log_partition = terms.volume + plus * terms.positive + minus * terms.negative
    cost = plus * beta_plus * terms.positive_error + minus * beta_minus * terms.negative_error
    parts = (
        terms.volume, plus * terms.positive, minus * terms.negative, log_partition, log_partition + cost,
        terms.positive_error, terms.negative_error,
    )  # fmt: skip
    return FreeEnergy(*(part.reshape(q.shape) for part in parts))


@dataclass(frozen=True)
class PhaseTransitions:
    """Training shares at which the student changes abruptly; nan where he changes smoothly.

    Attributes
    ----------
    lower_transition, upper_transition : ndarray
        Below and above ½, where the equilibrium jumps: the student that follows the teacher and the dummy (with a
        known bias: the student that ignores the teacher) have the same free energy.
    lower_jump, upper_jump : ndarray
        By how much the equilibrium's overlap jumps there.
    lower_spinodal, upper_spinodal : ndarray
        Where the student that follows the teacher ceases to exist even as a metastable one. With a known bias nan.
    """

    lower_transition: FloatArray
    upper_transition: FloatArray
    lower_jump: FloatArray
    upper_jump: FloatArray
    lower_spinodal: FloatArray
    upper_spinodal: FloatArray


def phase_transitions(
    samples_per_dim: npt.ArrayLike,
    temperature: npt.ArrayLike,
    teacher_bias: npt.ArrayLike,
    *,
    learn_bias: bool = True,
) -> PhaseTransitions:
    """The transition and spinodal shares of every broadcast setting, to about 1e-6.

    Parameters
    ----------
    samples_per_dim, temperature, teacher_bias : array-like
        α, T and b0 as in :func:`solve_saddle`.
    learn_bias : bool
        Whether b is learned, or known as in appendix E.

    Returns
    -------
    PhaseTransitions
        The shares, and how far the overlap jumps there.

    Raises
    ------
    ConvergenceError
        If a student cannot be computed, as at T = 0 with a million samples per dimension and b0 = -1.5.

    References
    ----------
    Pezzicoli et al., section 4, which reports "no abrupt changes" and "an absence of phase transitions".

    Examples
    --------
    >>> found = phase_transitions(8.0, 0.5, -1.5)
    >>> float(found.lower_transition.round(4)), float(found.lower_jump.round(2))
    (0.0564, 0.5)
    """
    alpha, noise, b0 = np.broadcast_arrays(
        check_positive("samples_per_dim", samples_per_dim),
        check_in_range("temperature", temperature, 0.0),
        check_array("teacher_bias", teacher_bias),
    )

    def solve(rho: FloatArray) -> SaddlePoint:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # raised instead: nan would read as "smooth"
            point = solve_saddle(
                alpha[..., None], noise[..., None], b0[..., None], rho, learn_bias=learn_bias
            )
        return point.raise_if_failed()

    def equilibrium(rho: FloatArray) -> FloatArray:
        point = solve(rho)
        return np.where(point.phase == "learned", point.overlap, 0.0)

    def exists(rho: FloatArray) -> FloatArray:
        return (solve(rho).phase != "dummy").astype(np.float64)

    sides = ((_LOWEST, 0.5), (0.5, 1 - _LOWEST))
    transitions = [_jump(equilibrium, *side, alpha.shape) for side in sides]
    never = np.full(alpha.shape, np.nan)
    ends = [_jump(exists, *side, alpha.shape)[0] if learn_bias else never for side in sides]
    (low, low_size), (high, high_size) = transitions
    return PhaseTransitions(low, high, low_size, high_size, *ends)


def _jump(
    function: Callable[[FloatArray], FloatArray], low: float, high: float, shape: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Where in (low, high) a function jumps most, and by how much; nan if it does not."""
    logit = np.linspace(np.log(low / (1 - low)), np.log(high / (1 - high)), _SCAN)
    nodes = np.broadcast_to(1.0 / (1.0 + np.exp(-logit)), (*shape, _SCAN))
    for zoom in range(_ZOOMS + 1):
        steps = np.abs(np.diff(function(nodes), axis=-1))
        cell, size = steps.argmax(axis=-1)[..., None], steps.max(axis=-1)
        left, right = (np.take_along_axis(nodes, cell + k, axis=-1)[..., 0] for k in (0, 1))
        abrupt = size > _SMALLEST_JUMP
        if zoom == _ZOOMS or not abrupt.any():
            break
        nodes = np.linspace(left, right, _ZOOM, axis=-1)
    return np.where(abrupt, 0.5 * (left + right), np.nan), np.where(abrupt, size, np.nan)
