"""The drawings of Pezzicoli et al., Figs 1, 2 and 6: two-dimensional training sets, students and the scheme."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from equipoise._core.checks import FloatArray
from equipoise.report import PALETTE
from equipoise.theory.anomaly import TrainingSet, free_energy_at, sample_training_set, solve_saddle

_POSITIVE, _NEGATIVE, _STUDENTS = PALETTE[1], PALETTE[0], PALETTE[2]
_REACH = 3.6


def draw_data(axis: Axes, data: TrainingSet, teacher_bias: float) -> None:
    """A training set in the plane, the population's contours at 1 to 3 standard deviations, the teacher."""
    for radius in (1, 2, 3):
        axis.add_patch(Circle((0, 0), radius, fill=False, color="0.8", lw=0.8))
    for label, marker, color in ((1, "+", _POSITIVE), (-1, "_", _NEGATIVE)):
        rows = data.inputs[data.labels == label]
        axis.plot(rows[:, 1], rows[:, 0], marker, color=color, ms=8, mew=1.6)
    axis.axhline(-teacher_bias, color="black", ls="--", lw=1.2)
    axis.set(xlim=(-_REACH, _REACH), ylim=(-_REACH, _REACH), aspect="equal", xticks=[], yticks=[])
    axis.grid(visible=False)


def sample_students(
    data: TrainingSet, temperature: float, generator: np.random.Generator, count: int = 25
) -> FloatArray:
    """Students (angle, b) of two inputs, drawn from the Gibbs measure by weighting uniform ones."""
    angle, bias = generator.uniform(0, 2 * np.pi, 40_000), generator.uniform(-4, 4, 40_000)
    fields = np.outer(np.cos(angle), data.inputs[:, 0]) + np.outer(np.sin(angle), data.inputs[:, 1])
    errors = ((fields + bias[:, None]) * data.labels < 0).sum(axis=1)
    chance = np.exp(-(errors - errors.min()) / temperature)
    chosen = generator.choice(len(angle), count, p=chance / chance.sum())
    return np.column_stack([angle, bias])[chosen]


def draw_students(axis: Axes, students: FloatArray) -> None:
    """The classes that the first student predicts, and the lines of all of them."""
    grid = np.linspace(-_REACH, _REACH, 200)
    across, along = np.meshgrid(grid, grid)
    angle, bias = students[0]
    field = np.cos(angle) * along + np.sin(angle) * across + bias
    axis.contourf(
        across, along, field > 0, levels=[-0.5, 0.5, 1.5], colors=[_NEGATIVE, _POSITIVE], alpha=0.16
    )
    for angle, bias in students:
        field = np.cos(angle) * along + np.sin(angle) * across + bias
        axis.contour(across, along, field, levels=[0], colors="0.35", linewidths=0.5, alpha=0.6)


def draw_terms(axis: Axes, train_fraction: float) -> None:
    """-βF over the student's bias and its parts: the volume of students, and what each class takes away."""
    control: dict[str, Any] = {
        "samples_per_dim": 1.1,
        "temperature": 0.5,
        "teacher_bias": -0.6,
        "train_fraction": train_fraction,
    }
    bias = np.linspace(-3, 3, 61)
    point = solve_saddle(**control, student_bias=bias)
    terms = free_energy_at(point.self_overlap, point.overlap, bias, **control)
    for values, color, label in (
        (terms.log_partition, "black", "-βF, the sum"),
        (terms.volume, _STUDENTS, "volume of students"),
        (terms.positive, _POSITIVE, "positive samples"),
        (terms.negative, _NEGATIVE, "negative samples"),
    ):
        axis.plot(bias, values, color=color, lw=1.4, label=label)
    learned = solve_saddle(**control)
    if learned.phase != "dummy":
        axis.plot(learned.bias, learned.log_partition, "*", ms=13, color="white", mec="black", zorder=5)
    axis.axhline(float(learned.dummy_log_partition), color="0.6", ls=":", lw=1, label="the dummy's -βF")
    axis.axvline(-0.6, color="0.6", ls="--", lw=0.8)
    axis.set(xlabel="student's bias b", ylabel="per dimension", ylim=(-2.2, 0.1))


def draw_three_students(figure: Figure, axes: FloatArray) -> None:
    generator = np.random.default_rng(3)
    for k, fraction in enumerate((0.1, 0.5, 0.9)):
        data = sample_training_set(2, 30, -1.0, fraction, generator)
        draw_students(axes[0, k], sample_students(data, 0.5, generator))
        draw_data(axes[0, k], data, -1.0)
        axes[0, k].set_title(f"ρ_train = {fraction:g}")
        draw_terms(axes[1, k], fraction)
    axes[1, 1].legend(fontsize=7)
    figure.suptitle(
        "Above: students drawn at T = 0.5 in two dimensions, b0 = -1. Below: α = 1.1, b0 = -0.6", fontsize=10
    )


def draw_informative_samples(axes: FloatArray) -> None:
    generator = np.random.default_rng(1)
    population = generator.standard_normal((150, 2))
    for k, b0 in enumerate((-1.5, -0.8, 0.0)):
        labels = np.where(population[:, 0] + b0 > 0, 1.0, -1.0)
        draw_data(axes[0, k], TrainingSet(population, labels), b0)
        axes[0, k].set_title(f"b0 = {b0:g}, as drawn: {np.mean(labels > 0):.0%} positive", fontsize=10)
    draw_data(axes[0, 3], sample_training_set(2, 60, -1.5, 0.5, generator), -1.5)
    axes[0, 3].set_title("b0 = -1.5, ρ_train = ½", fontsize=10)


def draw_scheme(axis: Axes) -> None:
    """Boxes and arrows: data, teacher, student, loss."""
    boxes = {
        "data S": (0.12, 0.5),
        "teacher\nsign(w⁰·S/√N + b0)": (0.42, 0.8),
        "student\nsign(w·S/√N + b)": (0.42, 0.2),
        "label g0": (0.7, 0.8),
        "answer g": (0.7, 0.2),
        "loss ε(g, g0)\nsummed over P samples": (0.9, 0.5),
    }
    look = {"boxstyle": "round,pad=0.5", "fc": "white", "ec": "0.3"}
    drawn = [
        axis.text(*place, text, ha="center", va="center", fontsize=9, bbox=look).get_bbox_patch()
        for text, place in boxes.items()
    ]
    places = list(boxes.values())

    def arrow(start: int, end: int, **style: str) -> None:
        between = {"arrowstyle": "->", "color": "0.3", "patchA": drawn[start], "patchB": drawn[end], **style}
        axis.annotate("", places[end], places[start], arrowprops=between)

    for start, end in ((0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5)):
        arrow(start, end)
    arrow(5, 2, ls="--", color=_POSITIVE, connectionstyle="arc3,rad=-0.55")
    axis.text(0.93, 0.1, "w and b\nare learned", color=_POSITIVE, ha="center", fontsize=9)
    axis.axis("off")
    axis.set(xlim=(0, 1.02), ylim=(-0.05, 1))
