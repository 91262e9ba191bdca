"""The decomposition that MC-RBO and MC-CCR share: each class against a fair sample of the larger ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from equipoise._core.checks import FloatArray, IntArray


def against_larger_classes(
    codes: IntArray, wanted: dict[int, int], rng: np.random.Generator
) -> Iterator[tuple[int, IntArray, IntArray]]:
    """Yield (class, its rows, opposing rows) from the second-largest class to the smallest.

    The opponents are drawn evenly from every larger class, as many in all as the largest class has rows
    (Krawczyk, Koziarski & Woźniak 2019, Algorithm 2; Koziarski, Woźniak & Krawczyk 2020, Algorithm 2).
    """
    counts = np.bincount(codes)
    order = np.argsort(-counts, kind="stable")
    for place, code in enumerate(order):
        if int(code) not in wanted or place == 0:
            continue
        larger = order[:place]
        share = max(1, round(int(counts[order[0]]) / len(larger)))
        opponents = [
            rng.choice(rows, size=min(share, len(rows)), replace=False)
            for rows in (np.flatnonzero(codes == other) for other in larger)
        ]
        yield int(code), np.flatnonzero(codes == code), np.concatenate(opponents)


def unit_range(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Offset and width that bring each column to [0, 1]; a constant column keeps its width of 1."""
    low, high = X.min(axis=0), X.max(axis=0)
    return low, np.where(high > low, high - low, 1.0)
