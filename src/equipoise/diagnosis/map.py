"""A map: the rare rows among the others, in two dimensions."""

from __future__ import annotations

import numpy as np

from equipoise.diagnosis._contract import Answer, Sample

ORDER = 35
QUESTION = "What does it look like?"
MOST = 1500


def plane(X: np.ndarray, mine: np.ndarray) -> tuple[np.ndarray, float]:
    """Two coordinates: across the linear boundary, and the direction of most variance beside it."""
    from sklearn.linear_model import Ridge

    target = np.where(mine, 1 / mine.mean(), -1 / (1 - mine.mean()))
    normal = Ridge(alpha=0.1 * len(X)).fit(X, target).coef_
    length = np.linalg.norm(normal)
    normal = normal / length if length > 0 else np.eye(X.shape[1])[0]
    across = X @ normal
    rest = X - np.outer(across, normal)
    rest -= rest.mean(axis=0)
    along = rest @ np.linalg.svd(rest, full_matrices=False)[2][0] if X.shape[1] > 1 else np.zeros(len(X))
    share = (across.var() + along.var()) / max(X.var(axis=0).sum(), 1e-12)
    return np.column_stack([across, along]), float(share)


def ask(sample: Sample) -> Answer:
    """Rows laid out across the linear boundary of the rarest class and along the widest direction beside it."""
    rows = sample.rows(MOST, "map", least=min(150, MOST // (2 * len(sample.classes))))
    points, share = plane(sample.encoded(rows), sample.y[rows] == sample.rare)
    return Answer("note", {"variance_share": share}, {"rows": rows, "points": np.round(points, 3)})
