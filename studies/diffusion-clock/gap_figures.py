"""Memorization gaps of several runs: against variance, share and theory (Nicoletti et al., Figs 5 and 6).

All functions take one table, a line per run, with these columns (further ones do no harm):

``pair`` the run's name, ``log_gap`` = log t_mem(reference) − log t_mem(partner), positive where the partner is
memorized first; ``bound`` 0, or ±1 where the gap is only known to be larger or smaller than that; ``share`` of the
partner; ``predicted_log_gap``, the theory's; and whatever descriptors are asked for by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from equipoise._core.checks import FloatArray, check_choice, check_integer
from equipoise.report import COLORS, PALETTE, literal, new_axes

_GAP = "log gap"
DESCRIPTORS = {
    "variance_ratio": "variance, partner : reference",
    "norm_ratio": "centroid norm, partner : reference",
    "cosine": "cosine of the centroids",
}
"""The paper's three, free of units, and how to name them on an axis."""


def agreement(
    runs: pd.DataFrame, descriptors: Mapping[str, str] | None = None, *, by: str = "pair"
) -> pd.DataFrame:
    """How the gaps of experiment and theory go with each descriptor, and with each other.

    Returns a line per descriptor (and one for the prediction itself) with Pearson's and Spearman's correlation for
    the experiment and for the prediction; NaN for fewer than three points. These are the means of the pairs, or
    (``by="run"``) the runs, each with the descriptors of its own images.

    Parameters
    ----------
    runs : DataFrame
        A line per run: ``pair``, ``log_gap``, ``bound``, ``predicted_log_gap`` and a column for each
        descriptor.
    descriptors : mapping of str to str, optional
        Columns and what to call them; by default those of the paper.
    by : {"pair", "run"}
        Whether to correlate the means of pairs, or the runs.

    Returns
    -------
    DataFrame
        The correlations.

    Examples
    --------
    >>> runs = pd.DataFrame({"pair": list("abcd"), "log_gap": [0.1, 0.5, 0.4, 0.9], "bound": 0,
    ...                      "predicted_log_gap": [0.2, 0.4, 0.5, 1.0], "spread": [1.0, 2.0, 3.0, 4.0]})
    >>> agreement(runs, {"spread": "spread"}).round(2).loc["prediction", "spearman_experiment"]
    np.float64(0.8)
    """
    names = list(DESCRIPTORS if descriptors is None else descriptors)
    check_choice("by", by, ["pair", "run"])
    means = _means(runs, [*names, "predicted_log_gap"]) if by == "pair" else runs[runs["log_gap"].notna()]
    rows = {}
    for name in names:
        rows[name] = {
            f"{kind}_{what}": _correlation(kind, means[name], means[column])
            for what, column in (("experiment", "log_gap"), ("prediction", "predicted_log_gap"))
            for kind in ("pearson", "spearman")
        }
    rows["prediction"] = {
        f"{kind}_experiment": _correlation(kind, means["predicted_log_gap"], means["log_gap"])
        for kind in ("pearson", "spearman")
    }
    return pd.DataFrame(rows).T


def _correlation(kind: str, x: Any, y: Any) -> float:
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    known = np.isfinite(x) & np.isfinite(y)
    if known.sum() < 3 or np.ptp(x[known]) == 0 or np.ptp(y[known]) == 0:
        return float("nan")
    test: Any = stats.pearsonr if kind == "pearson" else stats.spearmanr
    return float(test(x[known], y[known]).statistic)


def _means(runs: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    known = runs[runs["log_gap"].notna()]
    return known.groupby("pair", sort=False)[["log_gap", *columns]].mean()


def correlation(runs: pd.DataFrame, column: str) -> tuple[float, float, float, int]:
    """Pearson's r of the pairs' mean gaps with a column, Fisher's 95 % interval and the number of pairs.

    Drawing the pairs again would hold the truth in 77 to 93 % of cases only, for four to nine normal pairs. With
    fewer than four pairs all three are NaN.
    """
    means = _means(runs, [column]).dropna()
    return _with_interval(_correlation("pearson", means["log_gap"], means[column]), len(means))


def partial_correlation(runs: pd.DataFrame, column: str, given: str) -> tuple[float, float, float, int]:
    """Like :func:`correlation`, of what a straight line in the column ``given`` leaves of both."""
    means = _means(runs, [column, given]).dropna()
    xy, xz, yz = (
        _correlation("pearson", means[a], means[b])
        for a, b in (("log_gap", column), ("log_gap", given), (column, given))
    )
    rest = (1 - xz**2) * (1 - yz**2)
    return _with_interval((xy - xz * yz) / np.sqrt(rest) if rest > 1e-9 else np.nan, len(means), given=1)


def _with_interval(r: float, pairs: int, given: int = 0) -> tuple[float, float, float, int]:
    free = pairs - 3 - given
    if free < 1:
        return float("nan"), float("nan"), float("nan"), pairs
    half = stats.norm.ppf(0.975) / np.sqrt(free)
    low, high = np.tanh(np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12)) + half * np.array([-1, 1]))
    return r, float(low), float(high), pairs


