"""Fashion-MNIST-LT once more, on other images and with every choice made on validation data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from equipoise.report import Headline, Section, Table, Text
from equipoise.studies.grid import Settings
from equipoise.studies.spec import Spec

from ..shared.tables import claim, claims_section, gains, listed, said_of
from . import further

_first_study = import_module("..losses-fashion-lt.spec", __package__)

MEASURES = ("test_error", "test_acsa", "test_head_recall", "test_tail_recall")
TUNED: dict[str, tuple[str, Sequence[float]]] = {
    "CB-CE": ("beta", (0.99, 0.999, 0.9999)),
    "focal": ("phi", (0.5, 1.0, 2.0)),
    "CB-focal": ("phi", (0.5, 1.0, 2.0)),
    "NENum": ("r", (0.5, 1.0, 2.0)),
}
"""The one number of each method that is chosen on validation data, from three values; CE has none."""


def run_cell(
    method: str,
    ratio: float,
    draw: int,
    epochs: int,
    lr: float,
    head: int,
    held_out: int,
    strength: float | None = None,
    wrong_labels: float = 0.0,
    **params: float,
) -> dict[str, Any]:
    """One training; ``draw`` chooses the images, the network's first weights and the order.

    ``strength`` is the value of the method's number in :data:`TUNED`; ``None`` is the paper's. ``params`` are
    further parameters of the loss.
    """
    if strength is not None:
        params[TUNED[method][0]] = strength
    found: dict[str, Any] = _first_study.run_cell(
        method,
        ratio,
        lr,
        seed=draw,
        head=head,
        held_out=held_out,
        epochs=epochs,
        draw=draw,
        loss_params=params,
        wrong_labels=wrong_labels,
    )
    found.pop("weights", None)
    return found


def cells(
    methods: Sequence[str] = (*_first_study.BASELINES, "NENum"),
    ratios: Sequence[float] = (100, 10),
    draws: Sequence[int] = (11, 12, 13),
    tuned_draws: Sequence[int] = (31, 32, 33),
    noisy_draws: Sequence[int] = (41, 42, 43, 44, 45, 46, 47, 48),
    tau_draws: Sequence[int] = (51, 52, 53),
    standard_draws: Sequence[int] = (61, 62, 63),
    shown: Sequence[int] = (124_000, 248_000),
    lr: float = 0.015,
    head: int = 1000,
    held_out: int = 200,
    wrong_labels: float = 0.2,
) -> Iterator[Settings]:
    """Every method for two lengths of training; on other draws for three values of its own number; then
    the further questions."""
    from equipoise.datasets import exponential_counts

    def length_of(head: int, ratio: float, n: int = shown[0]) -> int:
        return max(round(n / exponential_counts(head, 10, ratio).sum()), 1)

    epochs = {ratio: [length_of(head, ratio, n) for n in shown] for ratio in ratios}
    size = {"lr": lr, "head": head, "held_out": held_out}
    for draw, ratio in product(draws, ratios):
        for length, method in product(epochs[ratio], methods):
            yield {"method": method, "ratio": ratio, "draw": draw, "epochs": length, **size}
    for draw, ratio, method in product(tuned_draws, ratios, methods):
        for strength in TUNED[method][1] if method in TUNED else (None,):
            common = {"method": method, "ratio": ratio, "draw": draw, "epochs": epochs[ratio][0], **size}
            yield {**common, "strength": strength}
    for cell in (
        *further.noisy_cells(noisy_draws, wrong_labels),
        *further.tau_cells(tau_draws, ratios),
    ):
        yield {**cell, "epochs": length_of(head, cell["ratio"]), **size}
    quarter = {**size, "head": head // 4}  # of each class, about as many images in all
    for cell in further.standard_cells(standard_draws):
        yield {**cell, "epochs": length_of(head // 4, 1), **quarter}


def chosen(at: pd.DataFrame, by: str) -> pd.DataFrame:
    """For each method the value of ``by`` with the least validation error, mean over the draws."""
    at = at.assign(**{by: at[by].fillna(-1)})
    errors = at.groupby(["method", by])["validation_error"].mean().unstack()
    best = errors.idxmin(axis=1)
    return at[at[by] == at["method"].map(best)]


def page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    """The claims, a table a ratio with NENum's paired gains, and what follows from them; the further questions."""
    apart = further.is_further(results)
    asked, results = results[apart], results[~apart]
    if "strength" not in results:
        results = results.assign(strength=np.nan)
    tuned = results.groupby("draw")["strength"].transform(lambda values: values.notna().any())
    parts = {
        "strength": ("its own number chosen", results[tuned]),
        "epochs": ("its length chosen", results[~tuned]),
    }
    rows, sections = [], []
    for by, (title, part) in parts.items():
        for ratio, at in part.groupby("ratio", sort=False):
            picked, ratio = chosen(at, by), float(ratio)  # type: ignore[arg-type]
            rows += _claims(picked, f"{ratio:g} : 1, {title}")
            sections.append(Section(f"Fashion-MNIST-LT {ratio:g} : 1, {title}", _blocks(picked, by)))
    said = [f"{s.title}: {b.text}" for s in sections for b in s.blocks if isinstance(b, Text)]
    beside = (
        "The paper's are CIFAR10-LT with ResNet-32 (Table 3), balanced CIFAR-10 with ResNet-110 (Table 5)."
    )
    rows += further.claims(asked)
    first = claims_section([Headline(text) for text in said[:1]], rows, beside)
    return [first, *sections, *further.sections(asked)]


