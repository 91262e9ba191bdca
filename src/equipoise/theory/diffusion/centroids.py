"""The spectrum for extensive centroids (Nicoletti et al., Eqs 103–108), which the paper leaves unsolved.

Neurons differ: each has its own projected centroids μ = (μ_1 … μ_C) ~ N(0, r). In two steps of the
deterministic equivalent, over the samples of each class and then over the columns of W, with
s_c = 1/(1 + χ_pm(g_cc^Ω + g_c^h)), a_c = b_c s_c + Δe^{2t} b_c/σ_c², A = diag(a) and T_cc' = E[γ_c γ_c' Q]:

    Q(μ) = 1/(Σ b_c ς_c + Σ b_c h_c² s_c − z + γᵀ Y γ),   Y = (A⁻¹ + χ_p T)⁻¹,   g^Ω = (T⁻¹ + χ_p A)⁻¹,

g_c^h = E[h_c² Q], g = E[Q]. This is Eq 107 with the factor 2 that Eqs 92–98 imply in place of the printed
2/χ_p of Eq 104: T⁻¹ − T⁻¹ g^Ω T⁻¹ = χ_p Y. Written with Y and L = (I + χ_p A T)⁻¹ nothing is divided by T, so
collinear centroids and centered classes, where T is singular, are solved alike. Unknowns: C + C(C+1)/2
complex numbers per z, by Newton over the whole grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special
from scipy.stats import qmc

from equipoise._core.checks import FloatArray
from equipoise._core.solution import Status
from equipoise.theory.diffusion.coefficients import Coefficients, coefficient_table, continued_coefficients
from equipoise.theory.diffusion.instances import Model
from equipoise.theory.diffusion.spectrum import ComplexArray

_STATIONS = np.concatenate([np.geomspace(100.0, 1e-9, 40), [0.0]])
_STEPS_PER_DIMENSION = {0: 1.0, 1: 0.05, 2: 0.25, 3: 0.5}
_REACH = 6.0
_NEWTON_STEPS = 40
_TOLERANCE = 1e-10
_LOOSE = 1e-5
_QUADRATURE = 1e-3
_BEND = 0.6  # of μ, well below the distance π/2 of the poles of tanh
_FARTHEST = 41.4  # |w|² beyond which a neuron weighs less than 1e-9
_SOBOL = 11  # 2¹¹ points where the centroids span more than three dimensions
_CHUNK = 500_000  # grid points × nodes held at once


@dataclass(frozen=True)
class CentroidRule:
    """A rule for averages over the projected centroids, and the coefficients of all classes at its nodes."""

    weights: FloatArray  # (n,)
    directions: FloatArray  # the standard normal coordinates w of μ = L w, (n, k)
    parts: tuple[Coefficients, ...]

    def stack(self, name: str) -> FloatArray:
        return np.stack([getattr(part, name) for part in self.parts], axis=1)


class ExtensiveModel:
    """Eq 107 for a model: coefficients at quadrature nodes of μ, and the equations for a batch of z."""

    def __init__(
        self,
        model: Model,
        refinement: float = 1.0,
        sample_shares: FloatArray | None = None,
        bend: float = 0.0,
    ) -> None:
        self.refinement, self.bend = refinement, bend
        mixture = model.mixture
        self.factor = mixture.centroid_factor()
        self.tables = [
            coefficient_table(float(v), model.diffusion_time, float(r), model.activation)
            for v, r in zip(mixture.variances, np.diag(mixture.centroid_gram), strict=True)
        ]
        self.model = model
        self.b = mixture.weights
        grow = np.exp(2 * model.diffusion_time)
        self.diffusion = model.noise_variance * grow * self.b / mixture.variances
        self.chi = model.features_per_dim
        drawn = 1.0 if sample_shares is None else self.b / sample_shares  # visits to a sample of each class
        self.ratio = np.full(self.b.size, drawn * model.features_per_dim / model.samples_per_dim)
        self.pairs = list(combinations_with_replacement(range(self.b.size), 2))
        self.nodes = self.rule(0.0)

    def rule(self, shift: float) -> CentroidRule:
        """The trapezoid rule in each direction of the centroids, shifted by a share of its step.

        In more than three directions Sobol points, mapped to a normal distribution, stand in for it.
        """
        rank = self.factor.shape[1]
        if rank > 3:
            points = qmc.Sobol(rank, rng=int(2 * shift)).random_base2(_SOBOL + int(np.log2(self.refinement)))
            w = special.ndtri(points)
            return self._rule(w, np.full(len(w), 1 / len(w)))
        step = _STEPS_PER_DIMENSION[rank] / self.refinement
        line = np.arange(-_REACH, _REACH + step, step) + shift * step
        every = np.array(list(product(line, repeat=rank))).reshape(line.size**rank, rank)
        near = every[(every**2).sum(axis=1) < _FARTHEST]
        nodes, jacobian = _bent(near, self.bend) if self.bend else (near, 1.0)
        weights = np.exp(-0.5 * (nodes**2).sum(axis=1)) * jacobian
        return self._rule(nodes, weights / weights.sum())

    def _rule(self, w: npt.NDArray[Any], weights: npt.NDArray[Any]) -> CentroidRule:
        mu = (w @ self.factor.T).T
        model = self.model
        if self.bend:
            variances = model.mixture.variances
            time, activation = model.diffusion_time, model.activation
            parts = [
                continued_coefficients(float(v), time, m, activation, coarser=2)
                for v, m in zip(variances, mu, strict=True)
            ]
        else:
            parts = [table(m) for table, m in zip(self.tables, mu, strict=True)]
        return CentroidRule(weights, w, tuple(parts))

    @cached_property
    def other_nodes(self) -> CentroidRule:
        """A rule to check the first one by."""
        return self.rule(0.5)

    @cached_property
    def _features(self) -> tuple[FloatArray, ComplexArray, ComplexArray]:
        floor, psi, psi_d = self.features(self.nodes)
        return floor, psi.astype(complex), psi_d.astype(complex)

    @cached_property
    def _products(self) -> ComplexArray:
        """ψ_k times the factor of ψ_l in the denominator, (n, K²)."""
        _, psi, psi_d = self._features
        return (psi[:, :, None] * psi_d[:, None, :]).reshape(len(psi), -1)

    def features(self, nodes: CentroidRule) -> tuple[FloatArray, FloatArray, FloatArray]:
        """floor (n,), ψ = (h_c², γ_cγ_c') (n, K) and its factors in the denominator of Q (n, K)."""
        noise, slope = nodes.stack("sample_noise"), nodes.stack("slope")
        products = np.stack([slope[:, i] * slope[:, j] for i, j in self.pairs], axis=1)
        twice = np.array([1.0 if i == j else 2.0 for i, j in self.pairs])
        psi = np.hstack([noise, products])
        return nodes.stack("floor") @ self.b, psi, np.hstack([noise * self.b, products * twice])

    def start(self, count: int) -> ComplexArray:
        """The unknowns (s, Y) for |z| → ∞, as often as asked."""
        c = self.b.size
        start = np.zeros(c + len(self.pairs), dtype=complex)
        start[:c] = 1.0
        start[c:] = [self.b[i] + self.diffusion[i] if i == j else 0.0 for i, j in self.pairs]
        return np.tile(start, (count, 1))

    def matrix(self, upper: ComplexArray) -> ComplexArray:
        """(…, C, C) from the C(C+1)/2 upper entries."""
        c = self.b.size
        full = np.zeros((*upper.shape[:-1], c, c), dtype=upper.dtype)
        for k, (i, j) in enumerate(self.pairs):
            full[..., i, j] = full[..., j, i] = upper[..., k]
        return full

    def upper(self, full: ComplexArray) -> ComplexArray:
        return np.stack([full[..., i, j] for i, j in self.pairs], axis=-1)

    def moments(
        self, z: ComplexArray, v: ComplexArray, nodes: CentroidRule | None = None, jacobian: bool = True
    ) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
        """g = E[Q], m_k = E[ψ_k Q] and ∂m_k/∂v_l at each z."""
        nodes = self.nodes if nodes is None else nodes
        floor, psi, psi_d = self._features if nodes is self.nodes else self.features(nodes)
        q = 1 / (floor - z[:, None] + v @ psi_d.T)
        weighted = q * nodes.weights
        m, g = weighted @ psi, weighted.sum(axis=1)
        if not jacobian:
            return g, m, np.empty(0, dtype=complex)
        return g, m, -((weighted * q) @ self._products).reshape(len(z), psi.shape[1], psi.shape[1])

    def residual(self, v: ComplexArray, m: ComplexArray) -> tuple[ComplexArray, ...]:
        """The equations for s and Y, with g^Ω, L and Y(A, T) for their derivatives."""
        c = self.b.size
        s, y, noise, t = v[:, :c], self.matrix(v[:, c:]), m[:, :c], self.matrix(m[:, c:])
        a = self.b * s + self.diffusion
        left = np.linalg.inv(np.eye(c) + self.chi * a[:, :, None] * t)
        omega = t @ left
        y_new = left * a[:, None, :]
        inverse = 1 + self.ratio * (np.einsum("zcc->zc", omega) + noise)
        return np.hstack([s * inverse - 1, self.upper(y - y_new)]), omega, left, y_new, inverse

    def jacobian(
        self,
        v: ComplexArray,
        dm: ComplexArray,
        omega: ComplexArray,
        left: ComplexArray,
        y_new: ComplexArray,
        inverse: ComplexArray,
    ) -> ComplexArray:
        c, k = self.b.size, v.shape[1]
        j = np.zeros((len(v), k, k), dtype=complex)
        left_t = np.swapaxes(left, 1, 2)
        for col in range(k):
            dt = self.matrix(dm[:, c:, col])
            d_omega = left_t @ dt @ left
            d_y = -self.chi * y_new @ dt @ y_new
            if col < c:  # s_c moves a_c as well
                d_omega = d_omega - self.chi * self.b[col] * omega[:, :, col, None] * omega[:, None, col, :]
                d_y = d_y + self.b[col] * left[:, :, col, None] * left[:, None, :, col]
            j[:, :c, col] = v[:, :c] * self.ratio * (np.einsum("zcc->zc", d_omega) + dm[:, :c, col])
            j[:, c:, col] = -self.upper(d_y)
            if col < c:
                j[:, col, col] += inverse[:, col]
            else:
                j[:, col, col] += 1
        return j


def _bent(w: FloatArray, bend: float) -> tuple[ComplexArray, ComplexArray]:
    """The nodes moved off the real axis, each along its own direction, those far out by ``bend``; the Jacobian.

    The lowest eigenvalues sit on saturated neurons, whose Q(μ) is nearly singular: no rule on the real axis
    resolves it. The average of an analytic function is the same along every path that passes no singularity. The
    denominator of Q falls as |μ| grows, so that its zeros lie on the other side of the axis.
    """
    square = (w**2).sum(axis=1)
    moved = 1 + 1j * bend * square * (1 + square) ** -1.5
    slope = 1j * bend * (1 - 0.5 * square) * (1 + square) ** -2.5
    return moved[:, None] * w, moved ** (w.shape[1] - 1) * (moved + 2 * square * slope)


@dataclass(frozen=True)
class ExtensiveSolution:
    """g (n,), g^Ω (n, C, C), the unknowns (s, Y) (n, K) and a status for each λ."""

    g: ComplexArray
    omega: ComplexArray
    unknowns: ComplexArray
    status: npt.NDArray[np.object_]


def solve_extensive(model: Model, grid: FloatArray | ComplexArray) -> ExtensiveSolution:
    """Solve Eq 107 at each λ of the grid, real or above the axis, with a better rule where it is needed."""
    system = ExtensiveModel(model)
    found = solve(system, grid)
    finer: tuple[tuple[float, float], ...] = ((1.5, 0.0),)
    if system.factor.shape[1] < 3:
        bend = _BEND / np.sqrt(np.diag(model.mixture.centroid_gram).max())
        finer = (*(((1.0, bend),) if model.activation is np.tanh else ()), (2.0, 0.0), (4.0, 0.0))
    for refinement, bend in finer:
        rough = np.flatnonzero(found[-1] == Status.STALLED)
        if rough.size == 0:
            break
        better = solve(ExtensiveModel(model, refinement, bend=bend), grid[rough])
        for whole, part in zip(found, better, strict=True):
            whole[rough] = part
    return ExtensiveSolution(*found)


_Parts = tuple[ComplexArray, ComplexArray, ComplexArray, npt.NDArray[np.object_]]


def solve(system: ExtensiveModel, grid: FloatArray | ComplexArray) -> _Parts:
    """g, g^Ω, (s, Y) and statuses with the rule that the system has."""
    size = max(1, _CHUNK // len(system.nodes.weights))
    with np.errstate(all="ignore"):
        chunks = [_solve_chunk(system, grid[i : i + size]) for i in range(0, len(grid), size)]
    g, omega, v, status = (np.concatenate(part) for part in zip(*chunks, strict=True))
    return g, omega, v, status


def _solve_chunk(system: ExtensiveModel, lam: FloatArray | ComplexArray) -> _Parts:
    v = system.start(len(lam))
    error = np.full(len(lam), np.inf)
    for station in _STATIONS:
        error = relax(system, lam + 1j * station, v, _TOLERANCE if station == 0 else _LOOSE)
    z = lam.astype(complex)
    g, m, _ = system.moments(z, v, jacobian=False)
    _, omega, *_ = system.residual(v, m)
    check, m_other, _ = system.moments(z, v, system.other_nodes, jacobian=False)
    off = np.abs(system.residual(v, m_other)[0]).max(axis=1)
    status = np.full(len(lam), Status.CONVERGED, dtype=object)
    status[~(error < _TOLERANCE)] = Status.MAX_STEPS
    rough = (off > _QUADRATURE) | (np.abs(check - g) > _QUADRATURE * np.abs(g))
    status[(error < _TOLERANCE) & rough] = Status.STALLED  # the nodes in μ do not resolve Q there
    status[~np.isfinite(g) | (g.imag < -1e-6 * np.abs(g))] = Status.DIVERGED
    return g, omega, v, status


def relax(system: ExtensiveModel, z: ComplexArray, v: ComplexArray, tolerance: float) -> FloatArray:
    """Newton from the warm start, in place, on the points that still move."""
    error = np.full(len(z), np.inf)
    active = np.arange(len(z))
    for _ in range(_NEWTON_STEPS):
        va = v[active]
        _, m, dm = system.moments(z[active], va)
        residual, *parts = system.residual(va, m)
        jacobian = system.jacobian(va, dm, *parts)
        finite = np.isfinite(jacobian).all(axis=(1, 2)) & np.isfinite(residual).all(axis=1)
        active, va, residual, jacobian = active[finite], va[finite], residual[finite], jacobian[finite]
        if active.size == 0:
            break
        delta = np.linalg.solve(jacobian, residual[:, :, None])[:, :, 0]
        size = np.abs(delta).max(axis=1) / np.abs(va).max(axis=1)
        v[active] = va - np.minimum(1.0, 0.5 / np.maximum(size, 1e-300))[:, None] * delta
        error[active] = size
        active = active[~(size < tolerance)]
        if active.size == 0:
            break
    return error
