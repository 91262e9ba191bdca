"""Figures 1 to 13 of Pezzicoli et al., computed by the solver. One function ``figure_N`` a figure.

Figures 14 to 18 are experiments: ``STUDIES`` names the study of each. Four further figures show what the
paper leaves out: the pool of rows, the phase transitions, the replica stability, and how far each metric
leads. Stars mark the best point of a curve, diamonds the one at ρ_train = ρ0. Curves are broken where the only
stationary student is the dummy classifier.
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
    guide_regret,
    intrinsic_fraction,
    optimal_from_pool,
    optimal_train_fraction,
    phase_transitions,
    solve_saddle,
    teacher_bias,
)

from .sketches import draw_informative_samples, draw_scheme, draw_three_students

_SHOWN = {
    "balanced_accuracy": "balanced accuracy",
    "accuracy": "accuracy",
    "recall": "recall",
    "specificity": "specificity",
    "precision": "precision",
    "f1": "F1",
    "negative_f1": "F1 of negatives",
    "macro_f1": "macro F1",
}
STUDIES = {
    "14": "anomaly-sgd (left, perceptron) and anomaly-real (right, network)",
    "15": "anomaly-sgd",
    "16": "anomaly-real (MVTec features, 30 components by class)",
    "17": "anomaly-real (as figure 16; BTAD's images are not at hand)",
    "18": "anomaly-real (part G.3 at a fixed number of rows, part pool with the rows at hand)",
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


def _own_share(alpha: float, noise: float, biases: tuple[float, ...]) -> SaddlePoint:
    """The students trained at ρ = ρ0."""
    return solve_saddle(alpha, noise, np.array(biases), intrinsic_fraction(np.array(biases)))


def _overlap_panel(
    axis: Axes, alpha: float, noise: float, biases: tuple[float, ...], zoom: tuple[float, ...]
) -> None:
    """R over ρ for several b0, with an inset around the peaks."""
    point = _solve(alpha, noise, biases)
    best = optimal_train_fraction(alpha, noise, np.array(biases))
    own = _own_share(alpha, noise, biases)
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
    own = _own_share(alpha, noise, biases)
    for k, color in enumerate(PALETTE[: len(biases)]):
        if own.phase[k] != "dummy":
            _mark(axis, float(own.train_fraction[k]), float(own.bias[k]), "D", color)
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


def figure_1() -> Figure:
    """Three training shares: students in the plane, and the energy and entropy that choose them"""
    figure, axes = _canvas(2, 3, 4.2, 3.9)
    draw_three_students(figure, axes)
    return figure


def figure_2() -> Figure:
    """The teacher's bias sets how rare the anomalies are, and how close to the boundary they lie"""
    figure, axes = _canvas(1, 4, 3.6, 4.2)
    draw_informative_samples(axes)
    return figure


def figure_6() -> Figure:
    """The teacher labels the data, and the student learns from the labels"""
    figure, axes = _canvas(1, 1, 8.0, 4.0)
    draw_scheme(axes[0, 0])
    return figure


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
    biases = (-1.5, -2.0, -2.5, -3.0, -4.0, -5.0)
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


def figure_pool() -> Figure:
    """What a pool of rows gives: leaving rows out, class weights and fresh rows are three different things"""
    figure, axes = _canvas(1, 3)
    for axis, (positives, negatives, dims, noise) in zip(
        axes[0], ((100, 900, 100, 0.5), (100, 900, 100, 0.05), (200, 3800, 100, 0.5)), strict=True
    ):
        plan = optimal_from_pool(positives, negatives, dims, noise)
        for way, color, label in zip(
            ("subset", "weights", "fresh"),
            PALETTE,
            ("leave rows out", "class weights", "fresh rows"),
            strict=False,
        ):
            choice = getattr(plan, way)
            style = ":" if way == "fresh" else "-"
            axis.plot(plan.shares, getattr(plan, f"{way}_curve"), style, color=color, label=label)
            _mark(axis, choice.train_fraction, choice.value, "*", color)
        _mark(axis, positives / (positives + negatives), plan.as_is, "D", "white")
        load = (positives + negatives) / dims
        axis.set(
            xlabel="share of positives, or of their weight",
            ylabel="balanced accuracy",
            title=f"{positives} of {positives + negatives} rows positive, α = {load:g}, T = {noise:g}",
        )
        axis.title.set_fontsize(9)
    axes[0, 0].legend(fontsize=8)
    return figure


