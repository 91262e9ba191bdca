"""A comparison as a section of the report."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.advisor.compare.result import Comparison
from equipoise.advisor.compare.scores import METRICS
from equipoise.report import COLORS, Figure, Interval, Note, Section, Table, Text, new_figure, plain, scatter


def comparison_section(result: Comparison, recommended: str | None = None) -> Section:
    """The plot that matters and the table of all treatments."""
    names = list(result.treatments)
    n_folds = len(result.folds)
    text = (
        f"{len(names)} treatments on the same {n_folds} test folds. Settings and thresholds were tuned on "
        "inner folds of the training rows, over equally many settings for every treatment; resampling "
        "touched training rows only; probabilities "
        "were corrected to the data's class shares. The small figures are "
        "95 % intervals that allow for folds sharing their training rows."
    )
    blocks: list[Any] = [Text(text), score_figure(result, names, recommended)]
    blocks.append(_table(result, names, recommended))
    if result.notes:
        blocks.append(Note(" ".join(result.notes)))
    return Section("Treatments", blocks)


def _table(result: Comparison, names: list[str], recommended: str | None) -> Table:
    metrics = [(name, label) for name, label, _ in METRICS if name in result.scores]
    rows = []
    for name in names:
        of_name = result.summary[result.summary.treatment == name].set_index("metric")
        cells = [_interval(of_name.loc[metric]) for metric, _ in metrics]
        rows.append([result.treatments[name].label, *cells])
    emphasis = [names.index(recommended)] if recommended in names else []
    labels = [label for _, label in metrics]
    return Table(["Treatment", *labels], rows, formats=dict.fromkeys(labels, ".3f"), emphasis=emphasis)


def _interval(row: Any) -> Interval:
    low, high = max(float(row["low"]), 0.0), float(row["high"])
    return Interval(float(row["mean"]), low, min(high, 1.0) if row.name != "cost" else high)


def score_figure(result: Comparison, names: list[str], recommended: str | None = None) -> Figure:
    """Balanced accuracy and average precision of every treatment, with intervals."""
    labels = [plain(name.replace("_", " ")) for name in reversed(names)]
    full = [plain(result.treatments[name].label) for name in reversed(names)]
    traces = []
    places = np.arange(len(names))
    for metric, color, symbol, shift in (
        ("balanced_accuracy", COLORS["accent"], "circle", 0.13),
        ("average_precision", COLORS["minority"], "diamond", -0.13),
    ):
        label = next(text for name, text, _ in METRICS if name == metric)
        rows = (
            result.summary[result.summary.metric == metric].set_index("treatment").loc[list(reversed(names))]
        )
        traces.append(
            scatter(
                x=rows["mean"], y=places + shift, mode="markers", name=label,
                marker={"color": color, "size": 10, "symbol": symbol},
                error_x={
                    "type": "data", "symmetric": False, "color": color, "thickness": 1.4, "width": 3,
                    "array": rows["high"].clip(upper=1) - rows["mean"],
                    "arrayminus": rows["mean"] - rows["low"].clip(lower=0),
                },
                customdata=full,
                hovertemplate="%{customdata}<br>" + label + " %{x:.3f}<extra></extra>",
            )
        )  # fmt: skip
    figure = new_figure(*traces, x="mean and 95 % interval")
    figure.update_yaxes(tickvals=places, ticktext=labels, range=[-0.6, len(names) - 0.4], showgrid=False)
    return Figure(
        figure,
        caption="Balanced accuracy judges the decisions, average precision the ranking behind them.",
        alt="Dot plot of balanced accuracy and average precision for every treatment.",
        height=90 + 38 * len(names),
    )
