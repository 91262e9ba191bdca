"""Fig 14: scores over the training fraction. Fig 15: balanced accuracy and bias over the noise. Theory beside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.report import PALETTE, Headline, Picture, Section, Table, Text
from equipoise.studies.spec import Spec

from ..shared.anomaly_pages import beside, new_panels

_SHOWN = {"unit": "‖w‖ = 1", "equation-1": "Eq 1"}
_KEYS = ["scale", "dim", "learning_rate"]


def page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    """One panel for each scale, size and rate of Fig 14; one pair of panels for each of Fig 15."""
    results = results.copy()
    given = results["scale"] if "scale" in results else pd.Series("unit", index=results.index)
    results["scale"] = given.fillna("unit")
    sweep, heat = results[results["figure"] == "14"], results[results["figure"] == "15"]
    keys = [*_KEYS, "figure", "batch_size", "train_fraction"]
    shown = ["overlap", "bias", "balanced_accuracy", "auc", "settled"]
    table = results.groupby(keys)[shown].mean().reset_index()
    table.insert(len(keys), "seeds", results.groupby(keys).size().to_numpy())
    rows = [list(row) for row in table.itertuples(index=False)]
    peaks = _peaks(sweep)
    found = " and ".join(
        f"{peak:.3f} (95% interval {interval}; the field as in {scale}, N = {dim}, {seeds} seeds)"
        for scale, dim, _, seeds, peak, interval, _ in peaks.rows
    )
    claim = f"Balanced accuracy is best at a training fraction of {found}; the theory at low noise says"
    told = [Headline(f"{claim} {peaks.rows[0][-1]:.3f}.")] if found else []
    pictures = [_sweep_picture(sweep), peaks, _sizes(results)]
    return [
        Section("The training fraction (Fig 14, left)", [*told, *pictures]),
        Section("The noise (Fig 15)", [_noise_picture(heat), beside(spec.paper)]),
        Section("All means", [Table([*keys, "seeds", *shown], rows)]),
    ]


def _sweep_picture(sweep: pd.DataFrame) -> Picture:
    from equipoise.theory.anomaly import solve_saddle

    groups = list(sweep.groupby(_KEYS))
    figure, axes = new_panels(len(groups))
    grid = np.linspace(0.15, 0.85, 29)
    for axis, ((scale, dim, rate), part) in zip(axes, groups, strict=False):
        by = part.groupby("train_fraction")
        for name, color in zip(
            ("balanced_accuracy", "recall", "precision", "f1", "auc"), PALETTE, strict=False
        ):
            mean, error = by[name].mean(), by[name].sem().fillna(0.0)
            axis.errorbar(mean.index, mean, error, fmt=".-", lw=1, color=color, label=name)
        first = part.iloc[0]
        theory = solve_saddle(first["samples_per_dim"], 0.1, first["teacher_bias"], grid).metrics()
        axis.plot(grid, theory.balanced_accuracy, ":", color=PALETTE[0], label="theory, T = 0.1")
        axis.set_title(f"{_SHOWN[scale]}, N = {dim}, lr {rate:g}, batch 20", fontsize=9)
        axis.set_xlabel("ρ_train", fontsize=8)
    axes[0].legend(fontsize=6)
    caption = (
        "Means and standard errors over seeds; dotted, the solvable model's balanced accuracy at low noise."
    )
    return Picture.from_matplotlib(figure, "anomaly-sgd-curves", caption, "Line plots")


def _peaks(sweep: pd.DataFrame) -> Table:
    """Where balanced accuracy peaks, with an interval over seeds, where there are enough of them."""
    from equipoise.theory.anomaly import optimal_train_fraction

    rows: list[list[Any]] = []
    for (scale, dim, rate), part in sweep.groupby(_KEYS):
        curves = part.pivot_table(index="seed", columns="train_fraction", values="balanced_accuracy")
        near = [f for f in curves.columns if 0.3 < f < 0.7]
        curves = curves.dropna()
        if len(curves) < 5 or len(near) < 4:
            continue
        rng = np.random.default_rng(0)
        draws = [
            _peak(near, curves[near].to_numpy()[rng.integers(len(curves), size=len(curves))])
            for _ in range(2000)
        ]
        low, high = np.quantile(draws, [0.025, 0.975])
        first = part.iloc[0]
        best = optimal_train_fraction(
            first["samples_per_dim"], 0.1, first["teacher_bias"], "balanced_accuracy"
        )
        rows.append([
            _SHOWN[scale], int(dim), rate, len(curves), _peak(near, curves[near].to_numpy()),
            f"{low:.3f} to {high:.3f}", float(best.train_fraction),
        ])  # fmt: skip
    columns = [
        "scale",
        "N",
        "lr",
        "seeds",
        "ρ of the best balanced accuracy",
        "95% interval",
        "theory, T = 0.1",
    ]
    caption = (
        "The peak of a parabola through the means between ρ = 0.35 and 0.65; the interval draws seeds again."
    )
    return Table(
        columns, rows, caption, formats={"ρ of the best balanced accuracy": ".3f", "theory, T = 0.1": ".3f"}
    )


def _peak(fractions: list[float], curves: np.ndarray) -> float:
    bend, slope, _ = np.polyfit(fractions, curves.mean(axis=0), 2)
    return float(-slope / (2 * bend))


def _sizes(results: pd.DataFrame) -> Table | Text:
    """The overlap at ρ = ½ over N, in both scales, at the rate that was also run at the larger N."""
    part = results[(results["train_fraction"] == 0.5) & (results["batch_size"] == 20)]
    part = part[part["figure"].isin(["14", "N"])]
    by = part.groupby([*_KEYS])["overlap"]
    table = pd.DataFrame({"mean": by.mean(), "error": by.sem(), "seeds": by.size()}).reset_index()
    rows = [
        [_SHOWN[row.scale], int(row.dim), row.learning_rate, int(row.seeds), row.mean_, row.error]
        for row in table.rename(columns={"mean": "mean_"}).itertuples()
    ]
    columns = ["scale", "N", "lr", "seeds", "overlap", "±"]
    return Table(
        columns,
        rows,
        "Does the overlap depend on N? At ρ = ½, batch 20.",
        formats={"overlap": ".3f", "±": ".3f"},
    )


def _noise_picture(heat: pd.DataFrame) -> Picture:
    from equipoise.theory.anomaly import solve_saddle

    groups = list(heat.groupby(["scale", "dim"]))
    figure, axes = new_panels(2 * len(groups) + 2)
    for k, ((scale, dim), part) in enumerate(groups):
        for axis, name in zip(axes[2 * k : 2 * k + 2], ("balanced_accuracy", "bias"), strict=True):
            for (fraction, group), color in zip(part.groupby("train_fraction"), PALETTE, strict=False):
                mean = group.groupby("effective_temperature")[name].mean()
                axis.semilogx(mean.index, mean, ".-", lw=1, color=color, label=f"ρ = {fraction:g}")
            axis.set_title(f"{name}: {_SHOWN[scale]}, N = {dim}", fontsize=9)
            axis.set_xlabel("lr/batch", fontsize=8)
    first, noise = heat.iloc[0], np.geomspace(0.03, 3, 25)
    for axis, name in zip(
        axes[-2:] if len(axes) > 2 * len(groups) else [], ("balanced_accuracy", "bias"), strict=False
    ):
        for fraction, color in zip(sorted(heat["train_fraction"].unique()), PALETTE, strict=False):
            point = solve_saddle(first["samples_per_dim"], noise, first["teacher_bias"], fraction)
            values = point.metrics().balanced_accuracy if name == "balanced_accuracy" else point.bias
            axis.semilogx(noise, np.where(np.isfinite(values), values, np.nan), lw=1, color=color)
        axis.set_title(f"{name}: the solvable model", fontsize=9)
        axis.set_xlabel("T", fontsize=8)
    axes[0].legend(fontsize=6)
    return Picture.from_matplotlib(
        figure, "anomaly-sgd-noise", "Means over seeds against the noise; last, the theory.", "Line plots"
    )
