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
_ZOOM = 12
_ROUNDS = 4  # each narrows a bracket by the factor _ZOOM
_NODES = 60


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
    upper = [_refine(inside, grid[end], grid[end + 1], entering=False) for end in ends]
    mass = 0.0
    for start in starts[::-1]:
        lower = _refine(inside, grid[start], grid[start + 1], entering=True)
        own = int(np.searchsorted(ends, start, side="right"))  # the bulk that begins here
        x, weights = bulk_nodes(lower, upper[own], _NODES)
        mass += float(weights @ np.nan_to_num(imaginary(x)) / np.pi)
        if own and abs(mass * features_per_dim - 1) < 1e-2:
            bulks = (Bulk(float("nan"), upper[own - 1], 1 - mass), Bulk(lower, upper[-1], mass))
            return Edges(bulks, None, 0.0, True)
    return Edges((Bulk(float("nan"), upper[-1], 1.0),), None, 0.0, False)


def _refine(inside: Inside, low: float, high: float, *, entering: bool) -> float:
    """The edge between two points, one inside a bulk and one outside."""
    for _ in range(_ROUNDS):
        grid = np.geomspace(low, high, _ZOOM)
        found = inside(grid)
        found[0], found[-1] = not entering, entering
        at = int(np.flatnonzero(found != found[0])[0])
        low, high = float(grid[at - 1]), float(grid[at])
    return float(np.sqrt(low * high))
