"""Safe, borderline, rare and outlying minority rows, by their five nearest neighbors."""

from __future__ import annotations

import numpy as np

from equipoise.diagnosis._contract import Answer, Sample

ORDER = 40
QUESTION = "Where do the rare rows lie: safe among their own, or among the others?"
MOST = 20_000
_TYPES = ("safe", "borderline", "rare", "outlier")


def neighbor_types(X: np.ndarray, mine: np.ndarray) -> np.ndarray:
    """Type of each row of the class ``mine``: 4–5 of 5 neighbors its own are safe, 2–3 borderline, 1
    rare, 0 outlier.

    References: Napierala & Stefanowski (2016), Types of minority class examples.
    """
    from sklearn.neighbors import NearestNeighbors

    near = NearestNeighbors(n_neighbors=6).fit(X).kneighbors(X[mine], return_distance=False)
    own = np.flatnonzero(mine)
    friends = np.array([
        mine[[n for n in row if n != i][:5]].sum() for i, row in zip(own, near, strict=True)
    ])  # fmt: skip
    return np.array([3, 2, 1, 1, 0, 0])[friends]


def ask(sample: Sample) -> Answer:
    """The share of each type among the rows of the rarest class."""
    rows = sample.rows(MOST, "types", least=500)
    mine = sample.y[rows] == sample.rare
    if mine.sum() < 6 or len(rows) < 12:
        raise ValueError("it needs at least 6 rows of the rarest class")
    kinds = neighbor_types(sample.encoded(rows), mine)
    shares = np.bincount(kinds, minlength=4) / len(kinds)
    level = "warning" if shares[2] + shares[3] > 0.5 else "good" if shares[0] > 0.6 else "note"
    return Answer(level, dict(zip(_TYPES, shares.tolist(), strict=True)))
