"""Still pictures of the clock study: the curves of each pair, and samples beside their neighbors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from equipoise.report import COLORS, PALETTE, Picture, new_axes

from .images import REFERENCES, unfold


def _reference(run: Any) -> str:
    return REFERENCES[run["data"]]


def _pair(run: Any) -> str:
    return f"{_reference(run)} and {run['partner']}"


def curves_picture(balanced: pd.DataFrame, name: str = "diffusion-clock-curves") -> Picture:
    """Fig 5a: a panel a pair, a line a class and seed, the threshold, and the times at which it is crossed."""
    from matplotlib.ticker import LogLocator, NullFormatter

    partners = list(dict.fromkeys(balanced["partner"]))
    columns = min(3, len(partners))
    rows = -(-len(partners) // columns)
    figure, axes = new_axes(3.2 * columns, 2.6 * rows + 0.4, rows, columns, len(partners))
    axes = np.atleast_1d(axes)
    for ax, partner in zip(axes, partners, strict=False):
        own = balanced[balanced["partner"] == partner]
        for _, run in own.iterrows():
            _draw_run(ax, run)
        ax.axhline(1 / 3, color=COLORS["muted"], ls="--", lw=0.9)
        ax.set(xscale="log", title=_pair(own.iloc[0]), ylim=(-0.03, 1.03))
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.title.set_fontsize(9)
        ax.set_xlabel("training step", fontsize=8)
    for ax in axes[::columns]:
        ax.set_ylabel("memorized fraction", fontsize=8)
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
    for name, label, color in (("sneaker", _reference(run), PALETTE[0]), ("partner", "partner", PALETTE[1])):
        fractions = np.array([np.nan if f is None else f for f in run[f"fraction_{name}"]], dtype=float)
        ax.plot(run["step"], fractions, color=color, marker=".", ms=4, lw=1.2, label=label)
        if run[f"time_{name}"] is not None and np.isfinite(run[f"time_{name}"]):
            ax.axvline(run[f"time_{name}"], color=color, ls=":", lw=1)


def gallery_pictures(balanced: pd.DataFrame) -> Iterator[Picture]:
    """Figs 11-19: samples of each pair, below each its two nearest training images; copies framed."""
    if "gallery" not in balanced:
        return
    kept = balanced[[isinstance(gallery, list) and len(gallery) > 0 for gallery in balanced["gallery"]]]
    for _, run in kept.drop_duplicates("partner").iterrows():
        yield _gallery_picture(run)


def _gallery_picture(run: Any) -> Picture:
    from matplotlib.figure import Figure

    items: list[dict[str, Any]] = run["gallery"]
    channels = 1 if run["data"] == "fashion-mnist" else 3

    figure = Figure(figsize=(0.75 * len(items) + 1.1, 2.9), layout="constrained")
    axes = figure.subplots(3, len(items), squeeze=False)
    for column, item in enumerate(items):
        for row, image in enumerate([item["sample"], *item["nearest"]]):
            ax = axes[row, column]
            shown = unfold(np.array([image]), channels)[0].transpose(1, 2, 0)
            ax.imshow(shown[..., 0] if channels == 1 else shown, cmap="gray_r", vmin=0, vmax=255)
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
        f"{_pair(run)} at the end: samples with d(nn1)/d(nn2) above them; a framed one is a copy.",
        f"Generated images of {_pair(run)} with their two nearest training images",
    )


def distances_picture(balanced: pd.DataFrame, name: str = "diffusion-clock-distances") -> Picture | None:
    """Figs 11-19, right: mean distances of samples to their two nearest training images, by class and pair."""
    if "nearest_sneaker" not in balanced:
        return None
    seen = balanced[[isinstance(values, list) for values in balanced["nearest_sneaker"]]].drop_duplicates(
        "partner"
    )
    if not len(seen):
        return None
    columns = min(3, len(seen))
    rows = -(-len(seen) // columns)
    figure, axes = new_axes(3.2 * columns, 2.6 * rows, rows, columns, len(seen))
    for ax, (_, run) in zip(np.atleast_1d(axes), seen.iterrows(), strict=False):
        labels = {"sneaker": _reference(run), "partner": run["partner"]}
        for (role, label), color in zip(labels.items(), PALETTE, strict=False):
            for which, style in (("nearest", "-"), ("second", "--")):
                values = np.array([np.nan if d is None else d for d in run[f"{which}_{role}"]], dtype=float)
                ax.plot(run["step"], values, style, color=color, lw=1.2, label=f"{label}, {which}")
        ax.set(xscale="log", title=_pair(run), xlabel="training step", ylabel="distance")
        ax.title.set_fontsize(9)
        ax.legend(fontsize=6)
    return Picture.from_matplotlib(
        figure,
        name,
        "Mean distance of the samples to their nearest and second nearest training image.",
        "Distances of samples to training images over training steps, a panel a pair",
    )
