"""The pages of the two theory studies of diffusion: the paper's figures, and its statements held against them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.report import COLORS, PALETTE, Headline, Picture, Section, Table, Text, new_axes
from equipoise.studies.spec import Spec

_LOOKS = {
    "equivalent": {"ls": "-", "lw": 1.4},
    "true": {"ls": "none", "marker": "x", "ms": 5},
}


def windows_page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    """Fig 2b: both windows over the variance ratio, one line a weight of the wider class."""
    figure, axes = new_axes(8.4, 2.8, 1, 2)
    panels = (
        ("generalization_window", "w_g = τ_mem / τ_gen"),
        ("memorization_window_times_t", "t · w_m"),
    )
    rows: list[list[Any]] = []
    for axis, (name, label) in zip(axes, panels, strict=True):
        for (weight, group), color in zip(results.groupby("weight"), PALETTE, strict=False):
            line = group.groupby("variance_ratio")[name].mean()
            axis.plot(line.index, line, ".-", lw=1.2, color=color, label=f"b₁ = {weight:g}")
            rows.append([
                label, weight, line.min() / line.iloc[-1], line.idxmin(), line.max() / line.iloc[-1], line.idxmax(),
            ])  # fmt: skip
        alike = results[results["variance_ratio"] == results["variance_ratio"].max()][name].mean()
        axis.axhline(alike, color=COLORS["muted"], lw=0.9, ls="--")
        axis.set(xlabel="variance ratio v = σ₂²/σ₁²", ylabel=label)
        axis.legend(fontsize=7, frameon=False)
    picture = Picture.from_matplotlib(
        figure,
        "diffusion-windows-fig2",
        "The windows of Fig 2b, b₁ being the weight of the class of variance 0.5; dashed: equal variances.",
        "Two line plots over the variance ratio",
    )
    columns = ["window", "b₁", "least", "at v", "most", "at v "]
    table = Table(columns, rows, "Each window as a multiple of what it is at v = 1.")
    said = f"The paper: {spec.paper['statement']}. Fig 2a is drawn by: equipoise theory diffusion --figure 2."
    return [Section("What came out", [Headline(_windows_claim(results)), picture, table, Text(said)])]


def _windows_claim(results: pd.DataFrame) -> str:
    """Both windows at the smallest variance ratio, as multiples of those at equal variances."""
    ratios = results["variance_ratio"]
    ends = results[ratios.isin([ratios.min(), ratios.max()])].pivot(index="weight", columns="variance_ratio")
    change = {
        name: ends[name].iloc[:, 0] / ends[name].iloc[:, -1]
        for name in ("generalization_window", "memorization_window_times_t")
    }
    said = [f"{times.min():.2g} to {times.max():.2g} times" for times in change.values()]
    return (
        f"At a variance ratio of {ratios.min():g} the generalization window is {said[0]} and the memorization "
        f"window {said[1]} what it is at equal variances, over {len(ends)} weights of the classes."
    )


def classes_page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    """Fig 3: test errors of each class over training. Fig 4: gaps of class times over the weight of class 1."""
    order = Table(
        ["disparity", "matrices", "τ_g gap at ½", "τ_m gap at ½", "τ_g gap turns", "τ_m gap turns"],
        list(_gap_rows(results)),
        "Generalization and memorization times of class 1 less those of class 2, means over draws, at b₁ = ½; "
        "between which weights b₁ the sign turns, gaps within the spread of their draws left out.",
    )  # fmt: skip
    claim = Headline(_classes_claim(results))
    blocks = [
        claim,
        _error_curves(results),
        _gaps(results),
        order,
        Text(f"The paper: {spec.paper['statement']}."),
    ]
    return [Section("What came out", [block for block in blocks if block is not None])]


def _classes_claim(results: pd.DataFrame) -> str:
    """In how many settings each gap turns beyond the spread of its draws, by the true matrices."""
    rows = [row for row in _gap_rows(results) if row[1] == "true"]
    turns = [sum(row[place] != "no" for row in rows) for place in (4, 5)]
    return (
        f"Which class comes first turns with the classes' shares in {turns[0]} of {len(rows)} settings for "
        f"generalization and in {turns[1]} of {len(rows)} for memorization, beyond the spread of the draws."
    )


def _error_curves(results: pd.DataFrame) -> Picture | None:
    shown = [("variance 1:2", 0.5), ("centroid norm", 0.5), ("none", 0.8)]
    found = [results[(results["disparity"] == name) & (results["weight"] == b)] for name, b in shown]
    if "test_errors" not in results or any(part.empty for part in found):
        return None
    figure, axes = new_axes(9.6, 2.8, 1, 3)
    for axis, (name, weight), part in zip(axes, shown, found, strict=True):
        for matrices, group in part.groupby("matrices"):
            times = np.asarray(group["training_times"].iloc[0][0])
            for number, color in enumerate(PALETTE[:2]):
                error = np.mean([np.asarray(row)[number] for row in group["test_errors"]], axis=0)
                label = f"class {number + 1}, {matrices}"
                axis.plot(times, error, color=color, label=label, **_LOOKS[str(matrices)], markevery=3)
        axis.axhline(1, color=COLORS["muted"], lw=0.9, ls="--")
        axis.set(xscale="log", xlabel="training time τ", ylim=(None, 1.6))
        axis.set_title(f"{name}, b₁ = {weight:g}", fontsize=9)
    axes[0].set_ylabel("test error of a class", fontsize=8)
    axes[0].legend(fontsize=6, frameon=False)
    caption = "Fig 3: lines are Gaussian equivalents, crosses the true matrices; dashed: memorized."
    return Picture.from_matplotlib(figure, "diffusion-classes-fig3", caption, "Line plots of test errors")


def _gaps(results: pd.DataFrame) -> Picture:
    names = list(dict.fromkeys(results["disparity"]))
    kinds = (("generalization_gap", "generalization"), ("memorization_gap", "memorization"))
    figure, flat = new_axes(2.9 * len(names), 5.0, 2, len(names))
    axes = flat.reshape(2, -1)
    for row, (column, label) in zip(axes, kinds, strict=True):
        for axis, name in zip(row, names, strict=True):
            part = results[results["disparity"] == name]
            for (matrices, group), color in zip(part.groupby("matrices"), PALETTE, strict=False):
                line = group.groupby("weight")[column].mean()
                axis.plot(line.index, line, color=color, label=str(matrices), **_LOOKS[str(matrices)])
            axis.axhline(0, color=COLORS["muted"], lw=0.9)
            axis.set_title(name, fontsize=9)
        row[0].set_ylabel(f"τ₁ − τ₂, {label}", fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel("weight b₁ of class 1", fontsize=8)
    axes[0][0].legend(fontsize=7, frameon=False)
    caption = "Fig 4: below zero class 1, of higher variance or smaller centroid, comes first."
    return Picture.from_matplotlib(figure, "diffusion-classes-fig4", caption, "Line plots of gaps")


def _gap_rows(results: pd.DataFrame) -> Any:
    for (name, matrices), group in results.groupby(["disparity", "matrices"], sort=False):
        gaps = [group.groupby("weight")[f"{kind}_gap"] for kind in ("generalization", "memorization")]
        equal = [gap.mean().get(0.5) for gap in gaps]
        yield [name, matrices, *equal, *(_sign_changes(gap.mean(), gap.std()) for gap in gaps)]


def _sign_changes(mean: pd.Series[float], spread: pd.Series[float]) -> str:
    """Between which weights the sign changes; a gap within the spread of its draws has none."""
    clear = mean[mean.abs() > spread.fillna(0)]
    weights, signs = clear.index.to_numpy(), np.sign(clear.to_numpy())
    where = np.flatnonzero(signs[1:] != signs[:-1])
    return ", ".join(f"{weights[i]:g}–{weights[i + 1]:g}" for i in where) or "no"
