"""Three further questions on draws of their own: wrong labels, τ₁ and τ₂ of Eq 20, and balanced data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from equipoise.report import Block, Section, Table, Text
from equipoise.studies.grid import Settings

from ..shared.tables import claim, paired, spread

WITH_WRONG_LABELS = ("CE", "CB-CE", "NENum", "NENum−")
TAUS = (0.0, 0.5, 2.0, 4.0)
"""Values of τ₁ with τ₂ = 1 and of τ₂ with τ₁ = 1, beside 1 for both (Fig 6)."""

STANDARD: dict[str, tuple[float, float]] = {
    "CE": (6.76, 28.67),
    "large margin": (6.46, 28.00),
    "DisturbLabel": (6.61, 28.46),
    "focal": (6.68, 28.28),
    "center": (6.38, 27.85),
    "Lq": (6.69, 28.78),
    "ISDA": (6.33, 27.57),
    "ISDA + dropout": (5.98, 26.35),
    "MetaSAug": (7.22, 28.75),
    "LPL, by predictions": (5.72, 25.42),
    "NENum": (6.28, 26.19),
    "Meta-ENum": (5.14, 24.86),
}
"""The rows of Tables 5 and 6, and the paper's errors on CIFAR-10 and CIFAR-100 with ResNet-110."""


def noisy_cells(draws: Sequence[int], share: float) -> Iterator[Settings]:
    for draw in draws:
        for method in WITH_WRONG_LABELS:
            yield {"method": method, "ratio": 10, "draw": draw, "wrong_labels": share}


def tau_cells(draws: Sequence[int], ratios: Sequence[float]) -> Iterator[Settings]:
    pairs = [(1.0, 1.0), *((tau, 1.0) for tau in TAUS), *((1.0, tau) for tau in TAUS)]
    for draw in draws:
        for ratio in ratios:
            for tau1, tau2 in pairs:
                yield {"method": "Combined", "ratio": ratio, "draw": draw, "tau1": tau1, "tau2": tau2}


def standard_cells(draws: Sequence[int]) -> Iterator[Settings]:
    for draw in draws:
        for method in STANDARD:
            yield {"method": method, "ratio": 1, "draw": draw}


def sections(results: pd.DataFrame) -> Iterator[Section]:
    """A section for each question that has cells."""
    for asked, blocks in (
        (_column(results, "wrong_labels").notna(), _noise),
        (_column(results, "tau1").notna(), _taus),
        (results["ratio"] == 1, _standard),
    ):
        if asked.any():
            yield blocks(results[asked])


def claims(results: pd.DataFrame) -> Iterator[list[Any]]:
    """What the paper says on wrong labels and on balanced data, and what is seen here."""
    noisy = results[_column(results, "wrong_labels").notna()]
    errors = _errors(noisy)
    if {"NENum", "NENum−"} <= set(errors):
        where = f"10 : 1, {100 * noisy['wrong_labels'].iloc[0]:g} % wrong labels"
        yield claim("NENum", "NENum−", where, paired((errors["NENum−"] - errors["NENum"]).dropna()))
    errors = _errors(results[results["ratio"] == 1])
    for method in STANDARD:
        if method != "CE" and {method, "CE"} <= set(errors):
            gain = paired((errors["CE"] - errors[method]).dropna())
            yield claim(method, "CE", "balanced", gain, STANDARD["CE"][0] - STANDARD[method][0])


def noisy_draws(results: pd.DataFrame) -> int:
    """On how many draws labels are wrong."""
    return int(results[_column(results, "wrong_labels").notna()]["draw"].nunique())


def is_further(results: pd.DataFrame) -> pd.Series[bool]:
    """Which cells belong to one of the three questions."""
    noisy, moved = _column(results, "wrong_labels").notna(), _column(results, "tau1").notna()
    return noisy | moved | (results["ratio"] == 1)


def _column(results: pd.DataFrame, name: str) -> pd.Series[Any]:
    return results[name] if name in results else pd.Series(float("nan"), index=results.index)


def _errors(at: pd.DataFrame) -> pd.DataFrame:
    return at.pivot(index="draw", columns="method", values="test_error")


