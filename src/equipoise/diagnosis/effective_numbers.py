"""Effective numbers: what one more row of a class is worth."""

from __future__ import annotations

import numpy as np

from equipoise._core.checks import FloatArray
from equipoise.diagnosis._contract import Answer, Sample
from equipoise.theory.effective_number import effective_number

ORDER = 10
QUESTION = "Do the rows of a class repeat each other?"
MOST = 3000
_NEAR = 0.1


def _distinct_rows(X: FloatArray, rng: np.random.Generator) -> int:
    """How many rows are left when near-copies (nearer than a tenth of the usual distance) count as one."""
    from scipy.sparse.csgraph import connected_components
    from sklearn.neighbors import radius_neighbors_graph

    usual = float(np.median(np.linalg.norm(X[rng.permutation(len(X))] - X, axis=1)))
    if len(X) < 3:
        return len(X)
    if usual == 0:
        return 1
    return int(connected_components(radius_neighbors_graph(X, _NEAR * usual), directed=False)[0])


def ask(sample: Sample) -> Answer:
    """Each class's effective number, with the share of its rows that are distinct."""
    rng = sample.random("effective")
    rows = sample.rows(MOST, "effective", least=300)
    X, y = sample.encoded(rows), sample.y[rows]
    distinct, effective = [], []
    for code, count in enumerate(sample.counts):
        mine = X[y == code]
        different = _distinct_rows(mine, rng)
        volume = _covering_volume(len(mine), different)
        distinct.append(different / len(mine))
        effective.append(float(effective_number(int(count), 1 - 1 / volume)) if volume > 1 else 1.0)
    values = {"effective": np.array(effective), "ratio": max(effective) / min(effective)}
    return Answer("note", values, {"distinct": distinct})


def _covering_volume(draws: int, distinct: int) -> float:
    """The volume V in which so many draws leave so many distinct, (1 − (1 − 1/V)ⁿ)·V = distinct, by bisection."""
    low, high = 0.0, np.log(1e9)
    for _ in range(60):
        middle = (low + high) / 2
        volume = np.exp(middle)
        covered = float(effective_number(draws, 1 - 1 / volume)) if volume > 1 else 1.0
        low, high = (middle, high) if covered < distinct else (low, middle)
    return float(np.exp((low + high) / 2))
