"""Figures 3-5 and 7-13 of Pezzicoli et al., computed by the solver. One function ``figure_N`` a figure.

Stars mark the best point of a curve, diamonds the one at ρ_train = ρ0. Curves are broken where the only stationary
student is the dummy classifier.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equipoise._core.checks import FloatArray
from equipoise.report import PALETTE, new_axes
from equipoise.theory.anomaly import (
    SaddlePoint,
    boundary_densities,
    intrinsic_fraction,
    optimal_train_fraction,
    solve_saddle,
    teacher_bias,
)

_SHOWN = {
    "balanced_accuracy": "balanced accuracy",
    "accuracy": "accuracy",
    "recall": "recall",
    "specificity": "specificity",
    "precision": "precision",
    "f1": "F1",
    "negative_f1": "F1 of negatives",
}
_FRACTIONS = np.linspace(0.01, 0.99, 99)


def _canvas(rows: int, columns: int, width: float = 5.2, height: float = 4.0) -> tuple[Figure, FloatArray]:
    figure, axes = new_axes(width * columns, height * rows, rows, columns)
    return figure, np.reshape(axes, (rows, columns))


def _solve(alpha: float, noise: float, biases: Iterable[float], **options: Any) -> SaddlePoint:
    return solve_saddle(alpha, noise, np.array(list(biases))[:, None], _FRACTIONS, **options)


def _seen(point: SaddlePoint, values: FloatArray) -> FloatArray:
    return np.where(point.phase == "dummy", np.nan, values)


def _mark(axis: Axes, x: float, y: float, marker: str, color: str) -> None:
    axis.plot(
        [x],
        [y],
        marker,
        color=color,
        markersize=13 if marker == "*" else 8,
        markeredgecolor="black",
        zorder=5,
    )


def _overlap_panel(
    axis: Axes, alpha: float, noise: float, biases: tuple[float, ...], zoom: tuple[float, ...]
) -> None:
    """R over ρ for several b0, with an inset around the peaks."""
    point = _solve(alpha, noise, biases)
    best = optimal_train_fraction(alpha, noise, np.array(biases))
    own = solve_saddle(alpha, noise, np.array(biases), np.clip(intrinsic_fraction(np.array(biases)), 1e-3, 1))
    inset = axis.inset_axes((0.33, 0.08, 0.36, 0.36), xlim=(zoom[0], zoom[1]), ylim=(zoom[2], zoom[3]))
    inset.tick_params(labelsize=7)
    for k, (b0, color) in enumerate(zip(biases, PALETTE, strict=False)):
        for where in (axis, inset):
            where.plot(
                _FRACTIONS,
                _seen(point, point.overlap)[k],
                ".-",
                ms=3,
                lw=1,
                color=color,
                label=f"b0 = {b0:g}",
            )
            _mark(where, float(best.train_fraction[k]), float(best.value[k]), "*", color)
            where.axvline(0.5, color="grey", lw=0.8)
        if own.phase[k] != "dummy":
            _mark(axis, float(intrinsic_fraction(b0)), float(own.overlap[k]), "D", color)
    axis.set(xlabel="ρ_train", ylabel="overlap R", title=f"α = {alpha:g}, T = {noise:g}")
    axis.legend(fontsize=7, loc="upper left")


def _bias_panel(axis: Axes, alpha: float, noise: float, biases: tuple[float, ...]) -> None:
    point = _solve(alpha, noise, biases)
    exact = optimal_train_fraction(alpha, noise, np.array(biases), "bias")
    for k, (b0, color) in enumerate(zip(biases, PALETTE, strict=False)):
        axis.plot(
            _FRACTIONS, _seen(point, point.bias)[k], ".-", ms=3, lw=1, color=color, label=f"b0 = {b0:g}"
        )
        axis.axhline(b0, color=color, lw=0.8, ls=":")
        if exact.value[k] > -1e-3:
            _mark(axis, float(exact.train_fraction[k]), b0, "*", color)
    axis.axvline(0.5, color="grey", lw=0.8)
    axis.set(xlabel="ρ_train", ylabel="learned bias b", ylim=(min(biases) - 0.6, 2.0))
    axis.legend(fontsize=7)


def _metric_panel(
    axis: Axes, alpha: float, noise: float, b0: float, test: float, names: Iterable[str]
) -> None:
    """Scores over ρ, with their peaks, ρ0, ρ(b*) and ρ(R*)."""
    point = _solve(alpha, noise, [b0])
    scores = point.metrics(test)
    for name, color in zip(names, PALETTE, strict=False):
        values = _seen(point, getattr(scores, name))[0]
        axis.plot(_FRACTIONS, values, ".-", ms=3, lw=1, color=color, label=_SHOWN[name])
        peak = optimal_train_fraction(alpha, noise, b0, name, test_fraction=test)
        if peak.interior:
            _mark(axis, float(peak.train_fraction), float(peak.value), "*", color)
    for objective, style, label in (("bias", "--", "ρ(b*)"), ("overlap", "-.", "ρ(R*)")):
        fraction = float(optimal_train_fraction(alpha, noise, b0, objective).train_fraction)
        axis.axvline(fraction, color="grey", lw=0.9, ls=style, label=label)
    axis.axvline(float(intrinsic_fraction(b0)), color="grey", lw=0.9, ls=":", label="ρ0")
    axis.set(xlabel="ρ_train", ylabel="score", title=f"α = {alpha:g}, b0 = {b0:g}, ρ_test = {test:.2g}")
    axis.legend(fontsize=7, ncols=2)


def figure_3() -> Figure:
    """Overlap, bias and scores over the training fraction, α = 1.1, T = 0.5"""
    figure, axes = _canvas(2, 2)
    biases = (0.0, -0.2, -0.4, -0.6)
    _overlap_panel(axes[0, 0], 1.1, 0.5, biases, (0.46, 0.56, 0.41, 0.424))
    _bias_panel(axes[0, 1], 1.1, 0.5, biases)
    names = ("accuracy", "recall", "precision", "f1", "negative_f1")
    _metric_panel(axes[1, 0], 1.1, 0.5, -0.6, 0.5, names)
    _metric_panel(axes[1, 1], 1.1, 0.5, -0.6, float(intrinsic_fraction(-0.6)), names)
    return figure


def _shifted(axis: Axes, settings: Iterable[tuple[float, float, str]], b0: float) -> None:
    """Balanced accuracy below its peak, and where ½ lies from there."""
    for (alpha, noise, label), color in zip(settings, PALETTE, strict=False):
        best = optimal_train_fraction(alpha, noise, b0, "balanced_accuracy")
        point = _solve(alpha, noise, [b0])
        values = _seen(point, point.metrics(0.5).balanced_accuracy)[0] - float(best.value)
        axis.plot(_FRACTIONS - float(best.train_fraction), values, ".-", ms=3, lw=1, color=color, label=label)
        axis.axvline(0.5 - float(best.train_fraction), color=color, lw=0.9, ls=":")
    axis.legend(fontsize=7)


def figure_4() -> Figure:
    """Balanced accuracy around its peak for different α and T, b0 = -1"""
    figure, axes = _canvas(1, 2)
    _shifted(axes[0, 0], [(alpha, 0.5, f"α = {alpha:g}") for alpha in (0.5, 1.1, 2.0, 4.0, 8.0)], -1.0)
    _shifted(axes[0, 1], [(1.1, noise, f"T = {noise:g}") for noise in (0.01, 0.1, 0.5, 1.0, 2.0)], -1.0)
    for axis, title in zip(axes[0], ("T = 0.5", "α = 1.1 (the paper's inset)"), strict=True):
        axis.set(
            xlabel="ρ_train - ρ*",
            ylabel="a_bal - its maximum",
            xlim=(-0.45, 0.45),
            ylim=(-0.12, 0.01),
            title=title,
        )
    return figure


def figure_5() -> Figure:
    """Balanced accuracy and bias over the temperature, α = 1.1, b0 = -0.6"""
    from equipoise.theory.anomaly import crossover_temperature

    figure, axes = _canvas(1, 2)
    noise = np.geomspace(0.02, 4.0, 60)
    fractions = (0.2, 0.3, 0.5, 0.7, 0.8)
    point = solve_saddle(1.1, noise, -0.6, np.array(fractions)[:, None])
    for k, (fraction, color) in enumerate(zip(fractions, PALETTE, strict=False)):
        label = f"ρ_train = {fraction:g}"
        axes[0, 0].semilogx(
            noise, _seen(point, point.metrics().balanced_accuracy)[k], color=color, label=label
        )
        axes[0, 1].semilogx(noise, _seen(point, point.bias)[k], color=color, label=label)
    star = float(crossover_temperature(1.1, -0.6, 0.5))
    axes[0, 0].axvline(star, color="grey", lw=0.9, ls="--", label=f"T* = {star:.2f} (ρ = ½)")
    axes[0, 1].axhline(-0.6, color="grey", lw=0.9, ls=":", label="b0")
    axes[0, 0].set(xlabel="T", ylabel="balanced accuracy")
    axes[0, 1].set(xlabel="T", ylabel="learned bias b", ylim=(-3, 3))
    for axis in axes[0]:
        axis.legend(fontsize=8)
    return figure


def figure_7() -> Figure:
    """How crowded the teacher's boundary is, for the rare and the common class"""
    figure, axes = _canvas(1, 1)
    bias = np.linspace(-3, 0, 121)
    scale = boundary_densities(0.0)[0]
    for values, color, label in zip(
        boundary_densities(bias), PALETTE, ("minority", "majority"), strict=False
    ):
        axes[0, 0].plot(bias, values / scale, color=color, label=label)
    axes[0, 0].set(xlabel="b0", ylabel="density at the boundary, over that at b0 = 0")
    axes[0, 0].legend()
    return figure


