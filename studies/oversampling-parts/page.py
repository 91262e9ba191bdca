"""The page of the parts: the paper's claims, all combinations, and what each part adds, seed by seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.report import Block, Headline, Section, Table, Text
from equipoise.studies import Spec

from ..shared.tables import paired, spread

PARTS = {"batches": ("natural", "balanced"), "mixes": ("none", "uniform"), "decoder": ("none", "sum", "mean")}
_WHOLE = ("balanced", "uniform", "mean")
_TABLE_4 = {  # CIFAR-10, points of ACSA: what a part adds, and the settings with and without it
    ("oversampling", 54.51 - 35.51): {
        "mixes, in balanced batches": (_WHOLE, ("balanced", "none", "mean")),
        "mixes, in natural batches": (("natural", "uniform", "mean"), ("natural", "none", "mean")),
        "balanced batches, without mixes": (("balanced", "none", "mean"), ("natural", "none", "mean")),
        "mixes and balanced batches": (_WHOLE, ("natural", "none", "mean")),
    },
    ("decoder", 57.94 - 52.16): {
        "decoder, mean, in the whole": (_WHOLE, ("balanced", "uniform", "none")),
        "decoder, printed sum, in the whole": (
            ("balanced", "uniform", "sum"),
            ("balanced", "uniform", "none"),
        ),
    },
}


def page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    sections = []
    claims = []
    for dataset, mine in results.groupby("dataset", sort=False):
        updates = int(mine["updates"].iloc[0])
        told = Text(f"{updates:,} updates of the encoder, batches of 128; percent on the balanced test set.")
        effects = _effects(mine)
        claims.append(_claim(str(dataset), effects))
        blocks: list[Block] = [told, _combinations(mine), effects]
        sections.append(Section(f"{dataset}: what does the work", blocks))
    table = _table_4(results[results["dataset"] == "cifar10"])
    if table.rows:
        sections.insert(0, Section("The paper's claims", [table]))
    first = Section(sections[0].title, [Headline(" ".join(claims)), *sections[0].blocks])
    return [first, *sections[1:]]


def _table_4(mine: pd.DataFrame) -> Table:
    """What the paper's parts add on CIFAR-10, beside what each of their readings adds here, seed by seed."""
    scores = {key: own.set_index("seed")["acsa"] for key, own in mine.groupby(list(PARTS))}
    rows: list[list[Any]] = []
    for (part, printed), readings in _TABLE_4.items():
        for reading, (with_it, without) in readings.items():
            if with_it in scores and without in scores:
                gain = paired((scores[with_it] - scores[without]).dropna())
                claim = f"{part} {printed:+.2f} (Table 4)"
                rows.append([claim, reading, str(gain), gain.pairs, gain.beside(printed)])
    caption = (
        "CIFAR-10: what the paper's part adds in points of ACSA, what may be meant by it, our gain with its 95 % "
        "interval over seeds (Student's t), and whether both have one sign beyond the interval, whatever the size. "
        "The paper does not say which batches its row without oversampling has."
    )
    return Table(["the paper", "part", "ours", "seeds", "verdict"], rows, caption)


def _claim(dataset: str, effects: Table) -> str:
    """The part that gains most, with its interval, and how many parts can be told to help or to harm."""
    told = sum(row[-1] != "cannot tell" for row in effects.rows)
    name, _, seeds, gain, low, high, _ = max(effects.rows, key=lambda row: row[3])
    interval = "one seed tells no interval" if low is None else f"95% interval {low:+.1f} to {high:+.1f}"
    return (
        f"On {dataset}, {told or 'none'} of {len(effects.rows)} parts can be told to help or to harm with {seeds} "
        f"seed{'' if seeds == 1 else 's'}; the largest change is {gain:+.1f} points of ACSA ({name}; {interval})."
    )


def _combinations(mine: pd.DataFrame) -> Table:
    rows = []
    for key, own in mine.groupby(list(PARTS)):
        scores = [spread(own[name]) for name in ("acsa", "macro_f1", "auprc", "within_between")]
        rows.append([*key, len(own), *scores, f"{own['fit_cpu_seconds'].mean():.0f}"])
    names = [*PARTS, "seeds", "ACSA", "macro F1", "AUPRC-OVA", "within / between scatter", "CPU seconds"]
    return Table(names, rows, "Every combination; mean ± standard deviation where there are several seeds.")


def _effects(mine: pd.DataFrame) -> Table:
    """ACSA with a part less ACSA without, the other parts and the seed being equal."""
    rows: list[list[Any]] = []
    for part, (without, *others) in PARTS.items():
        rest = [name for name in ("seed", *PARTS) if name != part]
        wide = mine.pivot_table(index=rest, columns=part, values="acsa")
        for level in others:
            if without in wide and level in wide:
                rows.append(
                    _effect(f"{part}: {level} less {without}", (wide[level] - wide[without]).dropna())
                )
    names = ["part", "pairs", "seeds", "gain of ACSA", "low", "high", "verdict"]
    caption = (
        "Paired by seed and by the other parts; the interval (95 %, Student's t) is over the means of the seeds, "
        "so that it needs two seeds at least."
    )
    return Table(names, rows, caption, formats=dict.fromkeys(["gain of ACSA", "low", "high"], "+.2f"))


def _effect(name: str, gains: pd.Series[float]) -> list[Any]:
    means = gains.groupby(level="seed").mean()
    low = high = None
    if len(means) > 1:
        half = stats.t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means))
        low, high = means.mean() - half, means.mean() + half
    verdict = "cannot tell" if low is None or low <= 0 <= high else "helps" if low > 0 else "harms"
    return [name, len(gains), len(means), means.mean(), low, high, verdict]
