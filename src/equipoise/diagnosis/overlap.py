"""Overlap of the classes, judged with equal regard for each."""

from __future__ import annotations

import numpy as np

from equipoise.diagnosis._contract import Finding, Sample

ORDER = 41
USUAL_SECONDS = 3
QUESTION = "Do the classes overlap?"
MOST = 20_000


def ask(sample: Sample) -> Finding:
    """The share of rows whose neighborhood, with classes weighted to equal size, belongs to another class."""
    from sklearn.neighbors import NearestNeighbors

    rows = sample.rows(MOST, "overlap", least=500)
    X, y = sample.encoded(rows), sample.y[rows]
    k = min(10, len(rows) - 1)
    near = NearestNeighbors(n_neighbors=k + 1).fit(X).kneighbors(X, return_distance=False)
    # A row's own index is dropped wherever it stands: duplicates may push it from the first place.
    near = np.array([row[row != i][:k] for i, row in enumerate(near)])
    n_classes = len(sample.classes)
    votes = np.zeros((len(y), n_classes))
    for code in range(n_classes):
        votes[:, code] = (y[near] == code).sum(axis=1) / max((y == code).sum(), 1)
    called = votes.argmax(axis=1)
    wrong = np.array([np.mean(called[y == c] != c) if (y == c).any() else np.nan for c in range(n_classes)])
    overlap = float(np.nanmean(wrong))
    worst = int(np.nanargmax(wrong))
    answer = (
        f"With all classes weighted alike, {overlap:.0%} of the rows lie in a neighborhood of another class; "
        f"most of {sample.label(worst)}, {wrong[worst]:.0%}. "
    )
    if overlap < 0.05:
        answer += "The classes are all but separate: imbalance is hardly a problem here."
    elif overlap < 0.25:
        answer += "There is room for a good boundary, and where it lies is a matter of costs."
    else:
        answer += "No rebalancing separates what overlaps: better columns will help more than any treatment."
    if len(rows) < len(sample.y):
        answer += f" (A sample of {len(rows):,} rows.)"
    level = "good" if overlap < 0.05 else "note" if overlap < 0.25 else "warning"
    return Finding("overlap", QUESTION, answer, level, {"overlap": overlap, "by_class": wrong})
