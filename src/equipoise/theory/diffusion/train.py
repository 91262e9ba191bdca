"""The train error in the limit of large dimension (Nicoletti et al., Eqs 134 and 137), without any instance.

Both equations are ∫dλ ρ_Ω(λ)(1 − e^{-4λτ})/λ up to a factor. As a function of T = 4τ that integral has the
Laplace transform g_Ω(−s)/s, so it is the inverse transform of the resolvent itself, taken on a Talbot contour
where the resolvent is smooth. No density, no edge and no grid enters, and narrow bulks cost nothing.

Eq 137 prints γ̃_c where the derivation from Eqs 59 and 136 gives γ_c: V = √(Δ/N) e^t Σ_c b_c γ_c/σ_c W.
"""

from __future__ import annotations

import numpy as np

from equipoise._core.checks import FloatArray
from equipoise._core.solution import ConvergenceError, Status
from equipoise.theory.diffusion.centroids import ExtensiveModel, solve
from equipoise.theory.diffusion.instances import Model
from equipoise.theory.diffusion.spectrum import CenteredModel, ComplexArray, solve_resolvents

_TALBOT = 24


def talbot_nodes(times: FloatArray) -> tuple[ComplexArray, ComplexArray]:
    """Nodes s and weights, (n_times, 24), with f(T) = Re Σ w F(s) for f of Laplace transform F.

    The fixed Talbot method of Abate and Valkó (2004).

    >>> s, w = talbot_nodes(np.array([0.5, 2.0]))
    >>> np.sum(w / (s + 1), axis=1).real.round(6)  # e^{-T}
    array([0.606531, 0.135335])
    """
    k = np.arange(_TALBOT)
    theta = np.pi * k[1:] / _TALBOT
    cot = 1 / np.tan(theta)
    r = 2 * _TALBOT / 5
    delta = np.concatenate([[r + 0j], r * theta * (cot + 1j)])
    slope = np.concatenate([[0.5 + 0j], 1 + 1j * (theta + (theta * cot - 1) * cot)])
    weights = 2 / 5 * slope * np.exp(delta)
    t = np.asarray(times, dtype=np.float64)[:, None]
    return np.asarray(delta / t, dtype=np.complex128), weights / t


def asymptotic_train_error(
    model: Model, times: FloatArray, *, centered: CenteredModel | None = None
) -> FloatArray:
    """1 − Δχ_p e^{2t} Σ b_c b_c'/(σ_c σ_c') ∫ dλ/λ (1 − e^{-4λτ}) ρ_Ω^{cc'}(λ) at each τ of ``times``."""
    s, weights = talbot_nodes(4 * times)
    z = np.conj(-s).ravel()  # the upper half-plane
    if centered is not None:
        _, w, status, _ = solve_resolvents(centered, z - centered.floor)
        projected = centered.readout_slope**2 * w
    else:
        _, omega, _, status = solve(ExtensiveModel(model), z)
        strength = np.exp(model.diffusion_time) * model.mixture.weights / np.sqrt(model.mixture.variances)
        projected = np.einsum("c,zcd,d->z", strength, omega, strength)
    failed = (status != Status.CONVERGED).reshape(s.shape).any(axis=1)
    if failed.any():
        raise ConvergenceError(f"the resolvent did not converge for the times {times[failed]}")
    integral = (weights * np.conj(projected).reshape(s.shape) / s).sum(axis=1).real
    return 1 - model.noise_variance * model.features_per_dim * integral
