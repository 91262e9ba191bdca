"""Still figures in the house's look, by matplotlib: the one maker of axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._core.checks import check_integer, check_positive, check_type
from equipoise._core.text import printable
from equipoise.metrics.significance import Comparison, critical_difference
from equipoise.report.blocks import clip
from equipoise.report.palette import COLORS, PALETTE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _theme() -> Any:
    from matplotlib.rcsetup import cycler

    quiet = {f"{axis}tick.{key}": value for axis in "xy" for key, value in {"color": COLORS["muted"],
             "labelcolor": COLORS["ink"], "labelsize": 8}.items()}  # fmt: skip
    return {
        **quiet, "axes.prop_cycle": cycler(color=PALETTE), "axes.edgecolor": COLORS["muted"], "axes.grid": True,
        "axes.axisbelow": True, "axes.labelcolor": COLORS["ink"], "axes.labelsize": 9,
        "axes.spines.top": False, "axes.spines.right": False, "grid.color": COLORS["grid"], "grid.linewidth": 0.8,
        "text.color": COLORS["ink"],
    }  # fmt: skip


def new_axes(width: float, height: float, rows: int = 1, columns: int = 1, count: int | None = None) -> Any:
    """A figure in the house's look and its axes.

    Parameters
    ----------
    width, height : float
        Of the whole figure, in inches.
    rows, columns : int
        Of axes.
    count : int, optional
        How many of the axes are used; the rest are left blank.

    Returns
    -------
    figure, axes
        The axis itself if there is one, otherwise an array of them, row by row.

    Examples
    --------
    >>> figure, axes = new_axes(6, 3, 1, 2)
    >>> len(axes)
    2
    """
    import matplotlib
    from matplotlib.figure import Figure

    size = float(check_positive("width", width)), float(check_positive("height", height))
    rows, columns = check_integer("rows", rows, 1, 100), check_integer("columns", columns, 1, 100)
    with matplotlib.rc_context(_theme()):
        figure = Figure(figsize=size, layout="constrained")
        axes = np.ravel(figure.subplots(rows, columns))
    for ax in axes[len(axes) if count is None else count :]:
        ax.axis("off")
    return figure, axes[0] if rows * columns == 1 else axes


def literal(text: object, limit: int = 60) -> str:
    """Text without control signs, cut to ``limit`` signs: matplotlib would read dollar signs as mathematics.

    Parameters
    ----------
    text : object
        Anything; its ``str`` is taken.
    limit : int
        The most signs.

    Returns
    -------
    str
        The text, with dollar signs escaped.

    Examples
    --------
    >>> literal("$5 to $9")
    '\\\\$5 to \\\\$9'
    """
    return printable(clip(text, limit)).replace("$", r"\$")


def plot_critical_difference(comparison: Comparison, *, alpha: float = 0.05, title: str = "") -> Figure:
    """Mean ranks on a line, and a bar over methods that do not differ at ``alpha``.

    Parameters
    ----------
    comparison : Comparison
        From :func:`equipoise.metrics.significance.pairwise`; its own correction decides. With Nemenyi's, the
        critical difference itself is told too.
    alpha : float
        The level of significance.
    title : str
        A line above the figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    References
    ----------
    Demšar (2006), Statistical comparisons of classifiers over multiple data sets, Figure 1.

    Examples
    --------
    >>> from equipoise.metrics.significance import pairwise
    >>> figure = plot_critical_difference(pairwise([[3, 2, 1], [3, 2, 1], [3, 1, 2]]))
    >>> len(figure.axes)
    1
    """
    from scikit_posthocs import critical_difference_diagram

    names = {name: literal(name) for name in check_type("comparison", comparison, Comparison).ranks.index}
    ranks = comparison.ranks.rename(names)
    longest = max(map(len, names.values()))
    figure, ax = new_axes(min(5 + 0.14 * longest, 14), 1.3 + 0.2 * len(ranks))
    critical_difference_diagram(
        ranks,
        comparison.adjusted.rename(index=names, columns=names),
        alpha=alpha,
        ax=ax,
        label_fmt_left="{label} ({rank:.2f})",
        label_fmt_right="({rank:.2f}) {label}",
        label_props={"fontsize": 9},
        text_h_margin=0.1,
        elbow_props={"color": COLORS["ink"], "linewidth": 0.8},
        crossbar_props={"color": COLORS["minority"], "linewidth": 3},
        marker_props={"color": COLORS["accent"], "s": 18},
    )
    ax.grid(False)
    ax.spines["top"].set_visible(True)
    how = "uncorrected" if comparison.correction == "none" else comparison.correction.capitalize()
    note = f"{how}, α = {alpha:g}, {comparison.n_datasets} data sets"
    if comparison.correction == "nemenyi":
        note += f", CD = {critical_difference(len(ranks), comparison.n_datasets, alpha=alpha):.2f}"
    ax.set_title(f"{literal(title)}\n{note}" if title else note, fontsize=9)
    return figure
