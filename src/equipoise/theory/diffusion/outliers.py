"""Eigenvalues that leave the bulks because the classes have centroids.

Along the centroids' directions e_k the projections w_k = W e_k enter the coefficients, and the mean
activations α_c(μ) add a part of rank C and norm of order P (Eq 52). Both are a perturbation of finite rank:
with the columns F = [α_c, γ_c ⊙ w_k/√N] and their strengths Λ = diag(b_c s_c, a_c), an eigenvalue lies at z
outside the bulks where det(1 + Λ Fᵀ Q(z) F) = 0, and Fᵀ Q F is an average over μ like all else in Eq 107:

    α-α: P·E[α_c α_c' Q],   α-γw: √(Pχ_p)·E[α_c γ_c' w_k Q],   γw-γw: χ_p·E[γ_c γ_c' w_k w_l Q].
"""

from __future__ import annotations

import numpy as np

from equipoise._core.checks import FloatArray, check_integer
from equipoise.theory.diffusion.centroids import ExtensiveModel, solve
from equipoise.theory.diffusion.instances import Model

_SCAN = 120
_ZOOM = 24
_ROUNDS = 3  # each round narrows a bracket by the factor _ZOOM


def outliers(model: Model, dimension: int) -> FloatArray:
    """Positions of the outliers above the rightmost bulk at a given dimension N, ascending.

    Eigenvalues that several directions share are listed as often.
    """
    n = check_integer("dimension", dimension, low=1)
    system = ExtensiveModel(model)
    grid = _scan_grid(system, n)
    brackets = _crossings(grid, _secular(system, n, grid))
    found = []
    for low, high, branch in brackets:
        for _ in range(_ROUNDS):
            fine = np.geomspace(low, high, _ZOOM)
            low, high, _ = next(c for c in _crossings(fine, _secular(system, n, fine)) if c[2] == branch)
        found.append(np.sqrt(low * high))
    return np.sort(found)


def _crossings(grid: FloatArray, values: FloatArray) -> list[tuple[float, float, int]]:
    """Brackets in which the k-th eigenvalue of the secular matrix goes through zero."""
    rows, branches = np.nonzero((values[:-1] < 0) & (values[1:] >= 0))
    return [(float(grid[i]), float(grid[i + 1]), int(k)) for i, k in zip(rows, branches, strict=True)]


def _scan_grid(system: ExtensiveModel, dimension: int) -> FloatArray:
    """Points from just above the rightmost bulk to above any possible eigenvalue."""
    nodes = system.nodes
    second = float(nodes.weights @ (nodes.stack("second_moment") @ system.b))
    bulk = (1 + system.chi**0.5) ** 2 + (1 + system.ratio.max() ** 0.5) ** 2
    top = 3 * second * (system.chi * dimension + bulk)
    low, high = 0.05 * second * system.chi, 3 * second * bulk
    for _ in range(_ROUNDS):
        grid = np.geomspace(low, high, _ZOOM)
        g = solve(system, grid)[0]
        last = int(np.flatnonzero(g.imag > 1e-7 * np.abs(g))[-1])
        low, high = grid[last], grid[min(last + 1, _ZOOM - 1)]
    near = high * (1 + np.geomspace(1e-4, 1e-1, _ZOOM))
    return np.concatenate([near, np.geomspace(1.02 * near[-1], top, _SCAN)])


def _secular(system: ExtensiveModel, dimension: int, grid: FloatArray) -> FloatArray:
    """Ascending eigenvalues of 1 + Λ^{1/2} Fᵀ Q F Λ^{1/2} at each real z above the bulks."""
    y = solve(system, grid)[2].real
    c, nodes = system.b.size, system.nodes
    s = y[:, :c]
    floor, _, psi_d = system.features(nodes)
    q = 1 / (floor - grid[:, None] + y @ psi_d.T)
    alpha, slope, w = nodes.stack("alpha"), nodes.stack("slope"), nodes.directions
    root_p = np.sqrt(system.chi * dimension)
    moving = (slope[:, :, None] * w[:, None, :]).reshape(len(w), -1) * np.sqrt(system.chi)
    columns = np.hstack([alpha * root_p, moving])
    strength = np.hstack([system.b * s, np.repeat(system.b * s + system.diffusion, w.shape[1], axis=1)])
    root = np.sqrt(np.maximum(strength, 0.0))
    form = np.einsum("zp,pi,pj->zij", q * nodes.weights, columns, columns, optimize=True)
    full = np.eye(columns.shape[1]) + root[:, :, None] * form * root[:, None, :]
    return np.linalg.eigvalsh(full)
