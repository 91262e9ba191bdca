"""Finite instances: the feature matrices of Eqs 7–8 and their Gaussian equivalents (Eqs 50, 55, 59).

The average over the diffusion noise in the true matrices needs no sampling. Two neurons p, q see the noise
through w_p·ξ/√N and w_q·ξ/√N, jointly normal with correlation ρ_pq = cos(w_p, w_q), so Mehler's formula gives

    U_pq = 1/M Σ_ν Σ_n ρ_pqⁿ/n! φ_n(u_νp) φ_n(u_νq),    φ_n(u) = E_z[He_n(z) φ(e^{-t}u + √Δ s_p z)],

s_p = ‖w_p‖/√N, with the diagonal exactly, and V_pj = 1/M Σ_ν φ_1(u_νp) w_pj/‖w_p‖ without any remainder. The
series is cut where its terms, of order (Δ/√N)ⁿ, fall below 1e-4. What is left out of the off-diagonal stays
on the diagonal, so the matrix remains positive. The population matrices have the same form, with the whole
spread Γ_c in place of the noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy import linalg, special

from equipoise._core.checks import FloatArray, check_integer
from equipoise._core.random import as_generator, derive_seed
from equipoise.theory.diffusion.coefficients import (
    Activation,
    Coefficients,
    coefficient_table,
    noise_variance,
)
from equipoise.theory.diffusion.mixture import ClassMixture

_SERIES = 1e-4
_MAX_ORDER = 6
_FLOOR_COLUMNS = (
    1200  # up to so many, the subspace of the equivalent matrix resolves the floor to second order
)


class Model(Protocol):
    """What an instance needs to know of a :class:`~equipoise.theory.diffusion.RandomFeatures`."""

    @property
    def mixture(self) -> ClassMixture: ...
    @property
    def diffusion_time(self) -> float: ...
    @property
    def features_per_dim(self) -> float: ...
    @property
    def samples_per_dim(self) -> float: ...
    @property
    def activation(self) -> Activation: ...
    @property
    def noise_variance(self) -> float: ...
    @property
    def spread(self) -> FloatArray: ...


@dataclass(frozen=True)
class Draw:
    """A draw of projections and data. Classes have streams of their own: other weights, the same samples."""

    projections: FloatArray  # W, (P, N)
    fluctuations: tuple[FloatArray, ...]  # (x − m_c)/σ_c of each class, (N, M_c)
    sample_weights: tuple[FloatArray, ...]  # each class's sum to b_c
    seed: int

    @property
    def dimension(self) -> int:
        return int(self.projections.shape[1])


def draw(model: Model, dimension: int, seed: int, sample_shares: FloatArray | None = None) -> Draw:
    """Draw W and the training set; if b_c·M is not whole, the class's last sample has less weight.

    With ``sample_shares`` the classes have these shares of the M samples, and their weights still sum to b_c: the
    same samples, visited more or less often.
    """
    check_integer("dimension", dimension, low=2)
    n_features = round(model.features_per_dim * dimension)
    n_samples = model.samples_per_dim * dimension
    w = as_generator(derive_seed(seed, "W")).standard_normal((n_features, dimension))
    data, weights = [], []
    shares = model.mixture.weights if sample_shares is None else sample_shares
    for c, (b, share) in enumerate(zip(model.mixture.weights, shares, strict=True)):
        count = max(1, ceil(share * n_samples - 1e-9))
        rng = as_generator(derive_seed(seed, "class", c))
        data.append(rng.standard_normal((count, dimension)).T)  # by rows, so that more samples keep the first
        weight = np.full(count, 1 / n_samples)
        weight[-1] = max(0.0, share - (count - 1) / n_samples)
        weights.append(weight * (b / share))
    return Draw(w, tuple(data), tuple(weights), seed)


@dataclass(frozen=True)
class Decomposition:
    """U = Ψ diag(λ) Ψᵀ on the subspace that the readout can reach, and the readout's target in that basis."""

    eigenvalues: FloatArray  # (K,)
    vectors: FloatArray  # Ψ, (P, K)
    target: FloatArray  # Vᵀ Ψ, (N, K)


def _order(correlation: float, dimension: int) -> int:
    """The last term of Mehler's series that matters: correlation·N^{-1/2} to the next power is negligible."""
    ratio = min(correlation, 1.0) / np.sqrt(dimension)
    return int(min(_MAX_ORDER, max(1, ceil(np.log(_SERIES) / np.log(ratio)) - 1)))


def _hermite(n: int, z: FloatArray) -> FloatArray:
    return np.asarray(special.eval_hermitenorm(n, z), dtype=np.float64)


