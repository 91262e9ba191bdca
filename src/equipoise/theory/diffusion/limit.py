"""Errors in the limit of large dimension: the train error (Eqs 134 and 137), and the test error of each
class, which the paper leaves to instances.

The train error is ∫dλ ρ_Ω(λ)(1 − e^{-4λτ})/λ up to a factor. As a function of T = 4τ that integral has the
Laplace transform g_Ω(−s)/s, so it is the inverse transform of the resolvent itself, taken on a Talbot
contour where the resolvent is smooth. No density, no edge and no grid enters, and narrow bulks cost
nothing. Eq 137 prints γ̃_c where the derivation from Eqs 59 and 136 gives γ_c: V = √(Δ/N) e^t Σ_c b_c
γ_c/σ_c W.

With a = Vᵀ f(U) the test error of class c is 1 + 1/N [Tr(a Ũ_c aᵀ) − 2 Tr(Ṽ_cᵀ aᵀ)] (Eq 133). The second
term needs the resolvent of U once and follows from g^Ω; the first needs it twice, as Tr Vᵀ G(z₁) Ũ_c G(z₂)
V with G(z) = (U − z)⁻¹.

Two resolvents follow from the equations for one. In the block matrix U⊗1₂ + Ũ_c⊗E₁₂ with the spectral
parameter diag(z₁, z₂), the inverse has the corner −G(z₁) Ũ_c G(z₂). The step from Eqs 92–102 to the
deterministic equivalent holds for matrices too, as long as their order is kept. So every quantity of Eq 107
becomes an upper triangular 2×2 matrix, whose diagonal holds the known solutions at z₁ and z₂, and whose
corner, marked by a prime, solves linear equations:

    Q' = −Q₁ [d_c + Σ b h² s' + γᵀY'γ] Q₂,       T' = E[γγᵀQ'],    g_h' = E[h²Q'],
    s' = −χ_pm s₁s₂ (diag Ω' + g_h'),            A' = diag(b s') + (Γ_c e^t/σ_c)² e_c e_cᵀ,
    Y' = L₁A'L₂ᵀ − χ_p Y₁T'Y₂,                   Ω' = L₁ᵀT'L₂ − χ_p Ω₁A'Ω₂,       L = (1 + χ_p A T)⁻¹,

with d_c = β̃_c − α_c² − γ̃_c², the part of Ũ_c that is diagonal. Its part α_cα_cᵀ has rank one and drops
out as N → ∞: the outlier of U in its direction, of order P, suppresses it. Then 1/N Tr Vᵀ G₁ Ũ_c G₂ V =
−χ_p Σ_ab v_a v_b Ω'_ab with v_a = √Δ e^t b_a/σ_a. Both f are inverse Laplace transforms of resolvents, each
on a Talbot contour.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from equipoise._core.checks import FloatArray
from equipoise._core.solution import ConvergenceError
from equipoise.theory.diffusion.centroids import ExtensiveModel, relax
from equipoise.theory.diffusion.instances import Model
from equipoise.theory.diffusion.spectrum import ComplexArray

_NODES = 16  # of the Talbot contour, for nine digits
_TOLERANCE = 1e-9
_EARLY = 1e-3  # training time at which the solution for |z| → ∞ is a good start
_COARSE = 0.7  # the rule over μ: away from the spectrum the average over neurons is smooth
_STRIDE = 2.0  # largest ratio of two times between which the solution is followed


def _talbot_nodes(times: FloatArray, count: int = _NODES) -> tuple[ComplexArray, ComplexArray]:
    """Nodes s and weights, (n_times, count), with f(T) = Re Σ w F(s) for f of Laplace transform F.

    The fixed Talbot method of Abate and Valkó (2004).

    >>> s, w = _talbot_nodes(np.array([0.5, 2.0]))
    >>> np.sum(w / (s + 1), axis=1).real.round(6)  # e^{-T}
    array([0.606531, 0.135335])
    """
    theta = np.pi * np.arange(1, count) / count
    cot = 1 / np.tan(theta)
    r = 2 * count / 5
    delta = np.concatenate([[r + 0j], r * theta * (cot + 1j)])
    slope = np.concatenate([[0.5 + 0j], 1 + 1j * (theta + (theta * cot - 1) * cot)])
    weights = 2 / 5 * slope * np.exp(delta)
    t = np.asarray(times, dtype=np.float64)[:, None]
    return np.asarray(delta / t, dtype=np.complex128), weights / t


def _contour(tau: float) -> tuple[ComplexArray, ComplexArray]:
    """Spectral parameters z in the upper half-plane and weights with f(U) = Re Σ w G(z) at training time τ."""
    s, weights = (part[0] for part in _talbot_nodes(np.array([2 * tau])))
    return np.conj(-s), np.conj(weights / s)


@dataclass(frozen=True)
class _Point:
    """The solution of Eq 107 at the nodes of one contour, (n, …)."""

    resolvent: ComplexArray  # Q at the nodes of the rule over μ, (n, nodes)
    s: ComplexArray  # (n, C)
    left: ComplexArray  # L, (n, C, C)
    y: ComplexArray
    omega: ComplexArray

    def pairs(self, other: _Point) -> tuple[_Point, _Point]:
        """All pairs of a node of this one with a node of another."""
        n, m = len(self.s), len(other.s)
        first = _Point(*(np.repeat(part, m, axis=0) for part in vars(self).values()))
        return first, _Point(*(np.tile(part, (n,) + (1,) * (part.ndim - 1)) for part in vars(other).values()))

    @property
    def conjugate(self) -> _Point:
        return _Point(*(np.conj(part) for part in vars(self).values()))


class LimitErrors:
    """Train error and test errors of all classes of a model at any training times, as N → ∞."""

    def __init__(self, model: Model, sample_shares: FloatArray | None = None) -> None:
        self.model = model
        self.system = system = ExtensiveModel(model, _COARSE, sample_shares)
        mixture, grow = model.mixture, np.exp(model.diffusion_time)
        self.readout = np.sqrt(model.noise_variance) * grow * mixture.weights / np.sqrt(mixture.variances)
        self.stretch = (model.spread * grow) ** 2 / mixture.variances  # γ̃²/γ²
        nodes = system.nodes
        self.diagonal = (
            nodes.stack("second_moment") - nodes.stack("alpha") ** 2 - nodes.stack("slope_total") ** 2
        )
        _, self.psi, self.psi_d = system.features(nodes)

    def test(self, times: FloatArray) -> FloatArray:
        """Test errors, (C, T)."""
        errors = np.empty((self.model.mixture.n_classes, len(times)))
        for k, point, weights in self._follow(times):
            errors[:, k] = self._errors(point, weights)
        return errors

    def train(self, times: FloatArray) -> FloatArray:
        """Train errors 1 − 1/N Σ_q ‖B_q‖² (1 − e^{-4λ_qτ})/λ_q (Eq 137), (T,)."""
        errors = np.empty(len(times))
        for k, point, weights in self._follow(2 * times):
            explained = np.einsum("z,zcd,c,d->", weights, point.omega, self.readout, self.readout)
            errors[k] = 1 - self.system.chi * explained.real
        return errors

    def _follow(self, times: FloatArray) -> Iterator[tuple[int, _Point, ComplexArray]]:
        """The solution on the contour of each time, started from that of an earlier one, where |z| is larger."""
        unknowns = self.system.start(_NODES)
        reached = min(_EARLY, float(times.min()))
        for k in np.argsort(times):
            tau = float(times[k])
            steps = 1 + int(np.log(tau / reached) / np.log(_STRIDE))
            for station in np.geomspace(reached, tau, steps + 1)[1:]:
                z, weights = _contour(station)
                self._solve(z, unknowns, station)
            reached = tau
            yield int(k), self._point(z, unknowns), weights

    def _solve(self, z: ComplexArray, unknowns: ComplexArray, tau: float) -> None:
        """Newton from the present unknowns, in place."""
        with np.errstate(all="ignore"):
            error = relax(self.system, z, unknowns, _TOLERANCE)
        if not (error < _TOLERANCE).all():
            raise ConvergenceError(f"the resolvent did not converge for the training time {tau:.4g}")

    def _point(self, z: ComplexArray, unknowns: ComplexArray) -> _Point:
        system = self.system
        floor = system.features(system.nodes)[0]
        resolvent = 1 / (floor - z[:, None] + unknowns @ self.psi_d.T)
        _, moments, _ = system.moments(z, unknowns, jacobian=False)
        _, omega, left, y, _ = system.residual(unknowns, moments)
        return _Point(resolvent, unknowns[:, : system.b.size], left, y, omega)

    def _errors(self, point: _Point, weights: ComplexArray) -> FloatArray:
        """1 + quadratic − 2 linear for each class."""
        chi, v = self.system.chi, self.readout
        along = np.einsum("zcd,d->zc", point.omega, v)
        own = np.sqrt(self.model.noise_variance) * np.exp(self.model.diffusion_time)
        own = own / np.sqrt(self.model.mixture.variances)
        linear = chi * own * (weights @ along).real
        quadratic = np.zeros(len(v))
        for other, theirs in ((point, weights), (point.conjugate, np.conj(weights))):
            both = np.repeat(weights, len(theirs)) * np.tile(theirs, len(weights))
            quadratic += 0.5 * (both @ self._two_resolvents(*point.pairs(other))).real
        return 1 + quadratic - 2 * linear

    def _two_resolvents(self, one: _Point, two: _Point) -> ComplexArray:
        """1/N Tr Vᵀ G(z₁) Ũ_c G(z₂) V for each pair and class, (n, C)."""
        system, c = self.system, self.system.b.size
        both = one.resolvent * two.resolvent * system.nodes.weights
        k = self.psi.shape[1]
        products = (self.psi[:, :, None] * self.psi_d[:, None, :]).reshape(len(self.psi), k * k)
        gain = (both @ products).reshape(-1, k, k)  # how (s', Y') move (g_h', T')
        source = (
            both @ (self.psi[:, :, None] * self.diagonal[:, None, :]).reshape(len(self.psi), -1)
        ).reshape(-1, k, c)
        by_moments, by_strength = self._responses(one, two)
        stretched = by_strength * self.stretch  # A' = (Γ_c e^t/σ_c)² e_c e_cᵀ
        system_matrix = np.eye(k) + by_moments @ gain
        system_matrix[:, :, :c] -= by_strength * system.b
        unknowns = np.linalg.solve(system_matrix, stretched - by_moments @ source)
        moments = -(gain @ unknowns + source)
        strength = system.b[:, None] * unknowns[:, :c] + np.diag(self.stretch)
        return self._readout(one, two, moments, strength)

    def _responses(self, one: _Point, two: _Point) -> tuple[ComplexArray, ComplexArray]:
        """How (s', Y') answer to (g_h', T'), (n, K, K), and to the diagonal of A', (n, K, C)."""
        system, c = self.system, self.system.b.size
        chi, ratio = system.chi, system.ratio
        n, k = len(one.s), c + len(system.pairs)
        damping = -ratio * one.s * two.s
        by_moments = np.zeros((n, k, k), dtype=complex)
        by_moments[:, np.arange(c), np.arange(c)] = damping
        for column, (i, j) in enumerate(system.pairs, start=c):
            omega = one.left[:, i, :, None] * two.left[:, j, None, :]  # L₁ᵀ E_ij L₂
            y = one.y[:, :, i, None] * two.y[:, None, j, :]
            if i != j:
                omega = omega + one.left[:, j, :, None] * two.left[:, i, None, :]
                y = y + one.y[:, :, j, None] * two.y[:, None, i, :]
            by_moments[:, :c, column] = damping * np.einsum("zcc->zc", omega)
            by_moments[:, c:, column] = -chi * system.upper(_symmetric(y))
        by_strength = np.zeros((n, k, c), dtype=complex)
        for i in range(c):
            by_strength[:, :c, i] = -chi * damping * one.omega[:, :, i] * two.omega[:, i, :]
            by_strength[:, c:, i] = system.upper(
                _symmetric(one.left[:, :, i, None] * two.left[:, None, :, i])
            )
        return by_moments, by_strength

    def _readout(
        self, one: _Point, two: _Point, moments: ComplexArray, strength: ComplexArray
    ) -> ComplexArray:
        """−χ_p vᵀ Ω' v for each class."""
        system, c = self.system, self.system.b.size
        left, right = (
            np.einsum("zab,b->za", one.left, self.readout),
            np.einsum("zab,b->za", two.left, self.readout),
        )
        t = system.matrix(np.moveaxis(moments[:, c:], 1, 2))  # (n, class, C, C)
        projected = np.einsum("za,zkab,zb->zk", left, t, right)
        first, second = one.omega @ self.readout, two.omega @ self.readout
        weakened = np.einsum("za,zak,za->zk", first, strength, second)
        return -system.chi * (projected - system.chi * weakened)


def _symmetric(matrix: ComplexArray) -> ComplexArray:
    return (matrix + np.swapaxes(matrix, -1, -2)) / 2
