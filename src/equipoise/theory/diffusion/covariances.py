"""Classes whose coordinates vary unequally: the spectrum for centered classes with diagonal covariances.

The projections W have no preferred directions, so what counts of the covariances is their joint spectrum:
covariances that commute may be taken as diagonal, and a part of low rank moves a few eigenvalues only, not the
bulks. Given W, a sample's features have the covariance C_c = γ_c² W D_c Wᵀ/N + h_c², where D_c holds the
coordinates' variances over their mean, and the coefficients are those of the mean variance, since a neuron sees
all coordinates. Two deterministic equivalents in a row, over samples and then over the columns of W, give

    q_c = 1 + χ_p/χ_m (γ_c² ⟨d_c w⟩ + h_c² g),
    w_i = 1/(1/g + χ_p e_i),   e_i = Δe^{2t} Σ_c b_c γ_c²/σ_c² + Σ_c b_c γ_c² d_ci/q_c,
    (1 − 1/χ_p) + ⟨w⟩/(χ_p g) + g(z − ς − Σ_c b_c h_c²/q_c) = 0,

with ⟨·⟩ the mean over coordinates. For d = 1 these are Eqs 114. Newton solves for g and the means ⟨d_c w⟩.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray, check_array, check_distribution, check_positive
from equipoise._core.solution import Status
from equipoise.theory.diffusion.coefficients import Activation
from equipoise.theory.diffusion.edges import Edges
from equipoise.theory.diffusion.gap import gap_edges
from equipoise.theory.diffusion.mixture import ClassMixture
from equipoise.theory.diffusion.spectrum import (
    TOLERANCE,
    CenteredModel,
    ComplexArray,
    Spectrum,
    assemble,
    descend,
)

_NEAR, _LOOSE, _STEPS = 1e-9, 1e-6, 60  # of the continuation in Im z


class DiagonalFeatures:
    """The random-features score model for centered classes with a variance for every coordinate.

    Parameters
    ----------
    weights : array of shape (C,)
        b_c, the shares of the classes.
    variances : array of shape (C, n_coordinates)
        The variance of each coordinate in each class, or the eigenvalues of covariances that commute, in one order.
    diffusion_time, features_per_dim, samples_per_dim : float
        t, χ_p = P/N > 1 and χ_m = M/N.
    activation : callable
        φ, applied element-wise.

    References
    ----------
    Nicoletti et al., Eqs 27–37 (general covariances) and 113–117; the equations here are this library's.

    Examples
    --------
    >>> model = DiagonalFeatures([0.5, 0.5], [[0.8, 0.2], [0.25, 0.25]], 0.001, 60, 30)
    >>> [round(edge, 2) for edge in model.edges().generalization]
    [5.69, 24.74]
    """

    def __init__(
        self,
        weights: npt.ArrayLike,
        variances: npt.ArrayLike,
        diffusion_time: float,
        features_per_dim: float,
        samples_per_dim: float,
        activation: Activation = np.tanh,
    ) -> None:
        b, v = check_distribution("weights", weights), check_positive("variances", variances)
        if v.ndim != 2 or len(v) != len(b):
            raise ValueError(f"variances must have shape ({len(b)}, n_coordinates), got {v.shape}")
        for name, value in (
            ("diffusion_time", diffusion_time),
            ("features_per_dim", features_per_dim),
            ("samples_per_dim", samples_per_dim),
        ):
            check_positive(name, value)
        if features_per_dim <= 1:
            raise ValueError(f"features_per_dim must exceed 1 (P > N), got {features_per_dim:g}")
        mean = v.mean(axis=1)
        self.scalars = CenteredModel.build(
            ClassMixture(b, mean), diffusion_time, features_per_dim, samples_per_dim, activation
        )
        profile, counts = np.unique(v / mean[:, None], axis=1, return_counts=True)
        self.profile, self.share = profile, counts / counts.sum()  # d_ci of unlike coordinates, and how many

    def spectrum(self, grid: npt.ArrayLike) -> Spectrum:
        """Density of the eigenvalues of the feature covariance on a grid of λ.

        Parameters
        ----------
        grid : array
            Eigenvalues λ at which to solve.

        Returns
        -------
        Spectrum
            ``feature_resolvent`` is the mean of w_i over coordinates.
        """
        lam = np.atleast_1d(check_array("grid", grid)).ravel()
        g, w, status = self._solve(lam - self.scalars.floor)
        peak = self.scalars.peak_mass
        return assemble(lam, g, w, status, self.scalars.floor if peak > 0 else None, peak)

    def resolvent(self, z: npt.ArrayLike) -> ComplexArray:
        """The mean g(z) of 1/(λ − z) over all eigenvalues λ, for Im z > 0.

        Parameters
        ----------
        z : array of complex numbers
            Above the real axis.

        Returns
        -------
        array of complex
            The resolvent; NaN where the equations were not solved.
        """
        at = np.atleast_1d(np.asarray(z, dtype=np.complex128)).ravel()
        g, _, status = self._solve(at - self.scalars.floor)
        return np.where(status == Status.CONVERGED, g, complex(np.nan, np.nan))

    def edges(self) -> Edges:
        """The gap between memorization and generalization, and the upper end of the spectrum.

        Returns
        -------
        Edges
            Two bulks, below and above the gap; the lower edge of the first is not looked for (nan).
        """
        model = self.scalars
        load = (1 + model.features_per_dim**0.5) ** 2 + (1 + model.ratio**0.5) ** 2
        scale = float(model.weights @ (model.slope2 + model.noise)) + model.diffusion_slope
        return gap_edges(
            self._imaginary, 4 * scale * float(self.profile.max()) * load, model.features_per_dim
        )

    def _imaginary(self, lam: FloatArray) -> FloatArray:
        """Im g relative to |g|, and the density: not zero where the solver has failed, which is in a bulk."""
        g, _, status = self._solve(lam - self.scalars.floor)
        return np.where(status == Status.CONVERGED, np.where(g.imag > 1e-6 * np.abs(g), g.imag, 0.0), np.nan)

    def _solve(
        self, x: FloatArray | ComplexArray
    ) -> tuple[ComplexArray, ComplexArray, npt.NDArray[np.object_]]:
        """g and ⟨w⟩ at x = λ − ς, followed from far above the real axis."""
        unknown, error = descend(self._step, x, 1 + len(self.profile), _NEAR, _LOOSE, _STEPS)
        with np.errstate(all="ignore"):
            mean = self._residual(np.asarray(x, dtype=np.complex128), unknown)[2]
        status = np.full(x.shape, Status.CONVERGED, dtype=object)
        status[~(error < TOLERANCE)] = Status.MAX_STEPS
        status[~np.isfinite(mean) | (unknown[:, 0].imag < -1e-7 * np.abs(unknown[:, 0]))] = Status.DIVERGED
        return unknown[:, 0], mean, status

    def _step(self, z: ComplexArray, now: ComplexArray) -> tuple[ComplexArray, FloatArray]:
        value, slope, _ = self._residual(z, now)
        move: ComplexArray = np.linalg.solve(slope, value[..., None])[..., 0].astype(
            np.complex128, copy=False
        )
        return move, np.abs(move / now).max(axis=1)

    def _residual(self, x: ComplexArray, unknown: ComplexArray) -> tuple[ComplexArray, ComplexArray, Any]:
        """The equations for g and ⟨d_c w⟩, their Jacobian, and ⟨w⟩."""
        model, chi = self.scalars, self.scalars.features_per_dim
        b, s, h = model.weights, model.slope2, model.noise
        g, means = unknown[:, :1], unknown[:, 1:]
        q = 1 + model.ratio * (s * means + h * g)
        e = model.diffusion_slope + (b * s / q) @ self.profile
        w = g / (1 + chi * g * e)
        mean, own = w @ self.share, w @ (self.profile * self.share).T
        square = w**2
        flat, first = square @ self.share, square @ (self.profile * self.share).T
        second = np.einsum("xi,ai,ci->xac", square, self.profile * self.share, self.profile)
        by_q = chi * b * s / q**2  # of e_i through q_c, times −χ_p: what moves w_i² times d_ci
        by_mean, by_g = model.ratio * s, model.ratio * h
        g0 = g[:, 0]
        inverse = x - (b * h / q).sum(axis=1)
        value = np.concatenate(
            [((1 - 1 / chi) + mean / (chi * g0) + g0 * inverse)[:, None], own - means], axis=1
        )
        slope = np.empty((len(x), unknown.shape[1], unknown.shape[1]), dtype=np.complex128)
        pulled = first * by_q / (chi * g) + g * b * h / q**2  # ∂F₀/∂q_c
        slope[:, 0, 1:] = pulled * by_mean
        slope[:, 0, 0] = flat / (chi * g0**3) - mean / (chi * g0**2) + inverse + pulled @ by_g
        slope[:, 1:, 1:] = second * (by_q * by_mean)[:, None, :] - np.eye(len(b))
        slope[:, 1:, 0] = first / g**2 + (second * by_q[:, None, :]) @ by_g
        return value, slope, mean