def _claims(picked: pd.DataFrame, where: str) -> Iterator[list[Any]]:
    """NENum beside each other method for which the paper has an error."""
    printed = _first_study.PAPER.get(int(picked["ratio"].iloc[0]), {})
    errors = picked.pivot(index="draw", columns="method", values="test_error")
    if "NENum" in errors:
        for other, found in gains(errors, "NENum").items():
            if other in printed:
                yield claim("NENum", other, where, found, printed[other] - printed["NENum"])


def _blocks(picked: pd.DataFrame, by: str) -> list[Any]:
    ratio = int(picked["ratio"].iloc[0])
    rows: list[list[Any]] = []
    for method, mine in picked.groupby("method", sort=False):
        scores = [f"{mine[name].mean():.2f} ± {mine[name].std():.2f}" for name in MEASURES]
        paper = _first_study.PAPER.get(ratio, {}).get(str(method))
        rows.append(
            [
                method,
                _choice(str(method), mine[by].iloc[0], by),
                mine["validation_error"].mean(),
                *scores,
                paper,
            ]
        )
    names = [name[5:].replace("_", " ") for name in MEASURES]
    columns = ["method", "chosen", "validation error", *names, "paper"]
    caption = "Percent, mean ± standard deviation over draws; what is chosen has the least validation error."
    formats = {"validation error": ".2f", "paper": ".2f"}
    return [Table(columns, rows, caption, formats=formats), *_gains(picked)]


def _choice(method: str, value: float, by: str) -> str:
    if by == "epochs":
        return f"{value:g} epochs"
    return f"{TUNED[method][0]} = {value:g}" if method in TUNED else "–"


def _gains(picked: pd.DataFrame) -> list[Any]:
    errors = picked.pivot(index="draw", columns="method", values="test_error")
    if "NENum" not in errors or len(errors) < 2:
        return []
    found = gains(errors, "NENum")
    rows = [[method, str(gain), gain.pairs, gain.word("worse", "better")] for method, gain in found.items()]
    caption = (
        "Points of top-1 error that NENum gains, paired over draws, with the 95 % interval of their mean."
    )
    return [Text(said_of("NENum", found)), Table(["against", "gain", "draws", "NENum is"], rows, caption)]


def differs(results: pd.DataFrame) -> str:
    """What is not as in the paper, from the settings of the cells that are shown."""
    main = results[~further.is_further(results)]
    if "strength" not in main:
        main = main.assign(strength=np.nan)
    tuned = main.groupby("draw")["strength"].transform(lambda values: values.notna().any())
    by_length, by_number = main[~tuned], main[tuned]
    parts = [
        "As the study losses-fashion-lt, whose learning rate (0.015, chosen there on validation data) it takes, "
        f"with {listed(main['head'])} images in the head class. The images, the first weights and the order are "
        "drawn anew for each draw."
    ]
    for at, what in (
        (by_length, "trains for the number of epochs that has"),
        (by_number, "has the value of its own number (β, φ or r), of three, with"),
    ):
        if len(at):
            parts.append(
                f"On {at['draw'].nunique()} draws each method {what} the least error on {listed(at['held_out'])} "
                f"validation images of each class ({listed(at['epochs'])} epochs)."
            )
    parts.append("The test part is used once, for the tables.")
    if len(main) < len(results):
        parts.append(
            "The further questions have draws of their own, and nothing chosen: wrong labels on "
            f"{further.noisy_draws(results)} draws; τ₁ and τ₂ with the combined loss in the place of Meta-ENum; "
            f"balanced data with {listed(results[results['ratio'] == 1]['head'])} images of each class."
        )
    return " ".join(parts)


SPEC = Spec(
    name="losses-fresh",
    title="NENum against re-weighting on fresh draws of Fashion-MNIST-LT",
    reference="Wu & Li, Revisiting the Effective Number Theory, Tables 2, 3, 5 and 6 and Fig 6",
    run_cell=run_cell,
    grid=cells,
    sizes={
        "tiny": {
            "methods": ["CE", "NENum"],
            "ratios": [10],
            "draws": [11],
            "tuned_draws": [31],
            "noisy_draws": [41],
            "tau_draws": [51],
            "standard_draws": [61],
            "head": 100,
            "shown": [800, 1600],
        },
        "small": {},
        "paper": {
            "head": 5000,
            "shown": [3_000_000],
            "draws": [],
            "tuned_draws": [31, 32, 33, 34, 35],
            "noisy_draws": [],
            "tau_draws": [],
            "standard_draws": [],
        },
    },
    paper={"test_error": {str(ratio): numbers for ratio, numbers in _first_study.PAPER.items()}},
    differs=differs,
    page=page,
    requires_data=("fashion-mnist",),
    check=_first_study.check,
)