def figure_transitions() -> Figure:
    """Where the student changes abruptly: transition and spinodal lines, and two jumps of the overlap"""
    figure, axes = _canvas(1, 3)
    alphas = np.geomspace(0.3, 20, 9)
    for b0, color in zip((-0.6, -1.5), PALETTE, strict=False):
        found = phase_transitions(alphas, 0.5, b0)
        for side in ("lower", "upper"):
            label = f"b0 = {b0:g}" if side == "lower" else None
            axes[0, 0].semilogx(alphas, getattr(found, f"{side}_transition"), "-", color=color, label=label)
            axes[0, 0].semilogx(alphas, getattr(found, f"{side}_spinodal"), ":", color=color)
    axes[0, 0].set(xlabel="α", ylabel="ρ_train", title="T = 0.5: transition (line), spinodal (dots)")
    axes[0, 0].legend(fontsize=8, loc="center")
    fractions = np.linspace(0.045, 0.12, 151)
    point = solve_saddle(8.0, 0.5, -1.5, fractions)
    for phase, color in (("learned", PALETTE[0]), ("metastable", PALETTE[4]), ("dummy", "grey")):
        values = np.where(point.phase == phase, point.overlap, np.nan)
        axes[0, 1].plot(fractions, values, ".-", ms=3, color=color, label=phase)
    axes[0, 1].set(xlabel="ρ_train", ylabel="overlap R", title="α = 8, T = 0.5, b0 = -1.5")
    known = np.linspace(0.2, 0.6, 81)
    overlap = solve_saddle(2.0, 0.5, -4.0, known, learn_bias=False).overlap
    axes[0, 2].plot(known, overlap, ".-", ms=3, color=PALETTE[0], label="equilibrium")
    axes[0, 2].set(xlabel="ρ_train", ylabel="overlap R", title="known bias: α = 2, T = 0.5, b0 = -4")
    axes[0, 1].legend(fontsize=8)
    return figure


def figure_stability() -> Figure:
    """The overlap over α and ρ_train; contours: how stable the replica-symmetric solution is (above 0: stable)"""
    figure, axes = _canvas(1, 2, 5.6, 4.2)
    alphas, fractions = np.geomspace(0.2, 40, 33), np.linspace(0.03, 0.97, 48)
    for axis, (noise, b0) in zip(axes[0], ((0.05, -0.6), (0.5, -1.5)), strict=True):
        point = solve_saddle(alphas[:, None], noise, b0, fractions)
        overlap, stability = (_seen(point, value).T for value in (point.overlap, point.replica_stability))
        shades = axis.pcolormesh(
            alphas, fractions, overlap, vmin=0, vmax=1, cmap="viridis", shading="nearest"
        )
        lines = axis.contour(alphas, fractions, stability, levels=(0, 0.6, 0.7, 0.8, 0.9), colors="white")
        axis.clabel(lines, fontsize=7)
        lowest = f"lowest stability {np.nanmin(stability):.2f}"
        axis.set(xscale="log", xlabel="α", ylabel="ρ_train", title=f"T = {noise:g}, b0 = {b0:g}: {lowest}")
        figure.colorbar(shades, ax=axis, label="overlap R")
    return figure


def figure_guides() -> Figure:
    """What of the overlap is lost if a metric chooses the training share, over α, T and b0"""
    figure, axes = _canvas(1, 1, 8.0, 4.0)
    names = ("balanced_accuracy", "negative_f1", "macro_f1", "f1", "precision", "accuracy")
    alpha, noise, b0 = np.meshgrid(
        (0.5, 1.1, 2.0, 4.0, 8.0), (0.1, 0.5, 1.0), (-0.6, -1.0, -1.5, -2.5), indexing="ij"
    )
    shares = {name: intrinsic_fraction(b0) if name == "accuracy" else 0.5 for name in names}
    lost = [guide_regret(alpha, noise, b0, name, test_fraction=shares[name]).ravel() for name in names]
    axes[0, 0].boxplot(lost, tick_labels=[_SHOWN[name] for name in names], whis=(0, 100))
    axes[0, 0].tick_params(axis="x", labelsize=8)
    axes[0, 0].set(ylabel="overlap lost", ylim=(0, 1))
    axes[0, 0].set_yscale("symlog", linthresh=1e-3)
    axes[0, 0].set_title("Accuracy on the natural test share, the others on equal classes", fontsize=9)
    return figure