def figure_8() -> Figure:
    """A known bias: overlap and accuracy (ρ_test = ρ_train), α = 0.7, T = 0.5"""
    figure, axes = _canvas(1, 2)
    for b0, color in zip((0.0, -0.2, -0.4, -0.6, -1.0), PALETTE, strict=False):
        point = solve_saddle(0.7, 0.5, b0, _FRACTIONS, learn_bias=False)
        accuracy = point.metrics(_FRACTIONS).accuracy
        best = int(point.overlap.argmax())
        for axis, values in zip(axes[0], (point.overlap, accuracy), strict=True):
            axis.plot(_FRACTIONS, values, ".-", ms=3, lw=1, color=color, label=f"b0 = {b0:g}")
            if b0:
                _mark(axis, _FRACTIONS[best], values[best], "*", color)
            axis.axvline(0.5, color="grey", lw=0.8)
    axes[0, 0].set(xlabel="ρ_train", ylabel="overlap R")
    axes[0, 1].set(xlabel="ρ_train", ylabel="accuracy, ρ_test = ρ_train")
    axes[0, 0].legend(fontsize=8)
    return figure


def figure_9() -> Figure:
    """As figure 3 for strong intrinsic imbalance, α = 1.1 (left) and 8 (right)"""
    figure, axes = _canvas(4, 2)
    biases = (-1.5, -2.0, -3.0, -4.0, -5.0)
    names = ("accuracy", "recall", "specificity", "precision", "f1", "negative_f1")
    zooms = {1.1: (0.42, 0.6, 0.45, 0.495), 8.0: (0.34, 0.6, 0.68, 0.93)}
    for column, alpha in enumerate((1.1, 8.0)):
        _overlap_panel(axes[0, column], alpha, 0.5, biases, zooms[alpha])
        _bias_panel(axes[1, column], alpha, 0.5, biases)
        _metric_panel(axes[2, column], alpha, 0.5, -1.5, 0.5, names)
        _metric_panel(axes[3, column], alpha, 0.5, -1.5, float(intrinsic_fraction(-1.5)), names)
    return figure


