"""The page of the pairs: the gap against the three descriptors, the three signs, and how far sizes matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.report import COLORS, PALETTE, Note, Picture, Section, Table
from equipoise.studies import Spec
from equipoise.studies.plots import new_axes

from .spec import THRESHOLDS

_MAIN = "1.2"
_DESCRIPTORS = {
    "variance_partner": "variance of the partner",
    "norm_ratio": "centroid norm, partner / Sneaker",
    "cosine": "cosine to Sneaker",
}
_SIZE = ["features_per_dim", "samples_per_dim", "dimension"]
_SIGNS = {
    "Sneaker before Trouser": ("Trouser", None, -1),
    "gap of Sandal above that of Pullover": ("Sandal", "Pullover", 1),
    "gap of Shirt above that of Pullover": ("Shirt", "Pullover", 1),
}


def page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    main = results[results["dimension"] == results["dimension"].max()].set_index("partner")
    return [
        Section("What came out", [_verdict(main), _signs_table(main, spec)]),
        Section("The gap against the pair's descriptors (Figs 6 and 24)", [_picture(main), _pairs_table(main)]),
        Section("How far the sizes matter", [_sizes_table(results)]),
    ]


def signed(pairs: pd.DataFrame, a: str, b: str | None, threshold: str) -> tuple[float, float]:
    """A gap, or the difference of two on common draws, with its jackknife error over instances."""
    value = float(pairs.loc[a, f"gap_{threshold}"])
    draws = np.asarray(pairs.loc[a, f"left_out_{threshold}"], dtype=np.float64)
    if b is not None:
        value -= float(pairs.loc[b, f"gap_{threshold}"])
        draws = draws - np.asarray(pairs.loc[b, f"left_out_{threshold}"], dtype=np.float64)
    n = len(draws)
    if n == 0:  # the limit has no instances
        return value, 0.0
    return value, float(np.sqrt((n - 1) / n * ((draws - draws.mean()) ** 2).sum()))


def _number(value: float, error: float) -> str:
    if error == 0:
        return f"{value:+.3f}"
    return f"{value:+.3f} ± {error:.3f}"


def _verdict(main: pd.DataFrame) -> Note:
    found = {name: signed(main, a, b, _MAIN) for name, (a, b, _) in _SIGNS.items()}
    settled = [sign * found[name][0] > 2 * found[name][1] for name, (_, _, sign) in _SIGNS.items()]
    said = "; ".join(f"{name}: {_number(*value)}" for name, value in found.items())
    text = (
        f"At the threshold {_MAIN}, {sum(settled)} of the paper's three hard signs hold beyond two standard errors. "
        f"{said}."
    )
    return Note(text, "good" if all(settled) else "warning", "The three signs")


def _signs_table(main: pd.DataFrame, spec: Spec) -> Table:
    rows = [
        [name, spec.paper[a], *(_number(*signed(main, a, b, f"{t:g}")) for t in THRESHOLDS)]
        for name, (a, b, _) in _SIGNS.items()
    ]
    columns = ["sign", "the paper", *(f"threshold {t:g}" for t in THRESHOLDS)]
    return Table(columns, rows, "Gaps in training time τ, with the standard error over instances.")


def _picture(main: pd.DataFrame) -> Picture:
    figure, axes = new_axes(10.2, 3.2, 1, 3)
    for axis, (column, label) in zip(axes, _DESCRIPTORS.items(), strict=True):
        ordered = main.sort_values(column)
        for threshold, color in zip(THRESHOLDS, PALETTE, strict=False):
            name = f"{threshold:g}"
            errors = [signed(main, partner, None, name)[1] for partner in ordered.index]
            axis.errorbar(
                ordered[column], ordered[f"gap_{name}"], yerr=errors, fmt=".-", lw=0.8, ms=5, color=color, label=name
            )
        for partner, row in ordered.iterrows():
            axis.annotate(str(partner), (row[column], row["gap_1.3"]), fontsize=6, rotation=30,
                          xytext=(2, 4), textcoords="offset points")  # fmt: skip
        axis.axhline(0, color=COLORS["muted"], lw=0.9, ls="--")
        axis.margins(x=0.12, y=0.16)
        axis.set_xlabel(label, fontsize=8)
    axes[0].set_ylabel("τ(Sneaker) − τ(partner)", fontsize=8)
    axes[0].legend(fontsize=6, frameon=False, title="threshold", title_fontsize=6)
    caption = (
        "The memorization gap of each pair against its three descriptors, for four thresholds of the test error; "
        "bars are standard errors over instances, lines guide the eye. Above zero the partner is memorized first."
    )
    return Picture.from_matplotlib(figure, "diffusion-pairs-fig6", caption, "Three line plots of the memorization gap")


def _pairs_table(main: pd.DataFrame) -> Table:
    rows: list[list[Any]] = []
    for partner, row in main.sort_values(f"gap_{_MAIN}", ascending=False).iterrows():
        gaps = [_number(*signed(main, str(partner), None, f"{t:g}")) for t in THRESHOLDS]
        rows.append([
            partner, row["variance_sneaker"], row["variance_partner"], row["norm_ratio"], row["cosine"], *gaps,
        ])  # fmt: skip
    columns = ["partner", "variance of Sneaker", "variance", "norm ratio", "cosine"]
    columns += [f"gap at {t:g}" for t in THRESHOLDS]
    formats = dict.fromkeys(columns[1:5], ".3f")
    return Table(columns, rows, "Variances are in units of the pair's own.", formats)


def _sizes_table(results: pd.DataFrame) -> Table:
    main = results[results["dimension"] == results["dimension"].max()].set_index("partner")[f"gap_{_MAIN}"]
    rows: list[list[Any]] = []
    for (p, m, n), group in results.groupby(_SIZE, sort=False):
        pairs = group.set_index("partner")
        if not {"Trouser", "Sandal", "Shirt", "Pullover"} <= set(pairs.index):
            continue
        signs = [_number(*signed(pairs, a, b, _MAIN)) for a, b, _ in _SIGNS.values()]
        both = pd.concat([main, pairs[f"gap_{_MAIN}"]], axis=1).dropna()
        size = [str(n), int(pairs["instances"].iloc[0])] if n else ["→ ∞", None]
        rows.append([f"{p:g}", f"{m:g}", *size, *signs, float(both.corr().iloc[0, 1])])
    columns = ["χ_p", "χ_m", "N", "instances", *_SIGNS, "correlation with the first row"]
    caption = f"At the threshold {_MAIN}. The first row has the paper's P = 10000, N = 100 and M = 500; rows with N → ∞ have no error."
    return Table(columns, rows, caption, {columns[-1]: ".3f"})
