"""Pictures of what one conditional model can be (Lieberman et al., Figs 1–8); matplotlib figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from equipoise._core.checks import check_columns, check_type
from equipoise.report import COLORS, PALETTE, new_axes

if TYPE_CHECKING:
    from equipoise.training.distributions import Distribution

_SYMBOLS = {"gamma": "γ", "tau": "τ", "alpha": "α", "phi": "φ"}


def plot_precision_at_recalls(
    recalls: Sequence[float],
    panels: Sequence[tuple[str, Mapping[str, npt.ArrayLike], npt.ArrayLike]],
) -> Any:
    """Precision at given recalls: the separately trained models that are best somewhere, and a conditional one.

    Parameters
    ----------
    recalls : sequence of float
        Where precision was measured.
    panels : sequence of tuple
        ``(title, {model: precisions}, precisions of the conditional model)``, one panel each. Models that are
        nowhere the best of their kind are left out.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> retrained = {"tau = 0": [0.8, 0.4], "tau = 1": [0.7, 0.5]}
    >>> len(plot_precision_at_recalls([0.5, 0.9], [("digits", retrained, [0.9, 0.6])]).axes)
    1
    """
    figure, axes = _panels(len(panels))
    places = np.arange(len(recalls))
    for ax, (title, models, conditional) in zip(axes, panels, strict=False):
        table = pd.DataFrame({name: np.asarray(values) for name, values in dict(models).items()})
        best = [str(name) for name in table if (table[name] >= table.max(axis=1)).any()]
        for color, name in zip(PALETTE[2:], best, strict=False):
            ax.plot(places, table[name], ".--", lw=1, color=color, label=_readable(name))
        ax.plot(
            places, np.asarray(conditional), "o-", color=COLORS["minority"], ms=4, label="one conditional"
        )
        ax.set_xticks(places, [f"{recall:g}" for recall in recalls], fontsize=7)
        ax.set_title(_readable(title), fontsize=9)
        ax.set_xlabel("recall at least", fontsize=8)
        ax.legend(fontsize=6, frameon=False)
    axes[0].set_ylabel("precision", fontsize=8)
    return figure


def plot_tradeoff(
    table: pd.DataFrame,
    against: str,
    metrics: Sequence[str],
    *,
    color: str,
    rival: Mapping[str, float] | None = None,
) -> Any:
    """Each λ of :meth:`ConditionalClassifier.survey` as a dot: one metric against others, colored by a parameter.

    ``rival`` holds the same metrics of a model trained for one λ, drawn as a cross.

    Parameters
    ----------
    table : DataFrame
        What :meth:`ConditionalClassifier.survey` returned.
    against : str
        The metric of the horizontal axis.
    metrics : sequence of str
        The metrics of the vertical axes, a panel each.
    color : str
        The hyper-parameter that colors the dots.
    rival : mapping of str to float, optional
        Metrics of a model trained for one λ.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> table = pd.DataFrame({"tau": [0, 1], "auc": [0.8, 0.9], "brier": [0.2, 0.1]})
    >>> len(plot_tradeoff(table, "auc", ["brier"], color="tau").axes)
    1
    """
    check_columns("table", table, [color, against, *metrics])
    figure, axes = _panels(len(metrics))
    for ax, metric in zip(axes, metrics, strict=False):
        for shade, (value, group) in zip(_shades(table[color].nunique()), table.groupby(color), strict=False):
            ax.scatter(
                group[against], group[metric], s=26, color=shade, label=f"{_readable(color)} = {value:g}"
            )
        if rival is not None:
            ax.scatter(
                [rival[against]],
                [rival[metric]],
                marker="x",
                s=60,
                color=COLORS["minority"],
                label="retrained",
            )
        ax.locator_params(axis="x", nbins=4)
        ax.set_xlabel(against, fontsize=8)
        ax.set_ylabel(metric.replace("_", " "), fontsize=8)
    axes[0].legend(fontsize=6, frameon=False)
    return figure


def plot_map(table: pd.DataFrame, metric: str, *, rows: str, columns: str) -> Any:
    """A metric of :meth:`ConditionalClassifier.survey` as a heat map over two hyper-parameters.

    Parameters
    ----------
    table : DataFrame
        What :meth:`ConditionalClassifier.survey` returned.
    metric : str
        A column of the table.
    rows : str
        The hyper-parameter of the rows.
    columns : str
        The hyper-parameter of the columns.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> table = pd.DataFrame({"gamma": [0, 0, 1, 1], "tau": [0, 1, 0, 1], "auc": [0.5, 0.6, 0.7, 0.8]})
    >>> figure = plot_map(table, "auc", rows="gamma", columns="tau")
    """
    check_columns("table", table, [rows, columns, metric])
    wide = table.pivot_table(index=rows, columns=columns, values=metric)
    figure, axes = _panels(1, width=4.6)
    ax = axes[0]
    image = ax.imshow(wide.to_numpy(), cmap="viridis", aspect="auto")
    ax.grid(False)
    ax.set_xticks(range(wide.shape[1]), [f"{value:.3g}" for value in wide.columns])
    ax.set_yticks(range(wide.shape[0]), [f"{value:.3g}" for value in wide.index])
    ax.set(xlabel=_readable(columns), ylabel=_readable(rows))
    figure.colorbar(image, ax=ax, label=metric.replace("_", " "))
    return figure


def plot_training_maps(
    panels: Sequence[tuple[str, npt.NDArray[Any]]],
    *,
    rows: str,
    columns: str,
    label: str = "AUC",
    row_ticks: Sequence[str] | None = None,
    column_ticks: Sequence[str] | None = None,
) -> Any:
    """Blocks of heat maps: arrays (trainings down, trainings across, λ down, λ across), one panel each.

    ``row_ticks`` and ``column_ticks`` say what each training had; numbers stand in for them.

    Parameters
    ----------
    panels : sequence of (str, array)
        A title and an array for each panel.
    rows : str
        What changes down a panel.
    columns : str
        What changes across a panel.
    label : str
        The name of the metric.
    row_ticks : sequence of str, optional
        A name for each training down.
    column_ticks : sequence of str, optional
        A name for each training across.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> scores = np.random.default_rng(0).random((2, 2, 3, 3))
    >>> figure = plot_training_maps([("conditional", scores)], rows="γ", columns="τ")
    """
    figure, axes = _panels(len(panels), width=3.4)
    low = min(float(np.nanmin(values)) for _, values in panels)
    high = max(float(np.nanmax(values)) for _, values in panels)
    for ax, (title, values) in zip(axes, panels, strict=False):
        down, across, inner_down, inner_across = np.shape(values)
        flat = values.transpose(0, 2, 1, 3).reshape(down * inner_down, across * inner_across)
        image = ax.imshow(flat, cmap="viridis", aspect="auto", vmin=low, vmax=high)
        ax.grid(False)
        for k in range(1, down):
            ax.axhline(k * inner_down - 0.5, color="white", lw=1.5)
        for k in range(1, across):
            ax.axvline(k * inner_across - 0.5, color="white", lw=1.5)
        named_columns = range(1, across + 1) if column_ticks is None else column_ticks
        named_rows = range(1, down + 1) if row_ticks is None else row_ticks
        ax.set_xticks(np.arange(across) * inner_across + (inner_across - 1) / 2, named_columns, fontsize=6)
        ax.set_yticks(np.arange(down) * inner_down + (inner_down - 1) / 2, named_rows, fontsize=6)
        ax.set_title(f"{title}: best {np.nanmax(values):.3f}, mean {np.nanmean(values):.3f}", fontsize=8)
        ax.set_xlabel(columns, fontsize=8)
    axes[0].set_ylabel(rows, fontsize=8)
    figure.colorbar(image, ax=list(axes[: len(panels)]), label=label)
    return figure


def plot_densities(laws: Mapping[str, Sequence[Distribution]]) -> Any:
    """Densities (above) and cumulative distributions (below) of hyper-parameters, a column for each name.

    Parameters
    ----------
    laws : mapping of str to sequence of Distribution
        The distributions of each hyper-parameter.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from equipoise.training import Linear
    >>> len(plot_densities({"τ": [Linear(0, 3, 0), Linear(0, 3, 0.33)]}).axes)
    2
    """
    check_type("laws", laws, Mapping)  # type: ignore[type-abstract]
    figure, axes = _panels(2 * len(laws), most=len(laws))
    for column, (name, chosen) in enumerate(laws.items()):
        for law, color in zip(chosen, _shades(len(chosen)), strict=True):
            x = np.linspace(law.low, law.high, 101)
            told = f"L({law.low:.3g}, {law.high:.3g}, {float(law.density(law.high)):.3g})"
            axes[column].plot(x, law.density(x), color=color, label=told)
            axes[len(laws) + column].plot(x, law.cdf(x), color=color)
        axes[column].legend(fontsize=6, frameon=False)
        axes[len(laws) + column].set_xlabel(name, fontsize=8)
    axes[0].set_ylabel("density", fontsize=8)
    axes[len(laws)].set_ylabel("cumulative", fontsize=8)
    return figure


def _panels(count: int, width: float = 3.3, most: int = 4) -> tuple[Any, Any]:
    if not count:
        raise ValueError("there must be something to draw, got no panel")
    across = min(count, most)
    down = -(-count // across)
    figure, axes = new_axes(width * across, 2.8 * down, down, across, count)
    return figure, np.atleast_1d(axes)


def _shades(count: int) -> list[Any]:
    from matplotlib import colormaps

    return [colormaps["viridis"](position) for position in np.linspace(0, 0.9, count)]


def _readable(name: str) -> str:
    """Greek letters for their names; dollar signs as they are."""
    for word, sign in _SYMBOLS.items():
        name = name.replace(word, sign)
    return name.replace("$", r"\$")
