"""The pages of the anomaly studies: a curve over the training fraction or the noise, and what the paper has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.report import PALETTE, Picture, Section, Table, Text, new_axes
from equipoise.studies.spec import Spec


def _axes(count: int, width: float = 3.6) -> tuple[Any, Any]:
    columns = min(count, 4)
    rows = -(-count // columns)
    figure, axes = new_axes(width * columns, 2.9 * rows, rows, columns)
    axes = np.ravel(axes)
    for axis in axes[count:]:
        axis.axis("off")
    return figure, axes


def _beside(paper: Mapping[str, Any]) -> Table:
    return Table(["figure", "the paper"], [[figure, str(text)] for figure, text in paper.items()])


def real_page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    """Balanced accuracy over ρ, trained and tested, with and without re-weighting; the best fraction of each."""
    sets = list(dict.fromkeys(results["dataset"]))
    figure, axes = _axes(len(sets))
    rows: list[list[Any]] = []
    for axis, name in zip(axes, sets, strict=False):
        for reweight, color in ((False, PALETTE[0]), (True, PALETTE[1])):
            part = results[(results["dataset"] == name) & (results["reweight"] == reweight)]
            part = part.sort_values("train_fraction")
            if part.empty:
                continue
            x, y = part["train_fraction"], part["test_balanced_accuracy"]
            label = "re-weighted" if reweight else "plain"
            axis.errorbar(
                x, y, part["test_standard_error"], color=color, marker=".", lw=1, label=f"test, {label}"
            )
            axis.plot(
                x, part["train_balanced_accuracy"], color=color, lw=0.8, ls=":", label=f"train, {label}"
            )
            best = part.loc[y.idxmax()]
            half = part.loc[(x - 0.5).abs().idxmin()]
            rows.append([
                name, label, best["train_fraction"], best["test_balanced_accuracy"], best["test_standard_error"],
                half["test_balanced_accuracy"], half["test_standard_error"],
            ])  # fmt: skip
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("ρ_train", fontsize=8)
    axes[0].set_ylabel("balanced accuracy", fontsize=8)
    axes[0].legend(fontsize=6)
    picture = Picture.from_matplotlib(
        figure, "anomaly-real-sweep", "Means and standard errors over re-samplings.", "Line plots"
    )
    columns = ["data", "loss", "best ρ", "score there", "± ", "score at ½", "±"]
    table = Table(columns, rows, "The fraction with the best test score, and what one half has.")
    return [Section("The sweep", [picture, table, _comparison(results), _beside(spec.paper)])]


def _comparison(results: pd.DataFrame) -> Text:
    """In how many (set, fraction) pairs re-weighting helps, split at the usual fractions."""
    wide = results[results["part"] == "G.3"].pivot_table(
        index=["dataset", "train_fraction"], columns="reweight", values="test_balanced_accuracy"
    )
    if wide.shape[1] < 2:
        return Text("Re-weighting was not run.")
    gain = wide[True] - wide[False]
    fraction = gain.index.get_level_values("train_fraction")
    said = [
        f"{label}: re-weighting changes the score by {gain[mask].mean():+.4f} on average and raises it in "
        f"{int((gain[mask] > 0).sum())} of {int(mask.sum())} pairs of set and fraction"
        for label, mask in (
            ("ρ below 0.1", fraction < 0.1),
            ("ρ from 0.1 to 0.7", (fraction >= 0.1) & (fraction <= 0.7)),
            ("ρ above 0.7", fraction > 0.7),
        )
        if mask.any()
    ]
    return Text("; ".join(said) + ".")


def sgd_page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    """Fig 14: scores over ρ. Fig 15: balanced accuracy and bias over the effective temperature."""
    figure, axes = _axes(4)
    sweep, heat = results[results["figure"] == "14"], results[results["figure"] == "15"]
    for axis, rate in zip(axes[:2], (0.05, 0.5), strict=True):
        part = sweep[sweep["learning_rate"] == rate].groupby("train_fraction")
        for name, color in zip(
            ("balanced_accuracy", "recall", "precision", "f1", "auc"), PALETTE, strict=False
        ):
            if len(part):
                mean = part[name].mean()
                axis.plot(mean.index, mean, ".-", lw=1, color=color, label=name)
        axis.set_title(f"lr {rate:g}, batch 20", fontsize=9)
        axis.set_xlabel("ρ_train", fontsize=8)
    for axis, name in zip(axes[2:], ("balanced_accuracy", "bias"), strict=True):
        for (fraction, group), color in zip(heat.groupby("train_fraction"), PALETTE, strict=False):
            mean = group.groupby("effective_temperature")[name].mean()
            axis.semilogx(mean.index, mean, ".-", lw=1, color=color, label=f"ρ = {fraction:g}")
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("lr/batch", fontsize=8)
    for axis in axes:
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=6)
    picture = Picture.from_matplotlib(figure, "anomaly-sgd-curves", "Means over seeds.", "Line plots")
    keys = ["figure", "learning_rate", "batch_size", "train_fraction"]
    shown = ["overlap", "bias", "balanced_accuracy", "auc", "settled"]
    table = results.groupby(keys)[shown].mean().reset_index()
    rows = [list(row) for row in table.itertuples(index=False)]
    return [Section("The curves", [picture, Table([*keys, *shown], rows), _beside(spec.paper)])]


QUANTITIES = ("overlap", "bias", "self_overlap", "train_error")
SETTING = ("samples_per_dim", "temperature", "teacher_bias", "train_fraction", "learn_bias")
SYMBOLS = ["α", "T", "b0", "ρ", "bias"]


def gibbs_page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    """Sampled values beside the theory's at each N, and what remains of the difference as N grows."""
    columns = ["N", *SYMBOLS, "quantity", "sampled", "±", "theory", "difference / ±", "R-hat of R, b"]
    rows = [
        [
            int(row["dim"]), *_setting(row), name, row[name], row[f"{name}_error"], row[f"{name}_theory"],
            row[f"{name}_deviation"], f"{row['overlap_r_hat']:.2f}, {row['bias_r_hat']:.2f}",
        ]
        for _, row in results.iterrows()
        for name in QUANTITIES
    ]  # fmt: skip
    formats = {"sampled": ".4f", "±": ".4f", "theory": ".4f", "difference / ±": "+.1f"}
    return [
        Section("As N grows", _limits(results)),
        Section("Sampled against solved", [Table(columns, rows, formats=formats)]),
    ]


