"""What the tables of several studies share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from equipoise.report import Block, Headline, Section, Table


def spread(values: pd.Series[float]) -> str:
    """Mean and standard deviation; the mean alone of a single run."""
    return f"{values.mean():.2f} ± {values.std(ddof=1):.2f}" if len(values) > 1 else f"{values.mean():.2f}"


def listed(values: npt.ArrayLike) -> str:
    """The different values of a setting, in their order: "100 or 10"."""
    return " or ".join(
        f"{v:,g}" if isinstance(v, (int, float)) else str(v) for v in dict.fromkeys(np.ravel(values).tolist())
    )


@dataclass(frozen=True)
class Paired:
    """The mean of paired differences, half the width of its 95 % interval, and what may be said."""

    mean: float
    half_width: float
    pairs: int

    @property
    def told(self) -> bool:
        """Whether the interval leaves zero out."""
        return abs(self.mean) > self.half_width

    def word(self, less: str = "less", more: str = "more") -> str:
        """The word for the sign of the difference, or ``"cannot tell"``."""
        if not self.told:
            return "cannot tell"
        return more if self.mean > 0 else less

    def beside(self, printed: float) -> str:
        """Whether the difference has the sign of a printed one."""
        return self.word("differs", "agrees") if printed > 0 else self.word("agrees", "differs")

    def __str__(self) -> str:
        return (
            f"{self.mean:+.2f} ± {self.half_width:.2f}"
            if np.isfinite(self.half_width)
            else f"{self.mean:+.2f}"
        )


def counted(n: int, verdict: str) -> str:
    """So many verdicts, as a part of a sentence."""
    verbs = {"agrees": "agree", "differs": "differ", "cannot tell": "cannot be told"}
    return f"{n} {verdict if n == 1 and verdict != 'cannot tell' else verbs[verdict]}"


def gain(mine: pd.DataFrame, measure: str, method: str, over: str) -> Paired | None:
    """What one method has above another, seed by seed; None where no seed has both."""
    wide = mine.pivot_table(index="seed", columns="method", values=measure)
    if not {method, over} <= set(wide):
        return None
    differences = (wide[method] - wide[over]).dropna()
    return paired(differences) if len(differences) else None


def gains(errors: pd.DataFrame, method: str) -> dict[str, Paired]:
    """How far the error of ``method`` lies below that of each other column, pair by pair over the rows."""
    others = errors.columns.drop(method)
    found = {str(other): (errors[other] - errors[method]).dropna() for other in others}
    return {other: paired(gain) for other, gain in found.items() if len(gain)}


def said_of(method: str, found: dict[str, Paired]) -> str:
    """The gains of a method in a sentence, as far as their intervals allow."""
    words = {other: gain.word("worse", "better") for other, gain in found.items()}
    parts = [
        f"{verb} {', '.join(other for other, word in words.items() if word == told)}"
        for verb, told in (
            ("is better than", "better"),
            ("is worse than", "worse"),
            ("cannot be told from", "cannot tell"),
        )
        if told in words.values()
    ]
    return f"{method} {'; it '.join(parts)}."


def claim(method: str, other: str, where: str, gain: Paired, printed: float | None = None) -> list[Any]:
    """A row of :func:`claims_section`: what the paper says of two methods, its number, ours, and the word.

    A comparison for which the paper prints no number is one in which it calls ``method`` the better.
    """
    word, number = (
        ("better", "–") if printed is None else ("better" if printed > 0 else "worse", f"{printed:+.2f}")
    )
    said = gain.beside(1.0 if printed is None else printed)
    return [f"{method} is {word} than {other}, {where}", number, str(gain), gain.pairs, said]


def claims_section(first: Sequence[Headline], rows: Sequence[Sequence[Any]], paper: str) -> Section:
    """The first section of a page: the answer in a sentence, then claim by claim.

    ``paper`` says where the paper's numbers are from.
    """
    caption = (
        "Points of top-1 error that the first method gains over the second: the paper's, and ours as the mean of "
        f"the pairs with its 95 % interval. {paper}"
    )
    table: list[Block] = [Table(["claim", "paper", "gain", "pairs", "here"], rows, caption)] if rows else []
    return Section("What the paper says, and what is seen here", [*first, *table])


def paired(differences: npt.ArrayLike) -> Paired:
    """Student's interval of differences, pair by pair: the one rule by which pages say better or worse.

    A single pair has an interval without bounds, so that nothing is said of it.
    """
    d = np.asarray(differences, dtype=np.float64)
    if len(d) < 2:
        return Paired(float(d.mean()), float("inf"), len(d))
    half = stats.t.ppf(0.975, len(d) - 1) * d.std(ddof=1) / np.sqrt(len(d))
    return Paired(float(d.mean()), float(half), len(d))
