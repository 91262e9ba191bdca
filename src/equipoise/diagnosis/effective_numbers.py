"""Effective numbers: what one more row of a class is worth."""

from __future__ import annotations

import numpy as np

from equipoise._core.checks import FloatArray
from equipoise.diagnosis._contract import Finding, Sample
from equipoise.report import Details, Table
from equipoise.theory.effective_number import effective_number

ORDER = 10
QUESTION = "How many rows does each class have in effect?"
MOST = 3000
NEAR = 0.1


def distinct_rows(X: FloatArray, rng: np.random.Generator) -> int:
    """How many rows are left when near-copies (nearer than a tenth of the usual distance) count as one."""
    from scipy.sparse.csgraph import connected_components
    from sklearn.neighbors import radius_neighbors_graph

    usual = float(np.median(np.linalg.norm(X[rng.permutation(len(X))] - X, axis=1)))
    if len(X) < 3:
        return len(X)
    if usual == 0:
        return 1
    return int(connected_components(radius_neighbors_graph(X, NEAR * usual), directed=False)[0])


def ask(sample: Sample) -> Finding:
    rng = sample.random("effective")
    rows = sample.rows(MOST, "effective", least=300)
    X, y = sample.encoded(rows), sample.y[rows]
    table = []
    for code, count in enumerate(sample.counts):
        mine = X[y == code]
        distinct = distinct_rows(mine, rng)
        volume = covering_volume(len(mine), distinct)
        effective = float(effective_number(int(count), 1 - 1 / volume)) if volume > 1 else 1.0
        table.append([str(sample.classes[code]), int(count), distinct / len(mine), effective])
    by_class = np.array([row[3] for row in table])
    ratio = by_class.max() / by_class.min()
    nominal = sample.counts.max() / sample.counts.min()
    answer = (
        f"Counting near-copies once, the imbalance is {ratio:.1f} to 1 instead of {nominal:.1f} to 1: "
        + ("the large class repeats itself, so weights by counts would overshoot."
           if ratio < 0.8 * nominal else "rows hardly repeat, so counts may be taken at face value."
           if ratio < 1.25 * nominal else "the small class repeats itself, so it is rarer than its count says.")
    )  # fmt: skip
    columns = ["class", "rows", "distinct share", "effective number"]
    block = Details(
        "Effective numbers",
        [Table(columns, table, formats={columns[2]: ".1%", columns[3]: ".0f"},
               caption="Random covering (Cui et al. 2019): E = (1 − βⁿ)/(1 − β), β set by the near-copies found.")],
    )  # fmt: skip
    values = {"effective": by_class, "ratio": ratio}
    return Finding("effective_numbers", QUESTION, answer, "note", values, [block])


def covering_volume(draws: int, distinct: int) -> float:
    """The volume V in which so many draws leave so many distinct, (1 − (1 − 1/V)ⁿ)·V = distinct, by bisection."""
    low, high = 0.0, np.log(1e9)
    for _ in range(60):
        middle = (low + high) / 2
        volume = np.exp(middle)
        covered = float(effective_number(draws, 1 - 1 / volume)) if volume > 1 else 1.0
        low, high = (middle, high) if covered < distinct else (low, middle)
    return float(np.exp((low + high) / 2))
