"""Safe, borderline, rare and outlying minority rows, by their five nearest neighbors."""

from __future__ import annotations

import numpy as np

from equipoise.diagnosis._contract import Finding, Sample
from equipoise.report import COLORS, PALETTE, Figure, bar, new_figure

ORDER = 40
QUESTION = "Where do the rare rows lie: safe among their own, or among the others?"
MOST = 20_000
TYPES = ("safe", "borderline", "rare", "outlier")
SHADES = (COLORS["accent"], PALETTE[7], PALETTE[3], COLORS["minority"])


def neighbor_types(X: np.ndarray, mine: np.ndarray) -> np.ndarray:
    """Type of each row of the class ``mine``: 4–5 of 5 neighbors its own are safe, 2–3 borderline, 1
    rare, 0 outlier.

    References: Napierala & Stefanowski (2016), Types of minority class examples.
    """
    from sklearn.neighbors import NearestNeighbors

    near = NearestNeighbors(n_neighbors=6).fit(X).kneighbors(X[mine], return_distance=False)
    own = np.flatnonzero(mine)
    friends = np.array([
        mine[[n for n in row if n != i][:5]].sum() for i, row in zip(own, near, strict=True)
    ])  # fmt: skip
    return np.array([3, 2, 1, 1, 0, 0])[friends]


def ask(sample: Sample) -> Finding:
    rows = sample.rows(MOST, "types", least=500)
    X, y = sample.encoded(rows), sample.y[rows]
    mine = y == sample.rare
    if mine.sum() < 6 or len(rows) < 12:
        raise ValueError("it needs at least 6 rows of the rarest class")
    kinds = neighbor_types(X, mine)
    shares = np.bincount(kinds, minlength=4) / len(kinds)
    hard = shares[2] + shares[3]
    answer = (
        f"Of the {sample.label(sample.rare)} rows {shares[0]:.0%} are safe, {shares[1]:.0%} borderline, "
        f"{shares[2]:.0%} rare and {shares[3]:.0%} outliers by their five nearest neighbors. "
    )
    if hard > 0.5:
        answer += "Most are strewn among the others: interpolating between them would fill the wrong region."
    elif shares[0] > 0.6:
        answer += "They keep together: weights, a threshold or interpolation can all work."
    else:
        answer += "The boundary region decides: compare treatments there rather than overall."
    bars = [
        bar(x=[shares[i]], y=[""], name=TYPES[i], orientation="h", marker_color=SHADES[i],
               hovertemplate=f"{TYPES[i]}: %{{x:.1%}}<extra></extra>")
        for i in range(4)
    ]  # fmt: skip
    figure = new_figure(*bars, barmode="stack", x="share of the rare rows")
    figure.update_xaxes(tickformat=".0%", range=[0, 1])
    if len(rows) < len(sample.y):
        answer += f" (A sample of {len(rows):,} rows.)"
    values = dict(zip(TYPES, shares.tolist(), strict=True))
    level = "warning" if hard > 0.5 else "good" if shares[0] > 0.6 else "note"
    alt = ", ".join(f"{t} {s:.0%}" for t, s in zip(TYPES, shares, strict=True))
    return Finding("minority_types", QUESTION, answer, level, values, [Figure(figure, "", alt, 150)])
