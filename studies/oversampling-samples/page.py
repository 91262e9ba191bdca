"""The page of made images: how near they are to real ones, what the paper says of that, and a sheet of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.report import Block, Headline, Picture, Section, Table, Text
from equipoise.studies import Spec

from ..shared.tables import Paired, counted, paired

PRINTED = {  # Tables 3 and 11: density, coverage, Fréchet distance; the paper's GAMO is GAMO2PIX
    "mnist": {
        "ours": (0.729, 0.511, 13.24), "DeepSMOTE": (0.345, 0.305, 13.27),
        "GAMO": (0.521, 0.346, 19.32), "BAGAN": (0.257, 0.338, 28.72),
    },
    "fashion-mnist": {
        "ours": (1.177, 0.379, 33.95), "DeepSMOTE": (0.396, 0.287, 42.39),
        "GAMO": (0.769, 0.403, 36.84), "BAGAN": (0.563, 0.132, 75.05),
    },
    "cifar10": {
        "ours": (2.042, 0.362, 89.53), "DeepSMOTE": (1.138, 0.287, 86.40),
        "GAMO": (2.240, 0.438, 101.52), "BAGAN": (0.393, 0.054, 133.82),
    },
}  # fmt: skip
MEASURES = {
    "feature_density": "density", "feature_coverage": "coverage", "feature_frechet": "Fréchet distance",
    "pixel_density": "density, pixels", "pixel_coverage": "coverage, pixels",
}  # fmt: skip


def page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    sections, said = [], []
    for dataset, mine in results.groupby("dataset", sort=False):
        claims = _claims(mine, str(dataset))
        blocks: list[Block] = [_table(mine, str(dataset)), _reading(), _sheet(mine, str(dataset))]
        if claims.rows:
            blocks.insert(0, claims)
            said.append(_said(mine, str(dataset), [row[-1] for row in claims.rows]))
        sections.append(Section(f"{dataset}: made images beside real ones", blocks))
    first = Headline(" ".join(said) or "Ours and the paper's rivals were not both run.")
    return [Section(sections[0].title, [first, *sections[0].blocks]), *sections[1:]]


def _said(mine: pd.DataFrame, dataset: str, verdicts: list[str]) -> str:
    """How many of the paper's orders were found again, and what SMOTE makes of the same images."""
    counts = ", ".join(
        counted(verdicts.count(word), word)
        for word in ("agrees", "differs", "cannot tell")
        if word in verdicts
    )
    sentence = f"{dataset}: of the paper's {len(verdicts)} orders of ours and a rival, {counts}."
    gains = {name: _gain(mine, name, "SMOTE") for name in ("feature_coverage", "feature_frechet")}
    told = ", ".join(f"{MEASURES[name]} {gain}" for name, gain in gains.items() if gain is not None)
    return f"{sentence} Ours less SMOTE: {told}." if told else sentence


def _gain(mine: pd.DataFrame, measure: str, rival: str) -> Paired | None:
    """Ours less a rival: paired by seed, over means of the classes; a single seed is paired by class."""
    if not {rival, "ours"} <= set(mine["method"]):
        return None
    wide = mine.pivot(index="seed", columns="method", values=measure)[["ours", rival]].dropna()
    if wide.empty:
        return None
    apart = np.array([np.subtract(*run) for run in wide.to_numpy()])
    return paired(apart.mean(axis=1) if len(apart) > 1 else apart[0])


def _claims(mine: pd.DataFrame, dataset: str) -> Table:
    """Does ours differ from a rival in the direction that the paper prints?"""
    rows: list[list[Any]] = []
    known = PRINTED.get(dataset, {})
    for rival in [name for name in known if name != "ours"]:
        for place, name in enumerate(list(MEASURES)[:3]):
            gain = _gain(mine, name, rival)
            if gain is not None:
                printed = known["ours"][place] - known[rival][place]
                claim = f"{MEASURES[name]}: ours less {rival}"
                rows.append([claim, printed, str(gain), gain.beside(printed)])
    caption = (
        "The paper's differences and ours, with a 95 % interval over the seeds (the classes of a single seed), "
        "and whether the signs agree."
    )
    names = ["difference", "paper", "here", "verdict"]
    return Table(names, rows, caption, formats={"paper": "+.3g"})


def _table(mine: pd.DataFrame, dataset: str) -> Table:
    rows = []
    for method, own in mine.groupby("method", sort=False):
        means = [float(np.mean([np.mean(run) for run in own[name]])) for name in MEASURES]
        printed = PRINTED.get(dataset, {}).get(str(method), (None, None, None))
        rows.append([method, len(own), *means, *printed, f"{own['fit_cpu_seconds'].mean():.0f}"])
    beside = ["paper's density", "paper's coverage", "paper's FID"]
    names = ["images", "seeds", *MEASURES.values(), *beside, "CPU seconds"]
    formats = dict.fromkeys([*MEASURES.values(), *beside], ".3g")
    return Table(names, rows, "Means over the minority classes and the seeds.", formats=formats)


def _reading() -> Text:
    return Text(
        "Fresh reals are other test images of the class: what a perfect sampler would have. Copies are training "
        "images drawn again. Density is no measure of quality above the value of fresh reals: images that bunch "
        "where the class is dense, as interpolations do, have more than 1. Coverage cannot be had by bunching, and "
        "copies lack it because the class has few images to copy."
    )


def _sheet(mine: pd.DataFrame, dataset: str) -> Picture:
    from matplotlib.figure import Figure

    runs = mine.sort_values("seed", kind="stable").drop_duplicates("method")
    sheets = {str(run["method"]): np.array(run["sheet"]) for _, run in runs.iterrows()}
    classes = runs["classes"].iloc[0]
    columns = len(next(iter(sheets.values())))
    figure = Figure(figsize=(0.5 * columns + 1.2, 0.52 * len(sheets) + 0.3), layout="constrained")
    axes = figure.subplots(len(sheets), columns, squeeze=False)
    for row, (method, images) in zip(axes, sheets.items(), strict=True):
        for ax, image in zip(row, images, strict=True):
            ax.imshow(image.squeeze(), cmap="gray_r", vmin=0, vmax=255)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        row[0].set_ylabel(method, fontsize=8, rotation=0, ha="right", va="center")
    for place, label in enumerate(classes):
        axes[0][place * columns // len(classes)].set_title(f"{label}", fontsize=8, loc="left")
    caption = f"Two images of every minority class of {dataset} by every method, seed {runs['seed'].iloc[0]}."
    return Picture.from_matplotlib(figure, f"oversampling-samples-{dataset}", caption, "Made images by class")
