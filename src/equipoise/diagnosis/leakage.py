"""Leakage: a column that gives the target away, or rows that somebody resampled before."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from equipoise._core.checks import IntArray
from equipoise.datasets.schema import MISSING
from equipoise.diagnosis._contract import Answer, Sample
from equipoise.diagnosis.duplicates import row_hashes

ORDER = 60
QUESTION = "Does something give the target away?"
USUAL_SECONDS = 0.2  # asked first, whatever the budget: what it warns of spoils every figure
MOST = 50_000
_MOST_TESTED = 300
_GIVEN_AWAY = 0.995
_ONLY, _LEAST_ONLY = 0.95, 10  # such a share of at least so many filled (or empty) rows are rare ones


def _column_auc(values: np.ndarray, target: np.ndarray) -> float:
    """How well one column alone ranks the target, in either direction.

    >>> _column_auc(np.array([1.0, 2, 3, 4]), np.array([False, False, True, True]))
    1.0
    """
    ranks = rankdata(np.where(np.isfinite(values), values, np.nanmedian(values)))
    n_pos = int(target.sum())
    n_neg = len(target) - n_pos
    auc = (ranks[target].sum() - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg)
    return float(max(auc, 1 - auc))


def _category_purity(values: np.ndarray, target: np.ndarray) -> float:
    """The AUC of a category's rate of the target, for categories that repeat."""
    _, codes, sizes = np.unique(values.astype(str), return_inverse=True, return_counts=True)
    if sizes.mean() < 5:
        return 0.5
    rate = np.bincount(codes, weights=target) / sizes
    return _column_auc(rate[codes], target)


def interpolated_share(points: np.ndarray) -> float:
    """The share of rows that lie exactly on the segment between two others, as SMOTE leaves them."""
    from sklearn.neighbors import NearestNeighbors

    if len(points) < 12 or points.shape[1] < 3:
        return 0.0
    k = min(11, len(points))
    distance, near = NearestNeighbors(n_neighbors=k).fit(points).kneighbors(points[:_MOST_TESTED])
    between = 0
    for i in range(len(near)):
        friends, lengths = near[i], distance[i]
        use = (friends != i) & (lengths > 1e-9)
        ends, legs = points[friends[use]], lengths[use]
        if len(ends) < 2:
            continue
        spans = np.linalg.norm(ends[:, None] - ends[None], axis=2)
        detour = legs[:, None] + legs[None] - spans
        np.fill_diagonal(detour, np.inf)
        between += bool((detour < 1e-6 * np.maximum(spans, 1e-12)).any())
    return between / len(near)


def ask(sample: Sample) -> Answer:
    """How well each column alone ranks the rarest class, and whether its rows look resampled."""
    rows = sample.rows(MOST, "leakage", least=200)
    target = sample.y[rows] == sample.rare
    scores = np.array([_column_score(sample, i, rows, target) for i in range(len(sample.names))])
    order = np.argsort(-scores, kind="stable")
    mine = np.flatnonzero(sample.y == sample.rare)
    hashes = row_hashes(sample)
    rest = hashes[sample.y != sample.rare]
    copies = 1 - len(np.unique(hashes[mine])) / len(mine)
    others = 1 - len(np.unique(rest)) / max(len(rest), 1)
    between = interpolated_share(sample.encoded(mine[:2000]))
    values = {
        "best_column": sample.names[order[0]],
        "best_auc": float(scores[order[0]]),
        "given_away": [sample.names[i] for i in order if scores[i] >= _GIVEN_AWAY],
        "filled_for_rare": [
            name
            for i, name in enumerate(sample.names)
            if scores[i] < _GIVEN_AWAY and _tells_by_gaps(sample, i)
        ],
        "copied_share": copies,
        "copied": copies > 0.2 and copies > 3 * others + 0.05,
        "interpolated_share": between,
        "interpolated": between > 0.2,
    }
    found = values["given_away"] or values["filled_for_rare"] or values["copied"] or values["interpolated"]
    return Answer("warning" if found else "good", values)


def _column_score(sample: Sample, place: int, rows: IntArray, target: np.ndarray) -> float:
    """The AUC of one column alone, or of its being missing if that tells more."""
    cells = _cells(sample, place)[rows]
    if sample.table.kinds[place] not in ("number", "date"):
        return _category_purity(cells, target)
    numbers = cells.astype(np.float64)
    missing = np.isnan(numbers).astype(np.float64)
    return max(_column_auc(numbers, target), _column_auc(missing, target))


def _cells(sample: Sample, place: int) -> np.ndarray:
    framed = isinstance(sample.X, pd.DataFrame)
    return sample.X[sample.names[place]].to_numpy() if framed else sample.X[:, place]


def _tells_by_gaps(sample: Sample, place: int) -> bool:
    """Whether a column is filled, or empty, for hardly any rows but rare ones, as a case number of frauds is."""
    cells, rare = _cells(sample, place), sample.y == sample.rare
    filled = ~np.isnan(cells) if cells.dtype.kind == "f" else cells != MISSING
    sides = [side for side in (filled, ~filled) if side.sum() >= _LEAST_ONLY]
    return len(sides) == 2 and any(rare[side].mean() >= _ONLY for side in sides)
