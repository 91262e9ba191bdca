"""The page of a prediction: the expected order of memorization, and what it follows from."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

import equipoise
from equipoise._core.files import write_text
from equipoise.generative.plots import color
from equipoise.report import (
    Figure,
    Interval,
    Note,
    Report,
    Row,
    Section,
    Table,
    Text,
    bar,
    new_figure,
    plain,
    scatter,
)
from equipoise.theory.diffusion import PredictedOrder


def write_prediction(found: PredictedOrder, about: str, out: str | PathLike[str]) -> None:
    """Write the page of a prediction to a file, whole or not at all."""
    write_text(out, build_prediction(found, about).to_html())


def build_prediction(found: PredictedOrder, about: str) -> Report:
    """The report of a prediction for the data that ``about`` describes."""
    verdict = Note(
        f"{found.in_words()}. An arrow joins classes whose order is settled, ≈ those that cannot be told apart.",
        "note",
        "Expected order of memorization",
    )
    sections = [
        Section("Expected order", [verdict, Row([_times_figure(found), _variance_figure(found)])]),
        Section("Classes", [_classes_table(found), _cosines_table(found)]),
        Section("Pairs", [_pairs_table(found)]),
        Section("How it was computed", [Text(_METHOD)]),
    ]
    data = {
        "order": list(map(str, found.order)),
        "memorization_time": dict(
            zip(map(str, found.classes), found.memorization_time.tolist(), strict=True)
        ),
        "variances": dict(zip(map(str, found.classes), found.mixture.variances.tolist(), strict=True)),
    }
    footer = f"Equipoise {equipoise.__version__}. The theory and its limits: docs/explanation/diffusion.md."
    return Report("Which class will a diffusion model memorize first?", sections, about, data, footer)


_METHOD = (
    "The data enter a random-features score model only through the share, the variance and the centroid of each "
    "class, in units of the data's overall standard deviation. Times are training times of that model, so orders "
    "and ratios carry over to a network, and numbers of steps do not. Intervals hold the error of the model's "
    "random draws and that of the data's statistics."
)


def _times_figure(found: PredictedOrder) -> Figure:
    order = [found.classes.index(name) for name in reversed(found.order)]
    traces = []
    for label, times, ends, shade in (
        ("memorized", found.memorization_time, found.memorization_interval, color(0)),
        ("generalizes", found.generalization_time, found.generalization_interval, color(1)),
    ):
        times, low, high = times[order], ends[0, order], ends[1, order]
        traces.append(
            scatter(
                x=times,
                y=[plain(found.classes[i]) for i in order],
                name=label,
                mode="markers",
                marker={"size": 9, "color": shade},
                error_x={"array": np.nan_to_num(high - times), "arrayminus": np.nan_to_num(times - low)},
            )
        )
    figure = new_figure(*traces, x="training time τ of the model")
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="category")
    return Figure(
        figure, "Expected times with 95 % intervals.", "Expected times of each class", 140 + 34 * len(order)
    )


def _variance_figure(found: PredictedOrder) -> Figure:
    order = [found.classes.index(name) for name in reversed(found.order)]
    bars = bar(
        x=found.mixture.variances[order],
        y=[plain(found.classes[i]) for i in order],
        orientation="h",
        marker={"color": color(0)},
        showlegend=False,
    )
    figure = new_figure(bars, x="mean variance of a coordinate within the class")
    figure.update_yaxes(type="category")
    caption = (
        "The leading factor: a class of higher variance is memorized earlier (the paper's Fig 21, left)."
    )
    return Figure(figure, caption, "Variance of each class", 140 + 34 * len(order))


def _classes_table(found: PredictedOrder) -> Table:
    mixture = found.mixture
    total = float(mixture.variances.sum())
    rows: list[list[Any]] = []
    for name in found.order:
        i = found.classes.index(name)
        rows.append([
            str(name), mixture.weights[i], mixture.variances[i], mixture.variances[i] / total,
            mixture.centroid_norms[i], _cell(found.memorization_time, found.memorization_interval, i),
            _cell(found.generalization_time, found.generalization_interval, i),
        ])  # fmt: skip
    columns = [
        "class", "share", "variance", "share of variances", "centroid norm", "memorized at", "generalizes at",
    ]  # fmt: skip
    formats = {"share": ".1%", "variance": ".3f", "share of variances": ".1%", "centroid norm": ".3f"}
    formats |= dict.fromkeys(columns[5:], ".3g")
    return Table(columns, rows, "From the first memorized to the last.", formats)


def _cell(times: Any, ends: Any, i: int) -> Any:
    if np.isnan(times[i]):
        return "never"
    return Interval(*(float(value) for value in (times[i], ends[0, i], ends[1, i])))


def _cosines_table(found: PredictedOrder) -> Table:
    names = [str(name) for name in found.classes]
    cosines = found.mixture.centroid_cosines
    rows = [[name, *map(float, row)] for name, row in zip(names, cosines, strict=True)]
    return Table(["class", *names], rows, "Cosines between the centroids.", dict.fromkeys(names, ".2f"))


def _pairs_table(found: PredictedOrder) -> Table:
    rows: list[list[Any]] = []
    for (a, b), gap, low, high in zip(found.pairs, found.gap, found.gap_lower, found.gap_upper, strict=True):
        first = found.first(a, b)
        value = "unknown" if np.isnan(gap) else Interval(float(gap), float(low), float(high))
        rows.append([f"{a} – {b}", value, "a tie" if first is None else str(first)])
    caption = "Memorization time of the first class of a pair less that of the second."
    return Table(["pair", "gap", "memorized first"], rows, caption, {"gap": ".3g"})