def _noise_rule(activation: Activation, noise: float) -> tuple[FloatArray, FloatArray]:
    """The shortest Gauss–Hermite rule that averages the activation over the noise as well as 100 nodes do."""
    u = np.linspace(-6, 6, 121)[:, None]

    def smooth(n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        z, w = special.roots_hermitenorm(n)
        w = w / w.sum()
        return z, w, activation(u + noise * z) ** 2 @ w

    best = smooth(100)[2]
    for n in (6, 8, 11, 15, 21, 31, 45):
        z, w, value = smooth(n)
        if np.abs(value - best).max() < 1e-9 * max(1.0, float(np.abs(best).max())):
            return z, w
    return special.roots_hermitenorm(64)[0], special.roots_hermitenorm(64)[1] / np.sqrt(2 * np.pi)


def true_decomposition(model: Model, instance: Draw) -> Decomposition:
    """Diagonalize the empirical U of Eq 7 (P × P, one dense ``eigh``) and project V of Eq 8."""
    centroids = model.mixture.centroids(instance.dimension)
    x = np.hstack(
        [
            np.sqrt(v) * g + m[:, None]
            for v, g, m in zip(model.mixture.variances, instance.fluctuations, centroids, strict=True)
        ]
    )
    weights = np.concatenate(instance.sample_weights)
    return decompose_data(instance.projections, x, weights, model.diffusion_time, model.activation)


def decompose_data(
    w: FloatArray, x: FloatArray, weights: FloatArray, diffusion_time: float, activation: Activation
) -> Decomposition:
    """The same for any data x (N × M) with sample weights that sum to one."""
    n = w.shape[1]
    length = np.sqrt(np.einsum("pj,pj->p", w, w) / n)
    delta = noise_variance(diffusion_time)
    u = w @ (x * np.exp(-diffusion_time)) / np.sqrt(n)
    terms, diagonal = _noise_averages(activation, u, length, np.sqrt(delta), _order(delta, n), weights)
    direction = w / (length * np.sqrt(n))[:, None]
    readout = (terms[1] @ np.sqrt(weights))[:, None] * direction
    form = _mehler_sum(terms, direction)
    del terms
    np.fill_diagonal(form, diagonal)
    return _diagonalize(form, readout)


def _noise_averages(
    activation: Activation, u: FloatArray, length: FloatArray, noise: float, order: int, weights: FloatArray
) -> tuple[list[FloatArray], FloatArray]:
    """√ω_ν φ_n(u_νp) for n = 0 … order, and the diagonal Σ_ν ω_ν E_z φ²."""
    z, rule = _noise_rule(activation, float(noise * length.max()))
    hermite = np.array([rule * _hermite(k, z) for k in range(order + 1)])
    terms = [np.zeros_like(u) for _ in range(order + 1)]
    diagonal = np.zeros(len(u))
    for rows in _blocks(len(u)):
        for k, zk in enumerate(z):
            f = activation(u[rows] + (noise * zk * length[rows])[:, None])
            for term, weight in zip(terms, hermite[:, k], strict=True):
                term[rows] += weight * f
            diagonal[rows] += rule[k] * (f**2 @ weights)
        for term in terms:
            term[rows] *= np.sqrt(weights)
    return terms, diagonal


def _blocks(n_rows: int, size: int = 64) -> Iterator[slice]:
    """Blocks of rows that stay in the processor's cache."""
    for start in range(0, n_rows, size):
        yield slice(start, min(n_rows, start + size))


def _mehler_sum(terms: list[FloatArray], direction: FloatArray) -> FloatArray:
    """Σ_n ρⁿ/n! (Φ_n Φ_nᵀ), element-wise powers of ρ = cos(w_p, w_q); Horner from the last term."""
    total = terms[-1] @ terms[-1].T
    for n in range(len(terms) - 1, 0, -1):
        lower = terms[n - 1] @ terms[n - 1].T
        for rows in _blocks(len(direction)):
            rho = direction[rows] @ direction.T
            rho /= n
            total[rows] *= rho
            total[rows] += lower[rows]
    return total


def _diagonalize(u: FloatArray, readout: FloatArray) -> Decomposition:
    values, vectors = linalg.eigh(u.T, overwrite_a=True, check_finite=False, driver="evd")
    return Decomposition(np.maximum(values, 0.0), vectors, readout.T @ vectors)


def _class_coefficients(model: Model, projections: FloatArray) -> list[Coefficients]:
    """Each class's Gaussian-equivalent coefficients at its projected centroids μ_c = W m_c/√N."""
    n = projections.shape[1]
    mu = projections @ model.mixture.centroids(n).T / np.sqrt(n)
    gram = np.diag(model.mixture.centroid_gram)
    return [
        coefficient_table(float(v), model.diffusion_time, float(r), model.activation)(mu[:, c])
        for c, (v, r) in enumerate(zip(model.mixture.variances, gram, strict=True))
    ]


def equivalent_factor(model: Model, instance: Draw) -> tuple[FloatArray, FloatArray, FloatArray]:
    """U_gep = X Xᵀ + diag(d) of Eq 50, and V_gep of Eq 59: returns X (P × K), d (P,), V (P × N)."""
    w, n = instance.projections, instance.dimension
    mixture, grow = model.mixture, np.exp(model.diffusion_time)
    parts = _class_coefficients(model, w)
    columns, floor, slope = [], np.zeros(len(w)), np.zeros(len(w))
    for c, (p, b, v) in enumerate(zip(parts, mixture.weights, mixture.variances, strict=True)):
        g = instance.fluctuations[c]
        rng = as_generator(derive_seed(instance.seed, "noise", c))
        eta = rng.standard_normal((g.shape[1], len(w))).T
        sample = w @ (g / np.sqrt(n)) * p.slope[:, None] + np.sqrt(p.sample_noise)[:, None] * eta
        columns.append((sample + p.alpha[:, None]) * np.sqrt(instance.sample_weights[c]))
        floor += b * p.floor
        slope += b * p.slope * grow / np.sqrt(v)
    diffusion = _diffusion_columns(model, parts, w)
    readout = np.sqrt(model.noise_variance / n) * slope[:, None] * w
    return np.hstack([*columns, *diffusion]), floor, readout


def _diffusion_columns(model: Model, parts: list[Coefficients], w: FloatArray) -> list[FloatArray]:
    """Columns whose outer products sum to Σ_c b_c Δ e^{2t}/(Nσ_c²) γ_cγ_cᵀ ⊙ WWᵀ; one block if centered."""
    mixture, n = model.mixture, w.shape[1]
    scale = np.sqrt(mixture.weights * model.noise_variance / (n * mixture.variances))
    scale = scale * np.exp(model.diffusion_time)
    slopes = np.array([k * p.slope for k, p in zip(scale, parts, strict=True)])
    if mixture.centered:
        return [np.sqrt((slopes**2).sum(axis=0))[:, None] * w]
    return [s[:, None] * w for s in slopes]


def equivalent_decomposition(model: Model, instance: Draw) -> Decomposition:
    """Diagonalize U_gep = X Xᵀ + diag(ς_p) of Eq 50, in a small subspace where X has few columns.

    The readout V lies in the range of X. If the floor ς_p is the same for all neurons, that range is invariant
    and the result is exact. Otherwise ς_p varies little between neurons, and the projection on the range of
    X and (ς − ς̄)X leaves a relative error of about (2τ·sd(ς))² in the readout. In large instances X alone is
    used; at t = 0.01 that moves memorization times of up to 100 by less than 0.3 %.
    """
    x, floor, readout = equivalent_factor(model, instance)
    x = x[:, np.einsum("pk,pk->k", x, x) > 0]
    centered = model.mixture.centered
    blocks = 1 if centered or 2 * x.shape[1] > _FLOOR_COLUMNS else 2
    if x.shape[1] * (1 if centered else 3 * blocks) < x.shape[0]:  # else a dense matrix is as quick
        return _subspace_decomposition(x, floor, readout, blocks)
    u = x @ x.T
    u[np.diag_indices_from(u)] += floor
    return _diagonalize(u, readout)


def _subspace_decomposition(
    x: FloatArray, floor: FloatArray, readout: FloatArray, blocks: int
) -> Decomposition:
    """Rayleigh–Ritz for X Xᵀ + diag(floor) on the columns δᵏX, k < blocks, from the moments Xᵀ δᵏ X."""
    center, width = float(floor.mean()), float(floor.std())
    delta = (floor - center)[:, None] / (width or 1.0)
    columns = [x]
    for _ in range(1, blocks):
        columns.append(delta * columns[-1])
    moments = [columns[k // 2].T @ columns[k - k // 2] for k in range(2 * blocks - 1)]
    moments.append(columns[-1].T @ (delta * columns[-1]))

    def hankel(shift: int) -> FloatArray:
        return np.block([[moments[i + j + shift] for j in range(blocks)] for i in range(blocks)])

    gram = hankel(0)
    along = np.vstack(moments[:blocks])
    form = along @ along.T + center * gram + width * hankel(1)
    values, basis = linalg.eigh(gram, check_finite=False, driver="evd")
    keep = values > 1e-12 * values[-1]
    basis = basis[:, keep] / np.sqrt(values[keep])
    values, rotation = linalg.eigh(basis.T @ form @ basis, check_finite=False, driver="evd")
    vectors = np.hstack(columns) @ (basis @ rotation)
    return Decomposition(np.maximum(values, 0.0), vectors, readout.T @ vectors)


def equivalent_matrix(model: Model, instance: Draw) -> FloatArray:
    """U_gep of Eq 50 as a dense matrix."""
    x, floor, _ = equivalent_factor(model, instance)
    u = x @ x.T
    u[np.diag_indices_from(u)] += floor
    return u


@dataclass(frozen=True)
class Population:
    """Ũ_c = F Fᵀ + diag(d) + (a dense rest, if any), and Ṽ_c, of one class."""

    factor: FloatArray  # (P, N + 1)
    diagonal: FloatArray  # (P,)
    readout: FloatArray  # Ṽ_c, (P, N)
    rest: npt.NDArray[np.float32] | FloatArray | None = None

    def within(self, vectors: FloatArray) -> Population:
        """The same matrices in the coordinates of a few orthonormal vectors, (P, K)."""
        form = (vectors.T * self.diagonal) @ vectors
        if self.rest is not None:
            form += vectors.T @ (self.rest @ vectors)
        return Population(vectors.T @ self.factor, np.zeros(len(form)), vectors.T @ self.readout, form)

    def form(self) -> FloatArray:
        """Ũ_c as a dense matrix."""
        dense = self.factor @ self.factor.T
        dense[np.diag_indices_from(dense)] += self.diagonal
        return dense if self.rest is None else dense + self.rest


def populations(model: Model, instance: Draw, *, equivalent: bool) -> Iterator[Population]:
    """The population matrices of each class, exactly (Eqs 38–39) or as equivalents (Eqs 55, 59–60).

    Exactly means Mehler's series with correlation one: its terms of order 0 and 1 are a factor, the others, a
    share 1/N of it, are a dense rest for which single precision is enough.
    """
    if equivalent:
        yield from _equivalent_populations(model, instance.projections)
        return
    w, n = instance.projections, instance.dimension
    length = np.sqrt(np.einsum("pj,pj->p", w, w) / n)
    direction = w / (length * np.sqrt(n))[:, None]
    mu = w @ model.mixture.centroids(n).T / np.sqrt(n)
    z, rule = special.roots_hermitenorm(64)
    rule = rule / rule.sum()
    order, decay = _order(1.0, n), np.exp(-model.diffusion_time)
    for c, spread in enumerate(model.spread):
        f = model.activation(decay * mu[:, c, None] + (spread * length)[:, None] * z)
        moments = [f @ (rule * _hermite(k, z)) for k in range(order + 1)]
        factor = np.column_stack([moments[0], moments[1][:, None] * direction])
        diagonal = f**2 @ rule - moments[0] ** 2 - moments[1] ** 2
        readout = (moments[1] * np.sqrt(model.noise_variance) / spread)[:, None] * direction
        yield Population(factor, diagonal, readout, _mehler_rest(moments, direction))


def _mehler_rest(moments: list[FloatArray], direction: FloatArray) -> npt.NDArray[np.float32] | None:
    """Σ_{n≥2} ρⁿ/n! h_n h_nᵀ off the diagonal; Horner from the last term, in blocks of rows."""
    if len(moments) < 3:
        return None
    thin = [moment.astype(np.float32) for moment in moments]
    unit = direction.astype(np.float32)
    rest = np.empty((len(unit),) * 2, dtype=np.float32)
    for rows in _blocks(len(unit)):
        rho = unit[rows] @ unit.T
        block = np.multiply.outer(thin[-1][rows], thin[-1])
        for n in range(len(moments) - 1, 0, -1):
            block *= rho
            block /= np.float32(n)
            if n > 2:
                block += np.multiply.outer(thin[n - 1][rows], thin[n - 1])
        rest[rows] = block
    np.fill_diagonal(rest, 0.0)
    return rest


def _equivalent_populations(model: Model, w: FloatArray) -> Iterator[Population]:
    n, noise = w.shape[1], np.sqrt(model.noise_variance)
    for p, spread in zip(_class_coefficients(model, w), model.spread, strict=True):
        scaled = p.slope_total[:, None] * w / np.sqrt(n)
        diagonal = p.second_moment - p.alpha**2 - p.slope_total**2
        yield Population(np.column_stack([p.alpha, scaled]), diagonal, scaled * (noise / spread))
