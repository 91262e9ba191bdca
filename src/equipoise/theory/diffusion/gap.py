"""The gap of a spectrum that is only known point by point: where generalization and memorization part.

Above the gap lies the bulk of N eigenvalues that carry the data's directions; below it all that tells samples
apart. In the gap the resolvent is real, so the ends of the gap, and the upper end of the spectrum, are where it
ceases to be.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray
from equipoise._core.solution import ConvergenceError
from equipoise.theory.diffusion.edges import Bulk, Edges, bulk_nodes

_Imaginary = Callable[[FloatArray], FloatArray]
"""Im g at eigenvalues: 0 outside the bulks, and nan where it is not resolved, which is inside."""
Inside = Callable[[FloatArray], npt.NDArray[np.bool_]]

_SCAN = 60
_ZOOM = 6
_ROUNDS = 6  # each narrows a bracket by the factor _ZOOM − 1
_NODES = 32


def gap_edges(imaginary: _Imaginary, top: float, features_per_dim: float) -> Edges:
    """All below the gap as one bulk, of which only the upper edge is looked for, and all above it as another.

    The gap is the one above which lie N eigenvalues; classes with unequal coordinates may part these once more.
    """

    def inside(grid: FloatArray) -> npt.NDArray[np.bool_]:
        return np.asarray(imaginary(grid) != 0)  # nan is inside

    grid = np.geomspace(1e-4 * top, top, _SCAN)
    found = inside(grid)
    if not found.any() or found[-1]:
        raise ConvergenceError("the upper end of the spectrum was not found: the edges are not known")
    starts = np.flatnonzero(found[1:] & ~found[:-1])
    ends = np.flatnonzero(found[:-1] & ~found[1:])
    both = np.concatenate([starts, ends])
    edges = _refine(inside, grid[both], grid[both + 1], np.arange(len(both)) < len(starts)).tolist()
    lowers, upper = edges[: len(starts)], edges[len(starts) :]
    mass = 0.0
    for start, lower in zip(starts[::-1], lowers[::-1], strict=True):
        own = int(np.searchsorted(ends, start, side="right"))  # the bulk that begins here
        x, weights = bulk_nodes(lower, upper[own], _NODES)
        mass += float(weights @ np.nan_to_num(imaginary(x)) / np.pi)
        if own and abs(mass * features_per_dim - 1) < 1e-2:
            bulks = (Bulk(float("nan"), upper[own - 1], 1 - mass), Bulk(lower, upper[-1], mass))
            return Edges(bulks, None, 0.0, True)
    return Edges((Bulk(float("nan"), upper[-1], 1.0),), None, 0.0, False)


def _refine(inside: Inside, low: FloatArray, high: FloatArray, entering: npt.NDArray[np.bool_]) -> FloatArray:
    """The edges between pairs of points, of which the one is inside a bulk (``entering``: the higher one)."""
    rows = np.arange(len(low))
    for _ in range(_ROUNDS):
        grid = np.geomspace(low, high, _ZOOM, axis=1)
        within = inside(grid[:, 1:-1].ravel()).reshape(len(low), -1)
        found = np.column_stack([~entering, within, entering])
        at = (found != found[:, :1]).argmax(axis=1)
        low, high = grid[rows, at - 1], grid[rows, at]
    return np.asarray(np.sqrt(low * high))