def _rows(at: pd.DataFrame, base: str) -> list[list[Any]]:
    """Each method with its error and how far that lies above the error of ``base``, pair by pair."""
    errors = _errors(at)
    rows: list[list[Any]] = []
    for method in errors.mean().sort_values().index:
        beside = ""
        if method != base and base in errors:
            found = paired((errors[method] - errors[base]).dropna())
            beside = f"{found}, {found.word('better', 'worse')}"
        rows.append([method, spread(errors[method].dropna()), beside])
    return rows


def _noise(at: pd.DataFrame) -> Section:
    share = 100 * at["wrong_labels"].iloc[0]
    errors = _errors(at)
    blocks: list[Block] = []
    if {"NENum", "NENum−"} <= set(errors):
        gain = paired((errors["NENum−"] - errors["NENum"]).dropna())
        word = gain.word("differs", "agrees")
        blocks.append(
            Text(
                "The paper's reason for Eq 19 is that wrong labels do less harm. NENum with it gains "
                f"{gain} points over NENum−, which is Eq 28, without it ({gain.pairs} draws): {word}."
            )
        )
    caption = (
        f"Top-1 error in percent on clean test images, mean ± standard deviation over {len(errors)} draws; "
        f"{share:g} % of the training labels were replaced by another class, each as likely. The difference has "
        "the 95 % interval of the pairs."
    )
    blocks.append(Table(["method", "top-1 error", "against CB-CE"], _rows(at, "CB-CE"), caption))
    return Section(f"Fashion-MNIST-LT 10 : 1 with {share:g} % wrong labels", blocks)


def _taus(at: pd.DataFrame) -> Section:
    rows: list[list[Any]] = []
    for (tau1, tau2), mine in at.groupby(["tau1", "tau2"]):
        base = at[(at["tau1"] == 1) & (at["tau2"] == 1)]
        row: list[Any] = [f"{tau1:g}", f"{tau2:g}"]
        for ratio in at["ratio"].unique():
            here = mine[mine["ratio"] == ratio].set_index("draw")["test_error"]
            there = base[base["ratio"] == ratio].set_index("draw")["test_error"]
            both = (here - there).dropna()
            row.append(spread(here))
            row.append("" if (tau1, tau2) == (1, 1) or not len(both) else str(paired(both)))
        rows.append(row)
    names = [
        text for ratio in at["ratio"].unique() for text in (f"{ratio:g} : 1", f"{ratio:g} : 1, above τ = 1")
    ]
    caption = (
        "Top-1 error in percent of the combined loss (Eq 20, nothing learned on a meta set), and how far it lies "
        "above that with τ₁ = τ₂ = 1, with the 95 % interval of the pairs."
    )
    words = list(_words(at))
    said = (
        "Fig 6 finds that other values than 1 do somewhat better, and that 1 is close to them. Comparisons "
        f"with 1 here: {words.count('better')} better, {words.count('worse')} worse, "
        f"{words.count('cannot tell')} that cannot be told. By chance one in twenty goes beyond its interval."
    )
    return Section("τ₁ and τ₂ (Fig 6)", [Text(said), Table(["τ₁", "τ₂", *names], rows, caption)])


def _words(at: pd.DataFrame) -> Iterator[str]:
    """For each ratio and each other pair of values, how it does beside τ₁ = τ₂ = 1."""
    for _, here in at.groupby("ratio", sort=False):
        errors = here.pivot(index="draw", columns=["tau1", "tau2"], values="test_error")
        for pair in errors:
            beside = (errors[pair] - errors[1.0, 1.0]).dropna()
            if pair != (1.0, 1.0) and len(beside) > 1:
                yield paired(beside).word("better", "worse")


def _standard(at: pd.DataFrame) -> Section:
    rows = [[*row, *STANDARD[row[0]]] for row in _rows(at, "CE")]
    caption = (
        "Top-1 error in percent, mean ± standard deviation over draws; the difference has the 95 % interval of the "
        "pairs. The paper's columns are CIFAR-10 and CIFAR-100 with ResNet-110 (Tables 5 and 6)."
    )
    names = ["method", "top-1 error", "against CE", "paper, CIFAR-10", "paper, CIFAR-100"]
    formats = dict.fromkeys(names[-2:], ".2f")
    return Section("Balanced data (Tables 5 and 6)", [Table(names, rows, caption, formats=formats)])
