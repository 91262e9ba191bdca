"""The decomposition that MC-RBO and MC-CCR share: each class against a fair sample of the larger ones."""

from __future__ import annotations

import numpy as np

from equipoise._core.checks import FloatArray, IntArray


def from_large_to_small(codes: IntArray, wanted: dict[int, int]) -> list[tuple[int, IntArray]]:
    """The classes to fill, the larger before the smaller, each with the classes that are larger than it."""
    order = np.argsort(-np.bincount(codes), kind="stable")
    return [(int(code), order[:place]) for place, code in enumerate(order) if place and int(code) in wanted]


def draw_opponents(codes: IntArray, larger: IntArray, total: int, rng: np.random.Generator) -> IntArray:
    """Rows drawn evenly from every larger class, ``total`` in all (Krawczyk et al. 2019; Koziarski et al. 2020).

    ``codes`` has the new rows of the larger classes too: what was made for one class opposes the next.
    """
    share = max(1, total // len(larger))
    rows = (np.flatnonzero(codes == other) for other in larger)
    return np.concatenate([rng.choice(own, size=min(share, len(own)), replace=False) for own in rows])


def unit_range(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Offset and width that bring each column to [0, 1]; a constant column keeps its width of 1."""
    low, high = X.min(axis=0), X.max(axis=0)
    return low, np.where(high > low, high - low, 1.0)
