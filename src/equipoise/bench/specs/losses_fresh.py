"""Fashion-MNIST-LT once more, on other images and with every choice made on validation data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.bench.grid import Settings
from equipoise.bench.spec import Spec
from equipoise.bench.specs.losses_fashion_lt import BASELINES, PAPER, check
from equipoise.bench.specs.losses_fashion_lt import run_cell as run_loss
from equipoise.report import Section, Table, Text

MEASURES = ("test_error", "test_acsa", "test_head_recall", "test_tail_recall")


def run_cell(
    method: str, ratio: float, draw: int, epochs: int, lr: float, head: int, held_out: int
) -> dict[str, Any]:
    """One training; ``draw`` chooses the images, the network's first weights and the order."""
    found = run_loss(method, ratio, lr, seed=draw, head=head, held_out=held_out, epochs=epochs, draw=draw)
    found.pop("weights", None)
    return found


def cells(
    methods: Sequence[str] = (*BASELINES, "NENum"),
    ratios: Sequence[float] = (100, 10),
    draws: Sequence[int] = (11, 12, 13),
    shown: Sequence[int] = (124_000, 248_000),
    lr: float = 0.015,
    head: int = 1000,
    held_out: int = 200,
) -> Iterator[Settings]:
    """Draw by draw: every method for two lengths of training."""
    from equipoise.datasets import exponential_counts

    for draw in draws:
        for ratio in ratios:
            size = int(exponential_counts(head, 10, ratio).sum())
            for samples in shown:
                for method in methods:
                    yield {
                        "method": method, "ratio": ratio, "draw": draw, "lr": lr, "head": head,
                        "held_out": held_out, "epochs": max(round(samples / size), 1),
                    }  # fmt: skip


def chosen(at: pd.DataFrame) -> pd.DataFrame:
    """For each method the length of training with the least validation error, mean over the draws."""
    errors = at.groupby(["method", "epochs"])["validation_error"].mean().unstack()
    best = errors.idxmin(axis=1)
    return at[at["epochs"] == at["method"].map(best)]


def page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    """A table a ratio, NENum's paired gains, and the sentence that follows from them."""
    return [
        Section(f"Fashion-MNIST-LT {ratio:g} : 1", _blocks(at, float(ratio)))  # type: ignore[arg-type]
        for ratio, at in results.groupby("ratio", sort=False)
    ]


def _blocks(at: pd.DataFrame, ratio: float) -> list[Any]:
    picked = chosen(at)
    rows: list[list[Any]] = []
    for method, mine in picked.groupby("method", sort=False):
        scores = [f"{mine[name].mean():.2f} ± {mine[name].std():.2f}" for name in MEASURES]
        rows.append([method, int(mine["epochs"].iloc[0]), mine["validation_error"].mean(), *scores,
                     PAPER.get(int(ratio), {}).get(str(method))])  # fmt: skip
    columns = [
        "method",
        "epochs",
        "validation error",
        *(name[5:].replace("_", " ") for name in MEASURES),
        "paper",
    ]
    caption = (
        "Percent, mean ± standard deviation over draws; the number of epochs has the least validation error."
    )
    formats = {"validation error": ".2f", "paper": ".2f"}
    return [Table(columns, rows, caption, formats=formats), *_gains(picked)]


def _gains(picked: pd.DataFrame) -> list[Any]:
    errors = picked.pivot(index="draw", columns="method", values="test_error")
    if "NENum" not in errors or len(errors) < 2:
        return []
    rows: list[list[Any]] = []
    for method in errors.columns.drop("NENum"):
        gain = errors[method] - errors["NENum"]
        spread = float(np.sqrt((errors[method].var() + errors["NENum"].var()) / 2))
        rows.append([method, gain.mean(), gain.sem(), f"{gain.min():+.2f} … {gain.max():+.2f}", spread])
    beyond = [row[0] for row in rows if row[1] > row[4]]
    below = [row[0] for row in rows if row[1] < 0]
    said = (
        f"NENum is better beyond the spread than {', '.join(beyond) or 'none'}; "
        f"worse than {', '.join(below) or 'none'}."
    )
    columns = ["against", "gain", "±", "draw by draw", "spread"]
    caption = (
        "Points of top-1 error that NENum gains, paired over draws, with the standard error of their mean."
    )
    formats = {"gain": "+.2f", "±": ".2f", "spread": ".2f"}
    return [Text(said), Table(columns, rows, caption, formats=formats)]


SPEC = Spec(
    name="losses-fresh",
    title="NENum against re-weighting on fresh draws of Fashion-MNIST-LT",
    reference="Wu & Li, Revisiting the Effective Number Theory, Tables 2 and 3",
    run_cell=run_cell,
    grid=cells,
    sizes={
        "tiny": {
            "methods": ["CE", "NENum"],
            "ratios": [10],
            "draws": [11, 12],
            "head": 100,
            "shown": [800, 1600],
        },
        "small": {},
        "paper": {"head": 5000, "shown": [3_000_000], "draws": [11, 12, 13, 14, 15]},
    },
    paper={"test_error": {str(ratio): numbers for ratio, numbers in PAPER.items()}},
    differs=(
        "As the study losses-fashion-lt, whose learning rate (0.015, chosen there on validation data) it takes. "
        "The images, the first weights and the order are drawn anew for each draw; each method trains for the "
        "number of epochs that has the least error on 200 validation images a class; the test part is used once, "
        "for the table."
    ),
    page=page,
    metrics=("test_error",),
    requires_data=("fashion-mnist",),
    check=check,
)
