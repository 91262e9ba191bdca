"""Is the rare class the tail of one population, or a group of its own?"""

from __future__ import annotations

import numpy as np
from scipy import stats

from equipoise._core.checks import FloatArray
from equipoise.diagnosis._contract import Finding, Sample
from equipoise.report import COLORS, Figure, bar, new_figure, plain

ORDER = 30
USUAL_SECONDS = 2
QUESTION = "Is it anomaly-detection imbalance, or separate groups?"
MOST = 5000
TAIL = 0.55  # skewness half-way between a group's 0 and a far tail's; a normal's tail has about 0.9 to 2


def projection(X: FloatArray, mine: np.ndarray, seed: int) -> FloatArray:
    """Each row's position across the linear boundary, from a model that was not trained on it."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    model = LogisticRegression(C=0.05, class_weight="balanced", max_iter=300)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    position = cross_val_predict(model, X, mine, cv=folds, method="decision_function")
    return np.asarray(position / max(position.std(), 1e-12))


def ask(sample: Sample) -> Finding:
    """The rare class's outward skewness: a tail thins out from the boundary on, a group has its own middle."""
    rows = sample.rows(MOST, "population", least=500)
    X, y = sample.encoded(rows), sample.y[rows]
    mine = y == sample.rare
    if mine.sum() < 20:
        raise ValueError("it needs at least 20 rows of the rarest class")
    position = projection(X, mine, 0)
    inside, outside = position[mine], position[~mine]
    rng = sample.random("population")
    draws = [float(stats.skew(rng.choice(inside, len(inside)))) for _ in range(200)]
    skew = float(stats.skew(inside))
    low, high = (float(v) for v in np.quantile(draws, [0.025, 0.975]))
    whole = np.concatenate([inside, outside])
    gap = float((np.median(inside) - np.median(outside)) / max(stats.iqr(outside), 1e-12))
    if low > TAIL:
        kind, answer = (
            "tail",
            (
                "Anomaly-detection imbalance: the rare class thins out from the boundary on, like the "
                "tail of one population. "
                "Training on equal shares is then near the best, and the threshold matters more than new points."
            ),
        )
    elif high < TAIL:
        kind, answer = (
            "group",
            (
                "Separate groups: across the boundary the rare class has a middle of its own. Methods "
                "that model each class, "
                "or add points inside the group, can help."
            ),
        )
    else:
        kind, answer = (
            "undecided",
            "The rare class may be a tail or a group of its own: there are too few rows to tell.",
        )
    answer += (
        f" (Outward skewness {skew:.2f}, {low:.2f} to {high:.2f}; a group has 0, a normal tail 0.9 or more.)"
    )
    edges = np.histogram_bin_edges(whole, 40)
    traces = []
    for values, code, color in (
        (outside, None, COLORS["majority"]),
        (inside, sample.rare, COLORS["minority"]),
    ):
        density, _ = np.histogram(values, edges, density=True)
        name = plain(sample.classes[code], 24) if code is not None else "the others"
        traces.append(bar(x=(edges[:-1] + edges[1:]) / 2, y=density, name=name, marker_color=color, opacity=0.75,
                             hovertemplate=f"{name}: %{{y:.2f}}<extra></extra>"))  # fmt: skip
    figure = new_figure(*traces, x="position across the boundary (held-out)", y="density in its class",
                        barmode="overlay", bargap=0)  # fmt: skip
    values_out = {"kind": kind, "skewness": skew, "skewness_interval": (low, high), "gap": gap}
    caption = "Each class's rows across a linear boundary, each scaled to its own size."
    block = Figure(figure, caption, "Histograms of both classes across the boundary.", 280)
    return Finding("population", QUESTION, answer, "note", values_out, [block])
