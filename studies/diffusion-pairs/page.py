"""The page of the pairs: the gap against the three descriptors, the three signs, and how far sizes matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.report import COLORS, PALETTE, Headline, Picture, Section, Table, Text
from equipoise.studies import Spec
from equipoise.studies.plots import new_axes

from .spec import RATIOS, THRESHOLDS

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
    sizes = {size: group.set_index("partner") for size, group in results.groupby(_SIZE, sort=False)}
    (p, m) = RATIOS[0]
    limit = sizes[p, m, 0]
    largest = sizes[p, m, results["dimension"].max()]
    return [
        Section("What came out", [*_verdict(limit, largest), _signs_table(limit, largest, spec)]),
        Section(
            "The gap against the pair's descriptors (Figs 6 and 24)", [_picture(limit), _pairs_table(limit)]
        ),
        Section("How far the sizes matter", [_sizes_table(sizes, limit)]),
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


def _signs(pairs: pd.DataFrame, threshold: str) -> dict[str, tuple[float, float]]:
    """The signs whose pairs have been run."""
    return {
        name: signed(pairs, a, b, threshold)
        for name, (a, b, _) in _SIGNS.items()
        if {a, b} - {None} <= set(pairs.index)
    }


def _verdict(limit: pd.DataFrame, drawn: pd.DataFrame) -> list[Headline | Text]:
    exact, found = _signs(limit, _MAIN), _signs(drawn, _MAIN)
    right = sum(_SIGNS[name][2] * value > 0 for name, (value, _) in exact.items())
    settled = sum(_SIGNS[name][2] * value > 2 * error for name, (value, error) in found.items())
    said = "; ".join(
        f"{name}: {value:+.3f}" + (f" (drawn: {_number(*found[name])})" if name in found else "")
        for name, (value, _) in exact.items()
    )
    claim = (
        f"At the threshold {_MAIN} the theory agrees with {right} of the paper's {len(_SIGNS)} statements about "
        "which class is memorized first, in the limit of large dimension. Drawn instances of the paper's own size "
        f"confirm {settled} of the {len(found)} that were drawn, beyond two standard errors."
    )
    return [Headline(claim), Text(f"{said}.")]


def _signs_table(limit: pd.DataFrame, drawn: pd.DataFrame, spec: Spec) -> Table:
    rows = []
    for where, pairs in (("N → ∞", limit), (f"N = {drawn['dimension'].iloc[0]}", drawn)):
        found = [_signs(pairs, f"{t:g}") for t in THRESHOLDS]
        rows += [
            [name, spec.paper[_SIGNS[name][0]], where, *(_number(*one[name]) for one in found)]
            for name in found[0]
        ]
    columns = ["sign", "the paper", "size", *(f"threshold {t:g}" for t in THRESHOLDS)]
    return Table(
        columns,
        rows,
        "Gaps in training time τ; for instances with the standard error of their mean. Those of the "
        "limit are read off a grid of times by linear interpolation, which is good to about 0.01.",
    )


def _picture(main: pd.DataFrame) -> Picture:
    figure, axes = new_axes(10.2, 3.2, 1, 3)
    for axis, (column, label) in zip(axes, _DESCRIPTORS.items(), strict=True):
        ordered = main.sort_values(column)
        for threshold, color in zip(THRESHOLDS, PALETTE, strict=False):
            axis.plot(
                ordered[column],
                ordered[f"gap_{threshold:g}"],
                ".-",
                lw=0.8,
                ms=6,
                color=color,
                label=f"{threshold:g}",
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
        "The memorization gap of each pair against its three descriptors, for four thresholds of the test error, "
        "in the limit of large dimension; lines guide the eye. Above zero the partner is memorized first."
    )
    return Picture.from_matplotlib(
        figure, "diffusion-pairs-fig6", caption, "Three line plots of the memorization gap"
    )


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


def _sizes_table(sizes: Mapping[Any, pd.DataFrame], limit: pd.DataFrame) -> Table:
    rows: list[list[Any]] = []
    for (p, m, n), pairs in sizes.items():
        known = _signs(pairs, _MAIN)
        signs = [_number(*known[name]) if name in known else None for name in _SIGNS]
        both = pd.concat([limit[f"gap_{_MAIN}"], pairs[f"gap_{_MAIN}"]], axis=1, join="inner")
        size = [str(n), int(pairs["instances"].iloc[0])] if n else ["→ ∞", None]
        rows.append([f"{p:g}", f"{m:g}", *size, len(both), *signs])
    columns = ["χ_p", "χ_m", "N", "instances", "pairs", *_SIGNS]
    caption = (
        f"At the threshold {_MAIN}. The paper has P = 10000, N = 100 and M = 500: χ_p = 100 and χ_m = 5."
    )
    return Table(columns, rows, caption)
