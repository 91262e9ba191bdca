"""Critical-difference diagrams: mean ranks on a line, and a bar over those that do not differ."""

from __future__ import annotations

from typing import Any

from equipoise._core.checks import check_type
from equipoise.metrics.significance.posthoc import Comparison, critical_difference, rank_groups

_INK, _BAR = "#222222", "#b0413e"


def plot_critical_difference(
    comparison: Comparison, *, alpha: float = 0.05, ax: Any = None, title: str | None = None
) -> Any:
    """Draw a comparison and return the matplotlib figure.

    Bars join methods that do not differ at ``alpha`` by the comparison's own correction; with Nemenyi's the
    critical difference itself is drawn too.

    References
    ----------
    Demšar (2006), Figure 1.

    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from equipoise.metrics.significance import pairwise
    >>> figure = plot_critical_difference(pairwise([[3, 2, 1], [3, 2, 1], [3, 1, 2]]))
    >>> len(figure.axes)
    1
    """
    from matplotlib.figure import Figure

    ranks = check_type("comparison", comparison, Comparison).ranks.sort_values(kind="stable")
    k = len(ranks)
    groups = rank_groups(comparison, alpha=alpha)
    rows = (k + 1) // 2
    if ax is None:
        longest = max(len(str(name)) for name in ranks.index)
        figure = Figure(
            figsize=(min(5 + 0.14 * longest, 14), 1.3 + 0.3 * rows + 0.14 * len(groups)), layout="constrained"
        )
        ax = figure.add_subplot()
    depth = 0.35 + 0.16 * len(groups)
    ax.axis("off")
    ax.set_xlim(0.5, k + 0.5)
    ax.set_ylim(-depth - 0.42 * rows, 0.95)
    _draw_axis(ax, k)
    for place, (name, rank) in enumerate(ranks.items()):
        left = place < rows
        level = -depth - 0.42 * (place if left else k - 1 - place)
        _draw_method(ax, str(name), float(rank), level, 1.0 if left else float(k), left)
    for row, group in enumerate(groups):
        spots = [float(ranks[name]) for name in group]
        height = -0.16 * (row + 1)
        ax.plot(
            [min(spots) - 0.005 * k, max(spots) + 0.005 * k],
            [height] * 2,
            color=_BAR,
            lw=3.5,
            solid_capstyle="round",
        )
    if comparison.correction == "nemenyi":
        _draw_width(ax, critical_difference(k, comparison.n_datasets, alpha=alpha))
    how = "uncorrected" if comparison.correction == "none" else comparison.correction.capitalize()
    note = f"{how}, α = {alpha:g}, {comparison.n_datasets} data sets"
    ax.set_title(f"{_plain(title)}\n{note}" if title else note, fontsize=9, color=_INK)
    return ax.figure


def _plain(text: str) -> str:
    """User text is no formula."""
    return text.replace("$", r"\$")


def _draw_axis(ax: Any, k: int) -> None:
    ax.plot([1, k], [0, 0], color=_INK, lw=1)
    for rank in range(1, k + 1):
        ax.plot([rank, rank], [0, 0.09], color=_INK, lw=1)
        ax.text(rank, 0.14, str(rank), ha="center", va="bottom", fontsize=9, color=_INK)


def _draw_method(ax: Any, name: str, rank: float, level: float, edge: float, left: bool) -> None:
    ax.plot([rank, rank, edge], [0, level, level], color=_INK, lw=0.8)
    text = f"{name} ({rank:.2f})" if left else f"({rank:.2f}) {name}"
    ax.text(
        edge - 0.05 if left else edge + 0.05,
        level,
        _plain(text),
        ha="right" if left else "left",
        va="center",
        fontsize=9,
        color=_INK,
    )


def _draw_width(ax: Any, width: float) -> None:
    ax.plot([1, 1 + width], [0.62, 0.62], color=_BAR, lw=1.2, marker="|")
    ax.text(1 + width / 2, 0.66, f"CD = {width:.2f}", ha="center", va="bottom", fontsize=8, color=_INK)
