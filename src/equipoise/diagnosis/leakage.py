"""Leakage: a column that gives the target away, or rows that somebody resampled before."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from equipoise.diagnosis._contract import Finding, Sample
from equipoise.diagnosis.duplicates import row_hashes

ORDER = 60
QUESTION = "Does something give the target away?"
MOST = 50_000
MOST_TESTED = 300
GIVEN_AWAY = 0.995


def column_auc(values: np.ndarray, target: np.ndarray) -> float:
    """How well one column alone ranks the target, in either direction.

    >>> column_auc(np.array([1.0, 2, 3, 4]), np.array([False, False, True, True]))
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
    return column_auc(rate[codes], target)


def interpolated_share(points: np.ndarray) -> float:
    """The share of rows that lie exactly on the segment between two others, as SMOTE leaves them."""
    from sklearn.neighbors import NearestNeighbors

    if len(points) < 12 or points.shape[1] < 3:
        return 0.0
    k = min(11, len(points))
    distance, near = NearestNeighbors(n_neighbors=k).fit(points).kneighbors(points[:MOST_TESTED])
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


def ask(sample: Sample) -> Finding:
    rows = sample.rows(MOST, "leakage", least=200)
    target = sample.y[rows] == sample.rare
    scores = []
    for i, name in enumerate(sample.names):
        if isinstance(sample.X, pd.DataFrame):
            cells = sample.X[name].to_numpy()[rows]
            number = sample.table.kinds[i] in ("number", "date")
        else:
            cells, number = sample.X[rows, i], True
        if number:
            numbers = cells.astype(np.float64)
            missing = np.isnan(numbers).astype(np.float64)
            scores.append(max(column_auc(numbers, target), column_auc(missing, target)))
        else:
            scores.append(_category_purity(cells, target))
    order = np.argsort(scores)[::-1]
    given = [sample.names[i] for i in order if scores[i] >= GIVEN_AWAY]
    mine = np.flatnonzero(sample.y == sample.rare)
    hashes = row_hashes(sample)
    rest = hashes[sample.y != sample.rare]
    copies = 1 - len(np.unique(hashes[mine])) / len(mine)
    others = 1 - len(np.unique(rest)) / max(len(rest), 1)
    between = interpolated_share(sample.encoded(mine[:2000]))
    best = sample.names[order[0]]
    values = {
        "best_column": best, "best_auc": scores[order[0]], "given_away": given, "copied_share": copies,
        "interpolated_share": between,
    }  # fmt: skip
    found = []
    if given:
        shown = ", ".join(f"“{name}”" for name in given[:5])
        found.append(
            f"{shown} alone tells the classes apart almost perfectly: was it known before the outcome?"
        )
    if copies > 0.2 and copies > 3 * others + 0.05:
        found.append(
            f"{copies:.0%} of the rare rows are copies of each other, as after random over-sampling."
        )
    if between > 0.2:
        found.append(
            f"{between:.0%} of the rare rows lie exactly between two others, as SMOTE leaves them: "
            "go back to the data before resampling."
        )
    if found:
        return Finding("leakage", QUESTION, " ".join(found), "warning", values)
    answer = (
        f"No column alone gives the target away (the best, “{best}”, ranks it with an AUC of "
        f"{scores[order[0]]:.2f}), "
        "and the rare rows do not look resampled."
    )
    return Finding("leakage", QUESTION, answer, "good", values)
