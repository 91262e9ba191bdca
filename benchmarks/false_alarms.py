"""How often the report cries wolf on clean data: ``false_alarms.py [FIRST_SEED] [TABLES]``.

Two rates with exact 95% intervals: tables on which a group of rows is called credibly worse although the model is
right about all of them (it should be at most 5%), and rows that are suspected of a wrong label although all labels
are right (it should be under 5%, also of the rare class).
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

from equipoise.advisor import Advisor
from equipoise.advisor.reasons import bad_slices
from equipoise.diagnosis import diagnose
from equipoise.metrics import binomial_interval

SHAPES = [(400, 0.1, 0.5), (400, 0.1, 1.5), (1500, 0.04, 0.5), (1500, 0.04, 1.5), (800, 0.3, 3.0)]


def mixed_table(seed: int, n: int = 600) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers and a category, labels from a logistic model: logistic regression is right about every group."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc")).assign(
        site=rng.choice(list("ABCD"), n)
    )
    chance = 1 / (1 + np.exp(-(2.5 * frame["a"] + 0.7 * frame["b"] - 2.5)))
    return frame, (rng.random(n) < chance).astype(int)


def slices(seeds: range) -> None:
    named = 0
    for seed in seeds:
        advisor = Advisor(treatments=["logistic"], trials=0).fit(*mixed_table(seed))
        named += bool(bad_slices(advisor, [], seed))
    low, high = binomial_interval(named, len(seeds))
    print(f"slices: a group was named on {named} of {len(seeds)} clean tables ({low:.3f} to {high:.3f})")


def label_noise(seeds: range) -> None:
    flagged: dict[str, list[float]] = {"all rows": [], "rare rows": []}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n, share, gap = SHAPES[seed % len(SHAPES)]
        X = rng.normal(size=(n, 5)) if seed % 2 else rng.standard_t(4, size=(n, 5))
        y = (np.arange(n) < n * share).astype(int)
        X[y == 1, 0] += gap
        (finding,) = diagnose(X, y, questions=["label_noise"]).findings
        flagged["all rows"].append(finding.values["share"])
        flagged["rare rows"].append(finding.values["by_class"][1])
    for name, rates in flagged.items():
        worst, error = max(rates), np.std(rates, ddof=1) / np.sqrt(len(rates))
        print(
            f"label noise: {np.mean(rates):.4f} ± {error:.4f} of {name} suspected, at most {worst:.3f} of a table"
        )


if __name__ == "__main__":
    first, tables = (int(text) for text in (sys.argv[1:] + ["1000", "100"][len(sys.argv) - 1 :]))
    label_noise(range(first, first + tables))
    slices(range(first, first + tables))
