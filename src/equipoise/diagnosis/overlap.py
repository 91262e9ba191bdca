"""Overlap of the classes, each counted the same however rare it is."""

from __future__ import annotations

import numpy as np

from equipoise.diagnosis._contract import Answer, Sample

ORDER = 41
USUAL_SECONDS = 3
QUESTION = "Do the classes overlap?"
MOST = 20_000


def ask(sample: Sample) -> Answer:
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
    level = "good" if overlap < 0.05 else "note" if overlap < 0.25 else "warning"
    return Answer(level, {"overlap": overlap, "by_class": wrong})