def _optima(field: str, label: str) -> Figure:
    """ρ(R*) or R* over α, and over ρ0 at α = 1.1 and 8, all at T = 0.5."""
    figure, axes = _canvas(1, 3)
    alphas = np.geomspace(0.2, 20, 21)
    for b0, color in zip((-0.6, -1.0, -1.5, -2.0), PALETTE, strict=False):
        found = optimal_train_fraction(alphas, 0.5, b0)
        axes[0, 0].semilogx(alphas, getattr(found, field), ".-", color=color, label=f"b0 = {b0:g}")
    axes[0, 0].axvline(1.0, color="grey", lw=0.8, ls="--")
    axes[0, 0].set_xlabel("α")
    axes[0, 0].legend(fontsize=8)
    rare = np.concatenate([np.geomspace(3e-7, 0.03, 10), np.linspace(0.05, 0.5, 12)])
    for axis, alpha in zip(axes[0, 1:], (1.1, 8.0), strict=True):
        found = optimal_train_fraction(alpha, 0.5, teacher_bias(rare))
        axis.semilogx(rare, getattr(found, field), ".-", color=PALETTE[0])
        axis.set(xlabel="ρ0", title=f"α = {alpha:g}")
    for axis in axes[0]:
        axis.set_ylabel(label)
        if field == "train_fraction":
            axis.axhline(0.5, color="grey", lw=0.8, ls="--")
    return figure


