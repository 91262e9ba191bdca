"""Gaussian-equivalent coefficients of a nonlinear feature (Nicoletti et al., Eqs 40–51, 105, 113).

A neuron sees the preactivation e^{-t}(μ + σz) + √Δ y: its centroid's projection μ, the class's spread and the
diffusion noise. Up to second order its activation is then a constant, a linear part and independent noise.

Two corrections to the printed formulas: Γ² = σ²e^{-2t} + Δ (Eq 41 drops the 2), and γ carries the factor
σe^{-t}/Γ (Eqs 49 and 105; Eq 113 drops it). Differences that vanish with the diffusion time (ς, h²) are
computed as variances, so that no digits cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicSpline

from equipoise._core.checks import FloatArray, check_positive

Activation = Callable[[FloatArray], FloatArray]

_STEP = 0.08  # the trapezoid rule on a Gaussian converges like exp(-2π·strip/step) for analytic activations
_REACH = 8.4
_INNER_STEP = 0.2  # over the diffusion noise alone, which is narrower
_TABLE_NODES = 121


def _normal_nodes(step: float = _STEP, reach: float = _REACH) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the trapezoid rule for a standard normal expectation.

    >>> z, w = _normal_nodes()
    >>> bool(abs(w @ z**4 - 3) < 1e-10)
    True
    """
    count = int(np.ceil(reach / step))
    z = step * np.arange(-count, count + 1, dtype=np.float64)
    w = np.exp(-0.5 * z**2)
    return z, w / w.sum()


def noise_variance(diffusion_time: float) -> float:
    """Δ_t = 1 − e^{-2t}, the variance of the forward noise (after Eq 2)."""
    return float(-np.expm1(-2 * diffusion_time))


def spread(variance: npt.ArrayLike, diffusion_time: float) -> FloatArray:
    """Γ_c(t) = √(σ_c² e^{-2t} + Δ_t), a class's standard deviation at diffusion time t (Eq 41, corrected)."""
    decay = np.exp(-2 * diffusion_time)
    return np.sqrt(np.asarray(variance, dtype=np.float64) * decay + noise_variance(diffusion_time))


@dataclass(frozen=True)
class Coefficients:
    """The coefficients of one class, as functions of the projected centroid μ.

    Attributes
    ----------
    alpha : array
        The mean activation α(μ) (Eq 47).
    second_moment : array
        E[φ²], β̃(μ) (Eq 40).
    smoothed_second_moment : array
        The second moment of the noise-averaged activation, β(μ) (Eq 48).
    slope_total : array
        γ̃(μ) = E[z φ(Γz + e^{-t}μ)] (Eq 45).
    slope : array
        γ(μ) = σe^{-t}/Γ · γ̃(μ) (Eq 49).
    floor : array
        ς(μ) = β̃ − β − Δ/(σ²e^{-2t})·γ², the noise that no sample explains (Eqs 51, 68).
    sample_noise : array
        h²(μ) = β − α² − γ², the nonlinear noise of each sample (Eq 69).
    """

    alpha: FloatArray
    second_moment: FloatArray
    smoothed_second_moment: FloatArray
    slope_total: FloatArray
    slope: FloatArray
    floor: FloatArray
    sample_noise: FloatArray


def coefficients(
    variance: float,
    diffusion_time: float,
    projection: npt.ArrayLike = 0.0,
    activation: Activation = np.tanh,
) -> Coefficients:
    """All coefficients of a class of a given ``variance`` at the projected centroids ``projection``.

    Parameters
    ----------
    variance : float
        σ_c².
    diffusion_time : float
        t > 0.
    projection : array-like
        Values of μ_c (Eq 10), of any shape.
    activation : callable
        φ, vectorized; smooth ones are integrated to machine precision, kinks to about 1e-4.

    Returns
    -------
    Coefficients
        The coefficients, in the shape of ``projection``.

    Examples
    --------
    The identity is all slope and no noise:

    >>> c = coefficients(0.5, 0.1, activation=lambda u: u)
    >>> bool(abs(c.floor) < 1e-12), bool(abs(c.sample_noise) < 1e-12), round(float(c.slope_total**2), 4)
    (True, True, 0.5906)
    """
    check_positive("variance", variance)
    check_positive("diffusion_time", diffusion_time)
    mu = np.asarray(projection, dtype=np.float64)
    return continued_coefficients(variance, diffusion_time, mu, activation)


