"""The spectrum of the feature covariance for centered classes (Nicoletti et al., Eqs 113–114).

Two resolvents, g of the feature covariance and g_Ω of its projection on data space, solve two algebraic
equations at each complex z. Both are followed from Im z ≫ 1, where g ≈ −1/z picks the right branch, down to
the real axis, by Newton steps over the whole grid at once. Everything depends on z only through z − ς, so the
equations are solved in that variable: the delta peak at ς and the bulk next to it then keep all their digits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray
from equipoise._core.solution import ConvergenceWarning, Status
from equipoise.theory.diffusion.coefficients import Activation, coefficients, noise_variance
from equipoise.theory.diffusion.mixture import ClassMixture

ComplexArray = npt.NDArray[np.complex128]
NewtonStep = Callable[[ComplexArray, ComplexArray], tuple[ComplexArray, FloatArray]]

_FAR, _NEAR = 100.0, 1e-9  # of the continuation in Im z; the latter in units of the nearest point to the peak
_PER_DECADE = 3
_NEWTON_STEPS = 40
TOLERANCE = 1e-11
_LOOSE = 1e-7  # between the stations of the continuation a rough solution is enough
_NAN = complex(np.nan, np.nan)
_LINEAR = 1e-13  # sample noise below this share of the slope is rounding: the activation is linear
_BULK = 1e-7  # a resolvent whose imaginary part is smaller than this share of its modulus is real


@dataclass(frozen=True)
class CenteredModel:
    """The scalars of Eq 113, and the two equations of Eq 114 in the variable x = z − ς."""

    weights: FloatArray
    slope2: FloatArray  # γ_c²
    noise: FloatArray  # h_c²
    floor: float  # ς = Σ b_c ς_c
    diffusion_slope: float  # Δ e^{2t} Σ b_c γ_c²/σ_c²
    features_per_dim: float
    samples_per_dim: float
    delta: float

    @classmethod
    def build(
        cls,
        mixture: ClassMixture,
        diffusion_time: float,
        features_per_dim: float,
        samples_per_dim: float,
        activation: Activation,
    ) -> CenteredModel:
        parts = [coefficients(v, diffusion_time, 0.0, activation) for v in mixture.variances]
        b, slope = mixture.weights, np.array([float(p.slope) for p in parts])
        noise = np.array([float(p.sample_noise) for p in parts])
        delta, grow = noise_variance(diffusion_time), np.exp(diffusion_time)
        return cls(
            weights=b,
            slope2=slope**2,
            noise=np.where(noise > _LINEAR * slope**2, noise, 0.0),
            floor=float(b @ [float(p.floor) for p in parts]),
            diffusion_slope=float(delta * grow**2 * (b @ (slope**2 / mixture.variances))),
            features_per_dim=features_per_dim,
            samples_per_dim=samples_per_dim,
            delta=delta,
        )

    @property
    def ratio(self) -> float:
        """χ_pm = χ_p/χ_m."""
        return self.features_per_dim / self.samples_per_dim

    @property
    def peak_mass(self) -> float:
        """The share of eigenvalues exactly at ς: those orthogonal to all M sample noises and N columns of W.

        The rank of U − ς is M + N, hence 1 − (χ_m + 1)/χ_p; the paper's count, with 2/χ_p, is one N short.
        """
        noisy = float(self.weights[self.noise > 0].sum())  # a linear activation adds no sample noise
        return max(0.0, 1 - (self.samples_per_dim * noisy + 1) / self.features_per_dim)

    def sums(self, g: Any, w: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Σ b h²/q, Σ b γ²/q and the second sums Σ b {h⁴, h²γ², γ⁴}/q², with q = 1 + χ_pm(γ²w + h²g)."""
        noise_sum: Any = 0.0
        slope_sum: Any = 0.0
        hh: Any = 0.0
        hs: Any = 0.0
        ss: Any = 0.0
        for b, s, h in zip(self.weights, self.slope2, self.noise, strict=True):
            inverse = 1 / (1 + self.ratio * (s * w + h * g))
            part = b * inverse
            noise_sum, slope_sum = noise_sum + h * part, slope_sum + s * part
            part = part * inverse
            hh, hs, ss = hh + h * h * part, hs + h * s * part, ss + s * s * part
        return noise_sum, slope_sum, hh, hs, ss

    def position(self, g: Any, w: Any) -> Any:
        """x = λ − ς at which the resolvents are g and w (Eq 117, the first of Eqs 114 solved for z)."""
        noise_sum = self.sums(g, w)[0]
        p = self.features_per_dim
        return noise_sum - (1 - 1 / p) / g - w / (p * g**2)


def _newton_step(model: CenteredModel, x: ComplexArray, now: ComplexArray) -> tuple[ComplexArray, FloatArray]:
    """One Newton step for Eqs 114, multiplied by g and by χ_p·w so that both are of order one.

    F1 = (1 − 1/χ_p) + w/(χ_p g) + g(x − Σbh²/q),   F2 = −1 + w[χ_p(c₀ + Σbγ²/q) + 1/g].
    """
    p, ratio, (g, w) = model.features_per_dim, model.ratio, now.T
    noise_sum, slope_sum, hh, hs, ss = model.sums(g, w)
    f1 = (1 - 1 / p) + w / (p * g) + g * (x - noise_sum)
    bracket = p * (model.diffusion_slope + slope_sum) + 1 / g
    f2 = w * bracket - 1
    f1g = -w / (p * g**2) + (x - noise_sum) + g * ratio * hh
    f1w = 1 / (p * g) + g * ratio * hs
    f2g = w * (-p * ratio * hs - 1 / g**2)
    f2w = bracket - w * p * ratio * ss
    det = f1g * f2w - f1w * f2g
    dg = (f1 * f2w - f2 * f1w) / det
    dw = (f2 * f1g - f1 * f2g) / det
    return np.stack([dg, dw], axis=1), np.maximum(np.abs(dg / g), np.abs(dw / w))


