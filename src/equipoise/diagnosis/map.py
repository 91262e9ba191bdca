"""A map: the rare rows among the others, in two dimensions."""

from __future__ import annotations

import numpy as np

from equipoise.diagnosis._contract import Finding, Sample
from equipoise.report import COLORS, PALETTE, Figure, new_figure, plain, scatter

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


def ask(sample: Sample) -> Finding:
    rows = sample.rows(MOST, "map", least=min(150, MOST // (2 * len(sample.classes))))
    X, y = sample.encoded(rows), sample.y[rows]
    points, share = plane(X, y == sample.rare)
    points = np.round(points, 3)
    order = np.argsort(-sample.counts, kind="stable")
    traces = []
    for rank, code in enumerate(order):
        rare = code == sample.rare
        color = (
            COLORS["minority"]
            if rare
            else COLORS["majority"]
            if len(order) == 2
            else PALETTE[rank % len(PALETTE)]
        )
        mine = y == code
        name = plain(sample.classes[code], 24)
        marker = {"color": color, "size": 8 if rare else 5, "opacity": 0.9 if rare else 0.45,
                  "symbol": "diamond" if rare else "circle"}  # fmt: skip
        hover = f"{name}, row %{{customdata}}<extra></extra>"
        across, along = points[mine].T
        style = {"mode": "markers", "name": name, "marker": marker, "hovertemplate": hover}
        traces.append(scatter(x=across, y=along, customdata=rows[mine], **style))
    figure = new_figure(*traces, x="across the boundary", y="along it")
    figure.update_xaxes(showticklabels=False)
    figure.update_yaxes(showticklabels=False)
    answer = (
        f"Rows laid out across the linear boundary of {sample.label(sample.rare)} and along the widest "
        f"direction beside "
        f"it; the plane holds {share:.0%} of the variance, so points that coincide here may still differ."
    )
    if len(rows) < len(sample.y):
        answer += f" {len(rows):,} of {len(sample.y):,} rows are shown, rare ones kept."
    block = Figure(figure, "A map of the rare class among the others.", "Scatter plot of all classes.", 420)
    return Finding("map", QUESTION, answer, "note", {"variance_share": share}, [block])