def moderate(runs: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The runs of pairs whose partner's variance is within a standard deviation of the mean; names of the others.

    Fig 5d leaves out extreme variances without saying where they begin.
    """
    variances = runs.groupby("pair", sort=False)["variance_partner"].mean()
    if len(variances) < 3:
        return runs, []
    far = (variances - variances.mean()).abs() > variances.std()
    left_out = [str(name) for name in variances.index[far]]
    return runs[~runs["pair"].isin(left_out)], left_out


def plot_gap_against(
    runs: pd.DataFrame,
    descriptor: str,
    label: str = "",
    *,
    n_bootstrap: int = 1000,
    random_state: int = 0,
) -> Any:
    """The gap against a descriptor: a point per run, a mean per pair, a line with its bootstrap band (Fig 5b, d).

    The band resamples pairs and fits again, as in the paper. A hollow point is a bound. A matplotlib figure.

    Parameters
    ----------
    runs : DataFrame
        A line per run: ``pair``, ``log_gap``, ``bound``, ``predicted_log_gap`` and a column for each
        descriptor.
    descriptor : str
        The column of the horizontal axis.
    label : str
        What to call it; its own name by default.
    n_bootstrap : int
        The number of resamples of the band.
    random_state : int
        The seed of the resamples.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    check_integer("n_bootstrap", n_bootstrap, low=1)
    figure, ax = new_axes(6.4, 3.9)
    means = _means(runs, [descriptor])
    x, y = means[descriptor].to_numpy(), means["log_gap"].to_numpy()
    if len(x) > 2:
        grid = np.linspace(x.min(), x.max(), 60)
        low, high = _band(x, y, grid, n_bootstrap, random_state)
        ax.fill_between(grid, low, high, color=COLORS["muted"], alpha=0.15, lw=0)
        ax.plot(grid, np.polyval(np.polyfit(x, y, 1), grid), "--", color=COLORS["muted"], lw=1.2)
    for i, name in enumerate(means.index):
        own = runs[(runs["pair"] == name) & runs["log_gap"].notna()]
        _draw_runs(ax, own[descriptor], own, PALETTE[i % len(PALETTE)])
        ax.scatter(
            x[i], y[i], color=PALETTE[i % len(PALETTE)], marker="D", s=52, zorder=4, label=literal(name)
        )
    ax.axhline(0, color=COLORS["ink"], lw=0.8)
    ax.set(xlabel=label or descriptor, ylabel=f"{_GAP}: above 0 the partner is first")
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    return figure


def _band(x: FloatArray, y: FloatArray, grid: FloatArray, n: int, seed: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n):
        rows = rng.integers(len(x), size=len(x))
        if np.ptp(x[rows]) > 0:
            lines.append(np.polyval(np.polyfit(x[rows], y[rows], 1), grid))
    low, high = np.quantile(lines, [0.025, 0.975], axis=0)
    return low, high


def _draw_runs(ax: Any, x: Any, own: pd.DataFrame, color: str) -> None:
    sure = (own["bound"] == 0).to_numpy()
    x, y = np.asarray(x, dtype=float), own["log_gap"].to_numpy(dtype=float)
    ax.scatter(x[sure], y[sure], color=color, s=16, alpha=0.75, zorder=3)
    ax.scatter(x[~sure], y[~sure], facecolors="none", edgecolors=color, s=22, zorder=3)


def plot_gap_by_share(runs: pd.DataFrame) -> Any:
    """The gap over the partner's share, a line per pair: mean and range over the runs (Fig 5c).

    Parameters
    ----------
    runs : DataFrame
        A line per run: ``pair``, ``share`` and ``log_gap``.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    figure, ax = new_axes(6.4, 3.9)
    known = runs[runs["log_gap"].notna()]
    names = list(dict.fromkeys(runs["pair"]))
    for i, name in enumerate(names):
        groups = known[known["pair"] == name].groupby("share")["log_gap"]
        if not len(groups):
            continue
        mean, low, high = groups.mean(), groups.min(), groups.max()
        x = 100 * mean.index.to_numpy(dtype=float) + 0.8 * (i - (len(names) - 1) / 2)
        color = PALETTE[i % len(PALETTE)]
        ax.errorbar(x, mean, [mean - low, high - mean], color=color, marker="o", ms=5, lw=1.4, capsize=3,
                    label=literal(name))  # fmt: skip
    ax.axhline(0, color=COLORS["ink"], lw=0.8)
    ax.set_xticks(100 * np.unique(runs["share"].to_numpy(dtype=float)))
    ax.set(
        xlabel="share of the partner in the training images (%)", ylabel=f"{_GAP} (above 0: partner first)"
    )
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    return figure


def plot_prediction(runs: pd.DataFrame, descriptors: Mapping[str, str] | None = None) -> Any:
    """Experiment beside theory over each descriptor, and against each other, with correlations (Fig 6).

    Parameters
    ----------
    runs : DataFrame
        A line per run: ``pair``, ``log_gap``, ``bound``, ``predicted_log_gap`` and a column for each
        descriptor.
    descriptors : mapping of str to str, optional
        Columns and what to call them; by default those of the paper.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    named = dict(DESCRIPTORS if descriptors is None else descriptors)
    means = _means(runs, [*named, "predicted_log_gap"])
    found = agreement(runs, named)
    figure, axes = new_axes(3.1 * (len(named) + 1), 3.7, 1, len(named) + 1)
    looks: tuple[tuple[str, str, Any], ...] = (
        ("log_gap", "experiment", {"color": PALETTE[0], "marker": "o"}),
        ("predicted_log_gap", "theory", {"color": PALETTE[1], "marker": "s", "ls": "--"}),
    )
    for ax, (column, label) in zip(axes, named.items(), strict=False):
        order = means.sort_values(column)
        for what, name, look in looks:
            ax.plot(order[column], order[what], lw=1.2, ms=5, label=name, **look)
        ax.set(xlabel=label, ylabel=_GAP if ax is axes[0] else "")
        row = found.loc[column]
        words = [
            f"{name}: {_correlations(row, key)}"
            for key, name in (("experiment", "experiment"), ("prediction", "theory"))
        ]
        ax.set_title("\n".join(words), fontsize=8)
        ax.axhline(0, color=COLORS["ink"], lw=0.8)
    _draw_against(axes[-1], runs, means, found.loc["prediction"])
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure


def _draw_against(ax: Any, runs: pd.DataFrame, means: pd.DataFrame, row: Any) -> None:
    known = runs[runs["log_gap"].notna()]
    colors = [PALETTE[list(means.index).index(name) % len(PALETTE)] for name in known["pair"]]
    ax.scatter(known["predicted_log_gap"], known["log_gap"], c=colors, s=12, alpha=0.5)
    for i, (name, x, y) in enumerate(
        zip(means.index, means["predicted_log_gap"], means["log_gap"], strict=True)
    ):
        ax.scatter(x, y, color=PALETTE[i % len(PALETTE)], marker="D", s=36, zorder=3)
        ax.annotate(literal(name), (x, y), xytext=(4, 4), textcoords="offset points", fontsize=8)
    ax.axhline(0, color=COLORS["ink"], lw=0.8)
    ax.axvline(0, color=COLORS["ink"], lw=0.8)
    ax.margins(x=0.25, y=0.15)
    ax.set(xlabel="log gap in theory", ylabel="log gap in the experiment")
    ax.set_title(_correlations(row, "experiment"), fontsize=8)


def _correlations(row: Any, key: str) -> str:
    r, rho = row[f"pearson_{key}"], row[f"spearman_{key}"]
    return f"r {r:+.2f}, ρ {rho:+.2f}" if np.isfinite([r, rho]).all() else "too few pairs"