def solve_resolvents(
    model: CenteredModel, x: npt.ArrayLike
) -> tuple[ComplexArray, ComplexArray, npt.NDArray[np.object_], FloatArray]:
    """g and g_Ω at x = z − ς, real or with Im z > 0, with a status and the last relative step of each."""
    x = np.asarray(x)
    near = max(_NEAR * min(1.0, float(np.abs(x).min(initial=1.0))), 1e-300)
    unknown, error = descend(partial(_newton_step, model), x, 2, near, _LOOSE, _NEWTON_STEPS)
    g, w = unknown.T
    status = np.full(x.shape, Status.CONVERGED, dtype=object)
    finite = np.isfinite(g) & np.isfinite(w)
    status[finite & ~(error < TOLERANCE)] = Status.MAX_STEPS
    wrong = finite & ((g.imag < -_BULK * np.abs(g)) | (w.imag < -_BULK * np.abs(w)))
    status[~finite | wrong] = Status.DIVERGED
    return g, w, status, error


def descend(
    step: NewtonStep, x: npt.NDArray[Any], n_unknowns: int, near: float, loose: float, most: int
) -> tuple[ComplexArray, FloatArray]:
    """Follow solutions from far above the real axis down to x; the unknowns, with the last relative step of each.

    ``step(z, now)`` gives the Newton steps of some points, and their relative sizes; ``near`` is the last station
    above x, and between stations steps of size ``loose`` are small enough.
    """
    unknown = np.repeat((-1 / (x + 1j * _FAR))[:, None], n_unknowns, axis=1)
    stations = np.geomspace(_FAR, near, 1 + int(_PER_DECADE * np.log10(_FAR / near)))
    error = np.full(x.shape, np.inf)
    with np.errstate(all="ignore"):
        for station in (*stations, 0.0):
            error = _relax(step, x + 1j * station, unknown, loose if station else TOLERANCE, most)
    return unknown, error


def _relax(
    step: NewtonStep, z: ComplexArray, unknown: ComplexArray, tolerance: float, most: int
) -> FloatArray:
    """Damped Newton in place on the points that still move; no step leaves the upper half plane."""
    error = np.full(z.shape, np.inf)
    active = np.arange(z.size)
    for _ in range(most):
        now = unknown[active]
        move, size = step(z[active], now)
        new = now - np.minimum(1.0, 0.7 / np.maximum(size, 1e-300))[:, None] * move
        below = (z[active].imag > 0)[:, None] & (new.imag <= 0)
        unknown[active] = np.where(below, new.real + 0.3j * now.imag, new)
        error[active] = size
        active = active[~(size < tolerance)]
        if active.size == 0:
            break
    return error


@dataclass(frozen=True)
class Spectrum:
    """A spectrum on a grid, each point with its status; what did not converge is nan, never interpolated.

    Attributes
    ----------
    grid : array of shape (n,)
        λ.
    density : array of shape (n,)
        ρ(λ), without the delta peak (Eq 63).
    feature_density : array
        ρ_Ω(λ), the density weighted by the eigenvectors' part in data space: (n,) with mass one for
        centered classes, (n, C, C) with the slopes γ_c γ_c' inside (Eq 135) for extensive centroids.
    resolvent : array of complex
        g(λ + i0).
    feature_resolvent : array of complex
        g_Ω(λ + i0).
    status : array of Status
        How the solver ended at each point.
    delta_peak : float or None
        The position of the delta peak, if there is one.
    delta_mass : float
        Its weight.
    """

    grid: FloatArray
    density: FloatArray
    feature_density: FloatArray
    resolvent: ComplexArray
    feature_resolvent: ComplexArray
    status: npt.NDArray[np.object_]
    delta_peak: float | None
    delta_mass: float

    @property
    def converged(self) -> npt.NDArray[np.bool_]:
        """Whether each point was solved."""
        return np.asarray(self.status == Status.CONVERGED)


def assemble(
    grid: FloatArray,
    g: ComplexArray,
    w: ComplexArray,
    status: npt.NDArray[np.object_],
    delta_peak: float | None,
    delta_mass: float,
) -> Spectrum:
    """Densities from resolvents (Eq 63); real resolvents give zero, failed points give nan and a warning."""
    failed = np.asarray(status != Status.CONVERGED)
    if failed.any():
        warnings.warn(
            f"no convergence at {failed.sum()} of {grid.size} grid points, between {grid[failed].min():.4g} "
            f"and {grid[failed].max():.4g}; they are flagged in status and hold nan",
            ConvergenceWarning,
            stacklevel=3,
        )
    real = g.imag <= _BULK * np.abs(g)
    g = np.where(failed, _NAN, np.where(real, g.real, g))
    shape = (-1,) + (1,) * (w.ndim - 1)
    w = np.where(failed.reshape(shape), _NAN, np.where(real.reshape(shape), w.real, w))
    return Spectrum(grid, g.imag / np.pi, w.imag / np.pi, g, w, status, delta_peak, delta_mass)
