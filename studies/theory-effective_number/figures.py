"""The theory figures of Wu & Li on effective numbers, each with what the formulas say about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._core.checks import FloatArray
from equipoise._core.random import as_generator
from equipoise.report import COLORS, PALETTE, new_axes
from equipoise.theory.effective_number import (
    LinearSplit,
    bounded_gaussian_split,
    data_scatter,
    disc_split,
    effective_number,
    simulate_covering,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SMALL, _LARGE, _LINE = PALETTE[7], PALETTE[1], COLORS["muted"]
_CENTER = np.array([1.0, 1.0])

STUDIES = {
    "6": "losses-what-pays (τ₁ and τ₂ at 0 and 1 alone)",
    "7": "losses-fashion-lt",
}  # figures of experiments


def _classes(ax: Any, negative: FloatArray, positive: FloatArray, split: LinearSplit, reach: float) -> None:
    """Samples of both classes around ∓(1, 1), and the boundary x₁ + x₂ = √2·threshold."""
    ax.scatter(*positive.T, s=4, color=_LARGE, label=f"class +1: {split.accuracy_positive:.3f} right")
    ax.scatter(*negative.T, s=4, color=_SMALL, label=f"class −1: {split.accuracy_negative:.3f} right")
    ends = np.array([-reach, reach])
    ax.plot(ends, np.sqrt(2) * split.threshold - ends, color=_LINE)
    ax.set(xlim=ends, ylim=ends, aspect="equal")
    ax.legend(loc="upper left", fontsize=8)


def _in_disc(n: int, rng: np.random.Generator) -> FloatArray:
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.sqrt(rng.random(n))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def figure_1(ratio: float = 2.0, samples: int = 300) -> Figure:
    """Two discs of unequal volume: which class is classified better depends on the priors (Theorems 1 and 2)."""
    figure, axes = new_axes(9, 4.4, 1, 2)
    rng = as_generator(0)
    for ax, odds in zip(axes, (ratio**2, 1.0), strict=True):
        positive, negative = ratio * _in_disc(int(odds * samples), rng) + _CENTER, _in_disc(samples, rng)
        _classes(ax, negative - _CENTER, positive, disc_split(ratio, odds), 1.5 * ratio + 1)
        ax.set_title(f"p₊ : p₋ = {odds:g} : 1")
    return figure


def figure_2(ratio: float = 2.0, samples: int = 400) -> Figure:
    """Two Gaussians cut off at one bound: volumes are equal, and the compact class is classified better."""
    figure, ax = new_axes(5.4, 5)
    rng = as_generator(0)
    made = bounded_gaussian_split(ratio, float(np.sqrt(2)))
    parts = [sigma * rng.normal(size=(samples, 2)) for sigma in (1.0, ratio)]
    inside = [part[np.linalg.norm(part, axis=1) <= made.bound] for part in parts]
    _classes(ax, inside[0] - _CENTER, inside[1] + _CENTER, made.split, made.bound + 2)
    turn = np.linspace(0, 2 * np.pi, 200)
    circle = made.bound * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    for center, color in ((-_CENTER, _SMALL), (_CENTER, _LARGE)):
        ax.plot(*(circle + center).T, color=color, linewidth=1)
    ax.set_title(f"gap {made.split.gap:.4f}, bound ρ = {made.bound:.2f}, gap left ≥ {made.least_gap:.4f}")
    return figure


def figure_3(volume: float = 50.0, offset: float = 0.3, draws: int = 200) -> Figure:
    """The volume that samples cover, if some fall on another class and are lost: formula and simulation."""
    figure, ax = new_axes(6, 4)
    n = np.arange(1, draws + 1)
    for lost, color in ((0.0, _SMALL), (offset, _LARGE)):
        paths = simulate_covering(draws, volume, lost, repeats=400, random_state=0)
        low, high = np.quantile(paths, [0.1, 0.9], axis=0)
        ax.fill_between(n, low, high, color=color, alpha=0.2)
        ax.plot(n, paths.mean(axis=0), color=color, linestyle=":")
        ax.plot(n, effective_number(n, 1 - 1 / volume, lost), color=color, label=f"p₂ = {lost:g}")
    ax.set(xlabel="samples", ylabel="covered volume")
    ax.legend(title="line: Eq 13; dots: mean of 400 walks; band: 80 %", fontsize=8)
    return figure


def figure_4(samples: int = 200) -> Figure:
    """Only the spread along the boundary's normal counts: two classes, turned by a right angle."""
    figure, axes = new_axes(9, 4.2, 1, 2)
    rng = as_generator(0)
    for ax, turned in zip(axes, (False, True), strict=True):
        for center, spread, color in ((-2.5, (0.25, 4.0), _SMALL), (2.5, (1.0, 1.0), _LARGE)):
            sigma = np.diag(spread[::-1] if turned else spread)
            x = rng.multivariate_normal([center, 0.0], sigma, samples)
            ax.scatter(*x.T, s=5, color=color, label=f"DS = {data_scatter([1.0, 0.0], sigma):g}")
        ax.axvline(0, color=_LINE)
        ax.set(xlim=(-9, 9), ylim=(-7, 7))
        ax.legend(fontsize=8)
    return figure
