"""Data scatter: how far each class spreads towards its neighbors."""

from __future__ import annotations

import numpy as np

from equipoise.diagnosis._contract import Finding, Sample
from equipoise.report import Details, Table
from equipoise.theory.effective_number import data_scatter

ORDER = 20
QUESTION = "How far does each class spread towards the others?"
MOST = 5000
RIDGE = 0.1


def ask(sample: Sample) -> Finding:
    rows = sample.rows(MOST, "scatter", least=200)
    X, y = sample.encoded(rows), sample.y[rows]
    present = [c for c in range(len(sample.classes)) if (y == c).sum() >= 3]
    if len(present) < 2:
        raise ValueError("each class needs at least 3 rows")
    X = X[:, X.std(axis=0) > 0]
    means = np.array([X[y == c].mean(axis=0) for c in present])
    covariances = [np.cov(X[y == c].T).reshape(X.shape[1], -1) for c in present]
    pooled = sum((y == c).sum() * s for c, s in zip(present, covariances, strict=True)) / len(y)
    inverse = np.linalg.inv(pooled + RIDGE * np.eye(X.shape[1]))
    table, scatter = [], []
    for i, code in enumerate(present):
        across, gaps = [], []
        for j in range(len(present)):
            if i != j:
                direction = inverse @ (
                    means[i] - means[j]
                )  # the normal of the linear boundary between the two
                if np.linalg.norm(direction) > 0:
                    across.append(data_scatter(direction, covariances[i]))
                    gaps.append(abs(direction @ (means[i] - means[j])) / np.linalg.norm(direction))
        spread, gap = np.sqrt(np.mean(across)), float(np.min(gaps))
        scatter.append(gap / spread if spread > 0 else np.inf)
        table.append([str(sample.classes[code]), spread, gap, scatter[-1]])
    rare = present.index(sample.rare) if sample.rare in present else int(np.argmin(scatter))
    others = [row[1] for i, row in enumerate(table) if i != rare]
    factor = table[rare][1] / np.mean(others)
    words = "farther than" if factor > 1.25 else "less far than" if factor < 0.8 else "about as far as"
    answer = (
        f"Across the boundary {sample.label(present[rare])} spreads {words} the others ({factor:.2f} times); "
        f"the nearest other class's mean lies {scatter[rare]:.1f} of its own deviations away."
    )
    columns = ["class", "deviation across the boundary", "distance to the nearest mean", "distance/deviation"]
    block = Details("Data scatter", [Table(columns, table, formats=dict.fromkeys(columns[1:], ".2f"))])
    return Finding("scatter", QUESTION, answer, "note", {"factor": factor, "separation": scatter}, [block])
