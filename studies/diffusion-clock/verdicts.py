"""What the paper says of the clock, what these runs say, and whether the two agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..shared.tables import Paired, paired
from .gap_figures import correlation, moderate, partial_correlation

CANNOT_TELL = "cannot tell"
NOT_RUN = "not run"
_LATER = ("Trouser",)
"""Partners that the paper sees after the reference."""
_MACRO_F1 = 0.96


@dataclass(frozen=True)
class Finding:
    """What came out, in words, and the verdict on the paper's claim."""

    text: str
    verdict: str = CANNOT_TELL


def pair_gap(gaps: Any) -> Paired | None:
    """The mean gap of a pair over its seeds with an interval; None without any."""
    known = np.asarray(gaps, dtype=float)
    known = known[np.isfinite(known)]
    return paired(known) if len(known) else None


def first_in(gap: Paired | None, partner: str, reference: str) -> str:
    return CANNOT_TELL if gap is None else gap.word(reference, partner)


def share_effect(plain: pd.DataFrame) -> pd.Series[float]:
    """What going from the smallest to the largest share of the partner does to the gap, for each pair.

    Seeds for which only one of the two has been run are left out.
    """
    wide = plain.pivot_table(index=["partner", "seed"], columns="share", values="log_gap", sort=False)
    if wide.shape[1] < 2:
        return pd.Series(dtype=float)
    ends = wide[[wide.columns.min(), wide.columns.max()]].dropna()
    return (ends.iloc[:, 1] - ends.iloc[:, 0]).groupby(level="partner", sort=False).mean()


def findings(runs: pd.DataFrame, color: pd.DataFrame) -> dict[str, Finding]:
    """A finding for each claim of the paper, from the plain runs of Fashion-MNIST and of CIFAR-10."""
    balanced = runs[runs["share"] == 0.5]
    every = pd.concat([runs, color])
    return {
        "order": _order(balanced),
        "variance": _trend(correlation(balanced, "variance_partner"), 1),
        "share": _share(runs),
        "norm": _norm(balanced),
        "prediction": _trend(correlation(balanced, "predicted_log_gap"), 1),
        "cifar": _order(color[color["partner"] == "automobile"]),
        "assigner": _assigner(every["assigner_macro_f1"]),
    }


def _order(balanced: pd.DataFrame) -> Finding:
    seen: dict[str, list[str]] = {}
    decided, against = 0, 0
    for partner, own in balanced.groupby("partner", sort=False):
        reference = own["reference"].iloc[0]
        word = first_in(pair_gap(own["log_gap"]), str(partner), reference)
        seen.setdefault("partner" if word == partner else word, []).append(str(partner))
        expected = reference if partner in _LATER else partner
        decided += word == expected
        against += word not in (expected, CANNOT_TELL)
    if not seen:
        return Finding(NOT_RUN, NOT_RUN)
    parts = [
        f"{who if who == CANNOT_TELL else f'{who} first'}: {', '.join(names)}"
        for who, names in sorted(seen.items(), key=lambda item: item[0] == CANNOT_TELL)
    ]
    verdict = (
        "differs" if against else "agrees" if 2 * decided > len(balanced["partner"].unique()) else CANNOT_TELL
    )
    return Finding("; ".join(parts), verdict)


def _trend(found: tuple[float, float, float, int], sign: int, more: str = "") -> Finding:
    value, low, high, pairs = found
    if not np.isfinite(value):
        return Finding(f"{pairs} pairs: too few for a correlation")
    text = f"r = {value:+.2f} ({low:+.2f} to {high:+.2f}) over {pairs} pairs{more}"
    if sign * low > 0 and sign * high > 0:
        return Finding(text, "agrees")
    return Finding(text, "differs" if sign * low < 0 and sign * high < 0 else CANNOT_TELL)


def _norm(balanced: pd.DataFrame) -> Finding:
    kept, left_out = moderate(balanced)
    given = partial_correlation(balanced, "norm_ratio", "variance_partner")
    more = f", without {', '.join(left_out)}" if left_out else ""
    if np.isfinite(given[0]):
        more += (
            f"; at equal variance, over all pairs, r = {given[0]:+.2f} ({given[1]:+.2f} to {given[2]:+.2f})"
        )
    return _trend(correlation(kept, "norm_ratio"), -1, more)


def _share(plain: pd.DataFrame) -> Finding:
    effect = share_effect(plain)
    if not len(effect):
        return Finding("one share so far")
    found = paired(effect)
    low, high = plain["share"].min(), plain["share"].max()
    text = f"{found} in log steps from {low:.0%} to {high:.0%}, falls in {int((effect < 0).sum())} of {len(effect)}"
    return Finding(f"{text} pairs", found.word("agrees", "differs"))


def _assigner(f1: pd.Series[float]) -> Finding:
    if not len(f1):
        return Finding(NOT_RUN, NOT_RUN)
    lowest = float(f1.min())
    text = f"{f1.mean():.3f} in the mean of {len(f1)} runs, {lowest:.3f} to {f1.max():.3f}"
    return Finding(text, "agrees" if lowest > _MACRO_F1 else "differs")


def stopping_look(run: pd.Series[Any]) -> int:
    """The look at which one would stop: the first at which a third of a class's samples are copies, or the last."""
    fractions = np.array(
        [[np.nan if f is None else f for f in run[f"fraction_{role}"]] for role in ("reference", "partner")],
        dtype=float,
    )
    over = np.flatnonzero((fractions >= 1 / 3).any(axis=0))
    return int(over[0]) if len(over) else fractions.shape[1] - 1


def quality(runs: pd.DataFrame) -> pd.DataFrame:
    """Each run's sample quality by class at its stopping look, a line a run; NaN where it was not measured."""
    rows = []
    for _, run in runs.iterrows():
        at = stopping_look(run)
        row = {}
        for measure in ("density", "coverage", "frechet"):
            for role in ("reference", "partner"):
                values = run.get(f"{measure}_{role}")
                value = values[at] if isinstance(values, list) else None
                row[f"{measure}_{role}"] = np.nan if value is None else float(value)
        rows.append(row)
    return pd.DataFrame(rows, index=runs.index, dtype=float)
