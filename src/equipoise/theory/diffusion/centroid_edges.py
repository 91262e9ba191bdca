"""The edges of the spectrum for extensive centroids.

The lower part has no lower edge: neurons whose projected centroids are large are saturated, their floor ς is
arbitrarily small, and the density has a tail towards zero. So τ_mem⁽²⁾ is not defined, and nan.
"""

from __future__ import annotations

import numpy as np

from equipoise._core.checks import FloatArray
from equipoise._core.solution import Status
from equipoise.theory.diffusion.centroids import ExtensiveModel, solve
from equipoise.theory.diffusion.edges import Edges
from equipoise.theory.diffusion.gap import gap_edges
from equipoise.theory.diffusion.instances import Model

_REFINEMENT = 0.7  # of the rule over μ: near and above the gap the average over neurons is smooth


def extensive_edges(model: Model) -> Edges:
    """The bulk below the gap, of which only the upper edge is sharp, and the one above it."""
    system = ExtensiveModel(model, _REFINEMENT)
    nodes = system.nodes
    second = float(nodes.weights @ (nodes.stack("second_moment") @ system.b))
    top = 4 * second * ((1 + system.chi**0.5) ** 2 + (1 + system.ratio.max() ** 0.5) ** 2)

    def imaginary(grid: FloatArray) -> FloatArray:
        g, _, _, status = solve(system, grid)
        unresolved = (status == Status.STALLED) | (status == Status.MAX_STEPS)
        return np.where(g.imag > 1e-6 * np.abs(g), g.imag, np.where(unresolved, np.nan, 0.0))

    return gap_edges(imaginary, top, system.chi)
