"""The edges of the spectrum for extensive centroids: where generalization and memorization part.

Above the gap lies the bulk of N eigenvalues that carry the data's directions; below it all that tells
samples apart. In the gap the solution of Eq 107 is real, so the ends of the gap, and the upper end of the
spectrum, are where it ceases to be. The lower part has no lower edge: neurons whose projected centroids are
large are saturated, their floor ς is arbitrarily small, and the density has a tail towards zero. So
τ_mem⁽²⁾ is not defined, and nan.
"""

from __future__ import annotations

import numpy as np

from equipoise._core.checks import FloatArray
from equipoise._core.solution import ConvergenceError, Status
from equipoise.theory.diffusion.centroids import ExtensiveModel, solve
from equipoise.theory.diffusion.edges import Bulk, Edges, bulk_nodes
from equipoise.theory.diffusion.instances import Model

_REFINEMENT = 0.7  # of the rule over μ: near and above the gap the average over neurons is smooth
_SCAN = 60
_ZOOM = 12
_ROUNDS = 4  # each narrows a bracket by the factor _ZOOM
_NODES = 60


def extensive_edges(model: Model) -> Edges:
    """The bulk below the gap, of which only the upper edge is sharp, and the one above it."""
    system = ExtensiveModel(model, _REFINEMENT)
    nodes = system.nodes
    second = float(nodes.weights @ (nodes.stack("second_moment") @ system.b))
    top = 4 * second * ((1 + system.chi**0.5) ** 2 + (1 + system.ratio.max() ** 0.5) ** 2)
    grid = np.geomspace(1e-4 * top, top, _SCAN)
    inside = _inside(system, grid)
    starts = np.flatnonzero(inside[1:] & ~inside[:-1])
    if not inside.any() or inside[-1]:
        raise ConvergenceError("the upper end of the spectrum was not found: the edges are not known")
    last = int(np.flatnonzero(inside)[-1])
    upper = _refine(system, grid[last], grid[last + 1], entering=False)
    if len(starts) == 0 or not inside[: starts[-1]].any():
        return Edges((Bulk(float("nan"), upper, 1.0),), None, 0.0, False)
    start = int(starts[-1])
    lower = _refine(system, grid[start], grid[start + 1], entering=True)
    end = int(np.flatnonzero(inside[: start + 1])[-1])
    below = _refine(system, grid[end], grid[end + 1], entering=False)
    mass = _mass(system, lower, upper)
    separated = abs(mass * system.chi - 1) < 1e-2
    return Edges((Bulk(float("nan"), below, 1 - mass), Bulk(lower, upper, mass)), None, 0.0, separated)


def _inside(system: ExtensiveModel, grid: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether points lie in a bulk. A point at which the average over neurons is not resolved does."""
    g, _, _, status = solve(system, grid)
    return np.asarray((g.imag > 1e-6 * np.abs(g)) | (status == Status.STALLED) | (status == Status.MAX_STEPS))


def _refine(system: ExtensiveModel, low: float, high: float, *, entering: bool) -> float:
    """The edge between two points, one inside a bulk and one outside."""
    for _ in range(_ROUNDS):
        grid = np.geomspace(low, high, _ZOOM)
        inside = _inside(system, grid)
        inside[0], inside[-1] = not entering, entering
        at = int(np.flatnonzero(inside != inside[0])[0])
        low, high = float(grid[at - 1]), float(grid[at])
    return float(np.sqrt(low * high))


def _mass(system: ExtensiveModel, lower: float, upper: float) -> float:
    x, weights = bulk_nodes(lower, upper, _NODES)
    return float(weights @ solve(system, x)[0].imag / np.pi)
