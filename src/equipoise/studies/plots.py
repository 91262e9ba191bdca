"""Still figures of a study: ranks, time against quality, learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.metrics.significance import Comparison
from equipoise.report import PALETTE, Picture, literal, new_axes, plot_critical_difference
from equipoise.studies.scores import Layout, Scores, direction

_MOST_PANELS = 6
_MARKERS = "osD^v"
_MOST_BANDS = 4  # more than so many hide each other
_LINES = ("-", "--", ":")


def ranks_picture(comparison: Comparison, name: str, metric: str) -> Picture:
    """A critical-difference diagram."""
    figure = plot_critical_difference(comparison, title=metric)
    caption = "Mean ranks (1 is best). A bar joins methods whose ranks do not differ."
    alt = ", ".join(f"{method} {rank:.2f}" for method, rank in comparison.ranks.sort_values().items())
    return Picture.from_matplotlib(figure, name, caption, f"Mean ranks: {alt}")


def time_quality_picture(frame: pd.DataFrame, layout: Layout, scores: Scores, name: str) -> Picture:
    """The mean score of each method against the mean time of its cells."""
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, ax = new_axes(7.5, 3.6)
    seconds = frame["cell_seconds"].groupby(layout.method, sort=False).mean()
    quality = scores.complete.mean() if len(scores.complete) else scores.mean.mean()
    for i, method in enumerate(quality.index):
        look = {"color": PALETTE[i % len(PALETTE)], "marker": _MARKERS[i // len(PALETTE) % len(_MARKERS)]}
        ax.scatter(seconds[method], quality[method], s=46, zorder=3, label=literal(method), **look)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("seconds a cell, tuning included")
    figure.legend(loc="outside right center", fontsize=8, frameon=False)
    arrow = {1: " (higher is better)", -1: " (lower is better)", 0: ""}[direction(scores.metric)]
    ax.set_ylabel(literal(scores.metric) + arrow)
    return Picture.from_matplotlib(
        figure, name, "Time against quality, means over all cells.", "Scatter plot"
    )


def curves_picture(frame: pd.DataFrame, layout: Layout, curve: str, name: str) -> Picture:
    """A curve of each method, mean over repeats with its standard deviation, one panel a block."""
    blocks = list(dict.fromkeys(layout.block))[:_MOST_PANELS]
    methods = list(dict.fromkeys(layout.method))
    columns = min(3, len(blocks))
    rows = -(-len(blocks) // columns)
    width = 3.0 if columns > 1 else 4.2
    figure, axes = new_axes(width * columns + 2.6, 2.6 * rows + 0.3, rows, columns, len(blocks))
    axes = np.atleast_1d(axes)
    for ax, block in zip(axes, blocks, strict=False):
        ax.set_title(literal(block), fontsize=9)
        for i, method in enumerate(methods):
            values = frame.loc[(layout.block == block) & (layout.method == method), curve]
            turn, color = divmod(i, len(PALETTE))
            look = {"color": PALETTE[color], "linestyle": _LINES[turn % len(_LINES)]}
            _draw_curve(ax, values, literal(method), look, band=len(methods) <= _MOST_BANDS)
        ax.set_xlabel("step")
    axes[0].set_ylabel(literal(curve))
    lines = {line.get_label(): line for ax in axes for line in ax.get_lines()}
    figure.legend(lines.values(), lines, loc="outside right center", fontsize=8, frameon=False)
    left = len(dict.fromkeys(layout.block)) - len(blocks)
    spread = " and standard deviation" if len(methods) <= _MOST_BANDS else ""
    caption = f"{curve} by step, mean{spread} over repeats."
    return Picture.from_matplotlib(
        figure, name, caption + (f" {left} more blocks are in the store." if left else ""), "Line plots"
    )


def _draw_curve(ax: Any, values: Sequence[Any], label: str, look: dict[str, Any], band: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    lists = [value for value in values if isinstance(value, list) and value]
    if not lists:
        return
    length = min(map(len, lists))
    table = np.array([value[:length] for value in lists], dtype=float)
    steps = np.arange(1, length + 1)
    mean, spread = table.mean(axis=0), table.std(axis=0)
    ax.plot(steps, mean, lw=1.4, label=label, marker="." if length < 12 else None, **look)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if band and len(table) > 1:
        ax.fill_between(steps, mean - spread, mean + spread, color=look["color"], alpha=0.15, lw=0)