def continued_coefficients(
    variance: float, diffusion_time: float, mu: npt.NDArray[Any], activation: Activation, coarser: int = 1
) -> Coefficients:
    """:func:`coefficients`, also for complex μ, where they are analytic if the activation is."""
    delta, decay = noise_variance(diffusion_time), np.exp(-diffusion_time)
    total = float(spread(variance, diffusion_time))
    signal = np.sqrt(variance) * decay
    outer_rule, inner_rule = _normal_nodes(coarser * _STEP), _normal_nodes(coarser * _INNER_STEP)
    rows = [
        _moments(activation, decay * m, signal, np.sqrt(delta), outer_rule, inner_rule) for m in np.ravel(mu)
    ]  # one row per μ: α, E[φ0²], E[a φ0], E[Var_b φ], Var_a φ0
    alpha, smoothed, slope, inner, outer = (
        np.reshape(column, mu.shape) for column in np.array(rows).reshape(-1, 5).T
    )
    slope_total = slope * total / signal
    return Coefficients(
        alpha=alpha,
        second_moment=smoothed + inner,
        smoothed_second_moment=smoothed,
        slope_total=slope_total,
        slope=slope,
        floor=inner - delta * (slope / signal) ** 2,
        sample_noise=outer - slope**2,
    )


_Rule = tuple[FloatArray, FloatArray]


def _moments(
    activation: Callable[..., Any], center: complex, signal: float, noise: float, outer: _Rule, inner: _Rule
) -> tuple[Any, ...]:
    (a, wa), (y, wy) = outer, inner
    values = activation(center + signal * a[:, None] + noise * y[None, :])
    smooth = values @ wy
    alpha = wa @ smooth
    within = ((values - smooth[:, None]) ** 2) @ wy
    return (alpha, wa @ smooth**2, (wa * a) @ smooth, wa @ within, wa @ (smooth - alpha) ** 2)


class CoefficientTable:
    """The coefficients of one class as splines in μ, for many neurons or quadrature nodes at once.

    >>> table = CoefficientTable(0.5, 0.01, centroid_variance=1.0)
    >>> direct = coefficients(0.5, 0.01, 0.7)
    >>> bool(abs(table(0.7).slope - direct.slope) < 1e-7)
    True
    """

    def __init__(
        self,
        variance: float,
        diffusion_time: float,
        centroid_variance: float,
        activation: Activation = np.tanh,
    ) -> None:
        self._constant = coefficients(variance, diffusion_time, 0.0, activation)
        self._spline: CubicSpline | None = None
        if centroid_variance > 0:
            reach = _REACH * np.sqrt(centroid_variance)
            mu = np.linspace(-reach, reach, _TABLE_NODES)
            table = coefficients(variance, diffusion_time, mu, activation)
            self._reach = reach
            self._spline = CubicSpline(mu, np.column_stack([getattr(table, f.name) for f in fields(table)]))

    def __call__(self, projection: npt.ArrayLike) -> Coefficients:
        mu = np.asarray(projection, dtype=np.float64)
        if self._spline is None:
            constant = {
                f.name: np.full(mu.shape, getattr(self._constant, f.name)) for f in fields(Coefficients)
            }
            return Coefficients(**constant)
        values = np.asarray(self._spline(np.clip(mu, -self._reach, self._reach)))
        named = {f.name: values[..., i] for i, f in enumerate(fields(Coefficients))}
        for name in ("floor", "sample_noise"):  # variances: interpolation must not push them below zero
            named[name] = np.maximum(named[name], 0.0)
        return Coefficients(**named)


@lru_cache(maxsize=128)
def coefficient_table(
    variance: float, diffusion_time: float, centroid_variance: float, activation: Activation
) -> CoefficientTable:
    """A table, kept: instances of one model, and models that differ in their weights, share it."""
    return CoefficientTable(variance, diffusion_time, centroid_variance, activation)