def figure_10() -> Figure:
    """The best training fraction ρ(R*) over α and ρ0, T = 0.5"""
    return _optima("train_fraction", "ρ(R*)")


def figure_11() -> Figure:
    """The best overlap R* over α and ρ0, T = 0.5"""
    return _optima("value", "R*")


def figure_12() -> Figure:
    """Scores against the overlap as ρ_train runs, ρ_test = 0.5; below, their tops"""
    figure, axes = _canvas(2, 2)
    names = ("balanced_accuracy", "recall", "specificity", "precision", "f1", "negative_f1")
    for column, (alpha, b0) in enumerate(((1.1, -0.6), (8.0, -1.5))):
        point = _solve(alpha, 0.5, [b0])
        overlap, scores = _seen(point, point.overlap)[0], point.metrics(0.5)
        for row in (0, 1):
            axis = axes[row, column]
            for name, color in zip(names, PALETTE, strict=False):
                values = _seen(point, getattr(scores, name))[0]
                axis.plot(overlap, values, ".-", ms=3, lw=1, color=color, label=_SHOWN[name])
                if name not in ("recall", "specificity"):
                    best = int(np.nanargmax(values))
                    _mark(axis, overlap[best], values[best], "*", color)
            top = float(np.nanmax(overlap))
            for shift in np.linspace(-0.4, 0.6, 6):
                axis.plot([0, 1], [shift, 1 + shift], color="grey", lw=0.6, ls=":")
            axis.set(
                xlabel="overlap R",
                ylabel="score",
                title=f"α = {alpha:g}, b0 = {b0:g}",
                xlim=(0, 1),
                ylim=(0, 1.02),
            )
            if row:
                peak = float(np.nanmax(_seen(point, scores.balanced_accuracy)))
                axis.set(xlim=(top - 0.12, top + 0.01), ylim=(peak - 0.12, peak + 0.06))
    axes[0, 0].legend(fontsize=7)
    return figure


def figure_13() -> Figure:
    """Scores over the test set's share of positives, ρ_train = 0.5"""
    figure, axes = _canvas(1, 2)
    names = ("accuracy", "balanced_accuracy", "recall", "specificity", "precision", "f1", "negative_f1")
    for axis, (alpha, b0) in zip(axes[0], ((1.1, -0.6), (8.0, -1.5)), strict=True):
        scores = solve_saddle(alpha, 0.5, b0, 0.5).metrics(_FRACTIONS)
        for name, color in zip(names, PALETTE, strict=False):
            style = "--" if name == "balanced_accuracy" else "-"
            axis.plot(_FRACTIONS, getattr(scores, name), style, color=color, label=_SHOWN[name])
        axis.set(xlabel="ρ_test", ylabel="score", title=f"α = {alpha:g}, b0 = {b0:g}, ρ_train = ½")
    axes[0, 0].legend(fontsize=7)
    return figure