def _setting(row: pd.Series) -> list[Any]:
    return [*(row[name] for name in SETTING[:-1]), "learned" if row["learn_bias"] else "known"]


def _limits(results: pd.DataFrame) -> list[Any]:
    """The difference from the theory as N → ∞ by a straight line in 1/N, setting by setting."""
    from equipoise.theory.anomaly import extrapolate

    rows: list[list[Any]] = []
    for _, group in results.groupby(list(SETTING), sort=False):
        for name in QUANTITIES:
            if group["dim"].nunique() < 2 or (name == "bias" and not group["learn_bias"].all()):
                continue
            found = extrapolate(group["dim"], group[name] - group[f"{name}_theory"], group[f"{name}_error"])
            rows.append([
                *_setting(group.iloc[0]), name, found.limit, found.standard_error,
                found.limit / found.standard_error, found.correction,
            ])  # fmt: skip
    if not rows:
        return [Text("One size only: nothing to extrapolate.")]
    within = sum(abs(row[-2]) <= 3 for row in rows)
    said = (
        f"{within} of {len(rows)} differences between sampled means and the saddle point vanish as N → ∞ within "
        f"three standard errors; the largest is {max(abs(row[-2]) for row in rows):.1f}. At finite N it "
        "is about c/N."
    )
    columns = [*SYMBOLS, "quantity", "difference at N → ∞", "±", "difference / ±", "c"]
    formats = {"difference at N → ∞": "+.4f", "±": ".4f", "difference / ±": "+.1f", "c": "+.2f"}
    return [Text(said), Table(columns, rows, formats=formats)]
