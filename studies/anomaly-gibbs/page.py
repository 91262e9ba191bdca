"""Sampled values beside the theory's at each N, and what remains of the difference as N grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from equipoise.report import Headline, Section, Table, Text
from equipoise.studies.spec import Spec

QUANTITIES = ("overlap", "bias", "self_overlap", "train_error")
SETTING = ("samples_per_dim", "temperature", "teacher_bias", "train_fraction", "learn_bias", "balanced")
SYMBOLS = ["α", "T", "b0", "ρ", "bias", "weights"]


def page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    """The limits first, then every cell."""
    results = results.copy()
    given = results["balanced"] if "balanced" in results else pd.Series(False, index=results.index)
    results["balanced"] = given.eq(True)
    columns = ["N", *SYMBOLS, "quantity", "sampled", "±", "theory", "difference / ±", "R-hat of R, b"]
    rows = [
        [
            int(row["dim"]), *_setting(row), name, row[name], row[f"{name}_error"], row[f"{name}_theory"],
            row[f"{name}_deviation"], f"{row['overlap_r_hat']:.2f}, {row['bias_r_hat']:.2f}",
        ]
        for _, row in results.iterrows()
        for name in _sampled(row["learn_bias"])
    ]  # fmt: skip
    formats = {"sampled": ".4f", "±": ".4f", "theory": ".4f", "difference / ±": "+.1f"}
    return [
        Section("As N grows", _limits(results)),
        Section("Sampled against solved", [Table(columns, rows, formats=formats)]),
    ]


def _sampled(learn_bias: bool) -> list[str]:
    """The quantities that are sampled: a known bias is not."""
    return [name for name in QUANTITIES if learn_bias or name != "bias"]


def _setting(row: pd.Series) -> list[Any]:
    learned = "learned" if row["learn_bias"] else "known"
    return [*(f"{row[name]:.4g}" for name in SETTING[:4]), learned, "balanced" if row["balanced"] else "none"]


def _limits(results: pd.DataFrame) -> list[Any]:
    """The difference from the theory as N → ∞ by a straight line in 1/N, setting by setting."""
    from equipoise.theory.anomaly import extrapolate

    rows: list[list[Any]] = []
    for _, group in results.groupby(list(SETTING), sort=False):
        if group["dim"].nunique() < 2:
            continue
        for name in _sampled(group["learn_bias"].all()):
            found = extrapolate(group["dim"], group[name] - group[f"{name}_theory"], group[f"{name}_error"])
            rows.append([
                *_setting(group.iloc[0]), int(group["dim"].max()), name, found.limit, found.standard_error,
                found.limit / found.standard_error, found.correction,
            ])  # fmt: skip
    if not rows:
        return [Text("One size only: nothing to extrapolate.")]
    within = sum(abs(row[-2]) <= 3 for row in rows)
    sharp = sum(row[-3] <= 0.01 for row in rows)
    claim = (
        f"{within} of {len(rows)} differences between sampled means and the theory vanish as the dimension N "
        f"grows, within three standard errors; the largest is {max(abs(row[-2]) for row in rows):.1f} of them."
    )
    said = (
        f"{sharp} of the differences have a standard error of at most 0.01. At finite N they are about c/N."
    )
    columns = [*SYMBOLS, "largest N", "quantity", "difference at N → ∞", "±", "difference / ±", "c"]
    formats = {"difference at N → ∞": "+.4f", "±": ".4f", "difference / ±": "+.1f", "c": "+.2f"}
    return [Headline(claim), Text(said), Table(columns, rows, formats=formats)]
