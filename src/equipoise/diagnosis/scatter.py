"""Data scatter: how far each class spreads towards its neighbors."""

from __future__ import annotations

import numpy as np

from equipoise.diagnosis._contract import Answer, Sample
from equipoise.theory.effective_number import data_scatter

ORDER = 20
QUESTION = "How far does each class spread towards the others?"
MOST = 5000
_RIDGE = 0.1


def ask(sample: Sample) -> Answer:
    """Each class's deviation across its boundaries, and how far the nearest other mean is in such deviations."""
    rows = sample.rows(MOST, "scatter", least=200)
    X, y = sample.encoded(rows), sample.y[rows]
    present = [c for c in range(len(sample.classes)) if (y == c).sum() >= 3]
    if len(present) < 2:
        raise ValueError("each class needs at least 3 rows")
    X = X[:, X.std(axis=0) > 0]
    means = np.array([X[y == c].mean(axis=0) for c in present])
    covariances = [np.cov(X[y == c].T).reshape(X.shape[1], -1) for c in present]
    pooled = sum((y == c).sum() * s for c, s in zip(present, covariances, strict=True)) / len(y)
    inverse = np.linalg.inv(pooled + _RIDGE * np.eye(X.shape[1]))
    spreads, gaps = [], []
    for i in range(len(present)):
        across, apart = [], []
        for j in range(len(present)):
            if i != j:
                direction = inverse @ (means[i] - means[j])  # the normal of the boundary between the two
                if np.linalg.norm(direction) > 0:
                    across.append(data_scatter(direction, covariances[i]))
                    apart.append(abs(direction @ (means[i] - means[j])) / np.linalg.norm(direction))
        spreads.append(float(np.sqrt(np.mean(across))))
        gaps.append(float(np.min(apart)))
    separation = [gap / spread if spread > 0 else np.inf for gap, spread in zip(gaps, spreads, strict=True)]
    rare = present.index(sample.rare) if sample.rare in present else int(np.argmin(separation))
    factor = float(spreads[rare] / np.mean(np.delete(spreads, rare)))
    shown = {"classes": present, "asked": rare, "spreads": spreads, "gaps": gaps}
    return Answer("note", {"factor": factor, "separation": separation}, shown)
