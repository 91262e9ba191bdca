"""Still pictures of the clock study: the curves of each pair, and samples beside their neighbors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from equipoise.report import COLORS, PALETTE, Picture, new_axes

from .folding import unfold


def _panels(count: int) -> tuple[Any, Any]:
    """A panel a pair."""
    columns = min(3, count)
    rows = -(-count // columns)
    figure, axes = new_axes(3.2 * columns, 2.6 * rows + 0.4, rows, columns, count)
    return figure, np.atleast_1d(axes)


def _label(axes: Any, titles: list[str], ylabel: str) -> None:
    """Training steps on a log axis, which knows its limits only when all is drawn."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for ax, title in zip(axes, titles, strict=False):
        ax.set(xscale="log", title=title)
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.title.set_fontsize(9)
        ax.set_xlabel("training step", fontsize=8)
    for ax in axes[::3]:
        ax.set_ylabel(ylabel, fontsize=8)


def curves_picture(balanced: pd.DataFrame, name: str = "diffusion-clock-curves") -> Picture:
    """Fig 5a: a panel a pair, a line a class and seed, the threshold, and the times at which it is crossed."""
    partners = list(dict.fromkeys(balanced["partner"]))
    reference = balanced["reference"].iloc[0]
    figure, axes = _panels(len(partners))
    for ax, partner in zip(axes, partners, strict=False):
        for _, run in balanced[balanced["partner"] == partner].iterrows():
            _draw_run(ax, run)
        ax.axhline(1 / 3, color=COLORS["muted"], ls="--", lw=0.9)
        ax.set_ylim(-0.03, 1.03)
    _label(axes, [f"{reference} and {partner}" for partner in partners], "memorized fraction")
    handles, labels = axes[0].get_legend_handles_labels()
    first = dict(zip(labels, handles, strict=True))
    figure.legend(first.values(), first, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return Picture.from_matplotlib(
        figure,
        name,
        "Equal shares, a line a class and seed; dotted: when a third of the class's samples are copies. "
        "Runs end when both classes have crossed.",
        "Memorized fraction of both classes over training steps, a panel a pair",
    )


def _draw_run(ax: Any, run: pd.Series[Any]) -> None:
    for name, label, color in (
        ("reference", run["reference"], PALETTE[0]),
        ("partner", "partner", PALETTE[1]),
    ):
        fractions = np.array([np.nan if f is None else f for f in run[f"fraction_{name}"]], dtype=float)
        ax.plot(run["step"], fractions, color=color, marker=".", ms=4, lw=1.2, alpha=0.7, label=label)
        if pd.notna(run[f"time_{name}"]):
            ax.axvline(run[f"time_{name}"], color=color, ls=":", lw=1, alpha=0.6)


def gallery_pictures(balanced: pd.DataFrame) -> Iterator[Picture]:
    """Figs 11-19: samples of each pair, below each its two nearest training images; copies framed."""
    if "gallery" not in balanced:
        return
    kept = balanced[[isinstance(gallery, list) and len(gallery) > 0 for gallery in balanced["gallery"]]]
    for _, run in kept.drop_duplicates("partner").iterrows():
        yield _gallery_picture(run)


def _gallery_picture(run: pd.Series[Any]) -> Picture:
    from matplotlib.figure import Figure

    items, pair = run["gallery"], f"{run['reference']} and {run['partner']}"
    figure = Figure(figsize=(0.75 * len(items) + 1.1, 2.9), layout="constrained")
    axes = figure.subplots(3, len(items), squeeze=False)
    for column, item in enumerate(items):
        for row, image in enumerate([item["sample"], *item["nearest"]]):
            ax = axes[row, column]
            pixels = np.moveaxis(unfold(np.array([image]), run["fold_by"])[0], 0, -1)
            ax.imshow(pixels[..., 0] if pixels.shape[-1] == 1 else pixels, cmap="gray_r", vmin=0, vmax=255)
            ax.set(xticks=[], yticks=[])
            copy = row == 0 and item["ratio"] < 1 / 3
            for spine in ax.spines.values():
                spine.set(color=COLORS["minority"] if copy else COLORS["grid"], lw=2.5 if copy else 0.8)
        axes[0, column].set_title(f"{item['ratio']:.2f}", fontsize=8)
    for row, label in enumerate(("sample", "nearest", "second")):
        axes[row, 0].set_ylabel(label, fontsize=8)
    return Picture.from_matplotlib(
        figure,
        f"diffusion-clock-samples-{run['partner'].lower().replace(' ', '-')}",
        f"{pair} at the end: samples with d(nn1)/d(nn2) above them; a framed one is a copy.",
        f"Generated images of {pair} with their two nearest training images",
    )


def distances_picture(balanced: pd.DataFrame, name: str = "diffusion-clock-distances") -> Iterator[Picture]:
    """Figs 11-19, right: mean distances of samples to their two nearest training images, a panel a pair."""
    seen = balanced.drop_duplicates("partner")
    if not len(seen):
        return
    figure, axes = _panels(len(seen))
    for ax, (_, run) in zip(axes, seen.iterrows(), strict=False):
        for role, color in (("reference", PALETTE[0]), ("partner", PALETTE[1])):
            for which, style in (("nearest", "-"), ("second", "--")):
                values = np.array([np.nan if d is None else d for d in run[f"{which}_{role}"]], dtype=float)
                label = f"{run['reference'] if role == 'reference' else role}, {which}"
                ax.plot(run["step"], values, style, color=color, lw=1.2, label=label)
    _label(axes, [f"{run['reference']} and {run['partner']}" for _, run in seen.iterrows()], "distance")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    yield Picture.from_matplotlib(
        figure,
        name,
        "Mean distance of the samples to their nearest and second nearest training image, the first seed.",
        "Distances of samples to training images over training steps, a panel a pair",
    )
