"""Pictures of the operating point."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise._core.checks import FloatArray, IntArray
from equipoise.advisor.compare.decisions import binary_losses, decide, threshold_weights
from equipoise.metrics import cost_curve, probability_cost, reliability_curve, threshold_curve
from equipoise.report import COLORS, SHADES, Figure, heatmap, new_figure, plain, scatter

MOST_POINTS = 400


def _thin(*arrays: FloatArray) -> list[FloatArray]:
    """At most a few hundred points of a curve: more would only weigh the page down."""
    keep = np.unique(np.linspace(0, len(arrays[0]) - 1, MOST_POINTS).astype(int))
    return [np.round(a[keep], 5) for a in arrays]


def _line(x: Any, y: Any, name: str, hover: str, **options: Any) -> Any:
    line = {"color": COLORS["accent"], "width": 2.5, **options.pop("line", {})}
    return scatter(
        x=x, y=y, name=name, mode="lines", line=line, hovertemplate=hover + "<extra></extra>", **options
    )


def _point(x: float, y: float, name: str, hover: str) -> Any:
    marker = {"color": COLORS["minority"], "size": 12, "line": {"color": "white", "width": 1.5}}
    return scatter(
        x=[x], y=[y], name=name, mode="markers", marker=marker, hovertemplate=hover + "<extra></extra>"
    )


def curves(proba: FloatArray, truth: IntArray, threshold: float) -> list[Figure]:
    """Precision–recall and ROC with the chosen point on them."""
    curve = threshold_curve(truth, proba[:, 1], pos_label=1)
    cuts = np.where(np.isfinite(curve.thresholds), curve.thresholds, 1.0)
    called = decide(proba, threshold_weights(threshold)) == 1
    recall = float(called[truth == 1].mean())
    alarm = float(called[truth == 0].mean())
    precision = float(truth[called].mean()) if called.any() else 1.0
    x, y, t = _thin(curve.recall[1:], curve.precision[1:], cuts[1:])
    hover = "recall %{x:.3f}<br>precision %{y:.3f}<br>threshold %{customdata:.3f}"
    pr = new_figure(
        _line(x, y, "precision at recall", hover, customdata=t),
        _line([0, 1], [truth.mean()] * 2, "by chance", "share of positives %{y:.3f}",
              line={"color": COLORS["muted"], "dash": "dot", "width": 1.5}),
        _point(recall, precision, "chosen", f"chosen: recall {recall:.3f}<br>precision {precision:.3f}"),
        x="recall", y="precision", xaxis_range=[-0.02, 1.02], yaxis_range=[-0.02, 1.04],
    )  # fmt: skip
    x, y, t = _thin(1 - curve.specificity, curve.recall, cuts)
    hover = "false alarms %{x:.3f}<br>recall %{y:.3f}<br>threshold %{customdata:.3f}"
    roc = new_figure(
        _line(x, y, "recall at false alarms", hover, customdata=t),
        _line([0, 1], [0, 1], "by chance", "", line={"color": COLORS["muted"], "dash": "dot", "width": 1.5}),
        _point(alarm, recall, "chosen", f"chosen: false alarms {alarm:.3f}<br>recall {recall:.3f}"),
        x="share of negatives called positive", y="recall", xaxis_range=[-0.02, 1.02], yaxis_range=[-0.02, 1.04],
    )  # fmt: skip
    return [
        Figure(pr, "Precision and recall at every threshold, on rows that were not trained on.",
               f"Precision-recall curve; chosen: recall {recall:.2f}, precision {precision:.2f}.", 340),
        Figure(roc, "Recall against false alarms at every threshold.",
               f"ROC curve; chosen: false alarm rate {alarm:.2f}, recall {recall:.2f}.", 340),
    ]  # fmt: skip


def cost_figures(
    proba: FloatArray, truth: IntArray, threshold: float, cost: tuple[float, float] | None
) -> list[Figure]:
    """The loss at every threshold, and the cost curve over all mixes of priors and costs."""
    cuts, losses = binary_losses(proba[:, 1], truth, cost)
    at = float(np.interp(threshold, cuts, losses))
    x, y = _thin(cuts, losses)
    what = "cost a row" if cost else "1 − balanced accuracy"
    loss = new_figure(
        _line(x, y, what, "threshold %{x:.3f}<br>" + what + " %{y:.3f}"),
        _point(threshold, at, "chosen", f"chosen: threshold {threshold:.3f}<br>{what} {at:.3f}"),
        x="threshold on the positive class's probability", y=what,
        xaxis={"type": "log", "exponentformat": "power", "dtick": 1},
    )  # fmt: skip
    curve = cost_curve(truth, proba[:, 1], pos_label=1)
    here = float(
        probability_cost(truth.mean(), *(cost[::-1] if cost else (1 / truth.mean(), 1 / (1 - truth.mean()))))
    )
    best = float(np.interp(here, curve.probability_cost, curve.cost))
    mixes = new_figure(
        _line(curve.probability_cost, curve.cost, "this model", "weight of misses %{x:.2f}<br>least cost %{y:.3f}"),
        _line(curve.probability_cost, curve.trivial, "always or never", "the better constant answer %{y:.3f}",
              line={"color": COLORS["muted"], "dash": "dot", "width": 1.5}),
        _point(here, best, "your costs", f"weight of misses {here:.2f}<br>least cost {best:.3f}"),
        x="weight of misses against false alarms (prior × cost)", y="normalized cost",
    )  # fmt: skip
    return [
        Figure(loss, "A flat valley means that the exact threshold matters little.",
               f"{what} against threshold; the chosen threshold is {threshold:.3f}.", 340),
        Figure(mixes, "What the model saves over a constant answer if priors or costs were others.",
               "Cost curve over all mixes of priors and costs.", 340),
    ]  # fmt: skip


def reliability_figure(proba: FloatArray, truth: IntArray) -> Figure:
    """Do events called 30 % probable happen in 30 % of the cases?"""
    curve = reliability_curve(
        truth, proba, n_bins=10, strategy="quantile", labels=list(range(proba.shape[1]))
    )
    seen = np.isfinite(curve.confidence) & (curve.weight > 0)
    x, y, share = curve.confidence[seen], curve.frequency[seen], curve.weight[seen]
    n = share / share.sum() * len(truth)
    error = np.sqrt(np.maximum(y * (1 - y), 1 / (n + 2)) / n)
    top = float(min(1.0, 1.1 * max(x.max(), y.max(), 0.05)))
    points = scatter(
        x=x, y=y, mode="markers+lines", name="observed", line={"color": COLORS["accent"], "width": 1.5},
        marker={"color": COLORS["accent"], "size": 9}, customdata=np.round(n),
        error_y={"type": "data", "array": error, "color": COLORS["accent"], "thickness": 1.2, "width": 3},
        hovertemplate="said %{x:.3f}<br>happened %{y:.3f}<br>%{customdata} rows<extra></extra>",
    )  # fmt: skip
    figure = new_figure(
        _line([0, top], [0, top], "perfect", "", line={"color": COLORS["muted"], "dash": "dot", "width": 1.5}),
        points, x="probability said", y="share that happened",
    )  # fmt: skip
    caption = "Ten bins of equally many rows; probabilities are at the data's own class shares."
    return Figure(figure, caption, "Reliability diagram: said against observed probability.", 340)


def confusion_figure(confusion: IntArray, classes: tuple[Any, ...]) -> Figure:
    """Where the rows of each class go."""
    labels = [plain(label, 24) for label in classes]
    shares = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    heat = heatmap(
        z=shares, x=labels, y=labels, customdata=confusion, colorscale=SHADES,
        zmin=0, zmax=1, showscale=False, xgap=2, ygap=2, text=confusion,
        texttemplate="%{text}" if len(labels) <= 15 else None,
        hovertemplate="true %{y}<br>called %{x}<br>%{customdata} rows, %{z:.1%}<extra></extra>",
    )  # fmt: skip
    figure = new_figure(heat, x="called", y="true", yaxis_autorange="reversed", margin_t=16)
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(type="category", showgrid=False)
    caption = "Rows by true class; the shade is the share of the row's class."
    return Figure(figure, caption, "Confusion matrix.", max(260, min(640, 120 + 44 * len(labels))))
