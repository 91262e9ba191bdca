"""The reasons on the page: words, figures and pictures from the numbers of :mod:`equipoise.advisor.reasons`."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from equipoise.advisor.reasons import Effect, Reasons, written
from equipoise.advisor.row_reasons import WorstError
from equipoise.datasets import DataTable
from equipoise.report import (
    COLORS,
    Figure,
    Gallery,
    Interval,
    Note,
    Ranking,
    Row,
    Section,
    Table,
    Text,
    bar,
    new_figure,
    plain,
    scatter,
)

_SHOWN_COLUMNS = 12
_LONGEST_NAME = 40


def reasons_section(reasons: Reasons, table: DataTable) -> Section:
    """Which columns matter and how, where the model errs, and why.

    Parameters
    ----------
    reasons : Reasons
        From :func:`~equipoise.advisor.reasons.find_reasons`.
    table : DataTable
        The rows that the reasons speak of.

    Returns
    -------
    Section
    """
    blocks: list[Any] = [*_importance(reasons), *_effects(reasons, table), *_errors(reasons, table)]
    blocks += [*_slices(reasons, table), *map(Note, reasons.skipped)]
    return Section("Reasons", blocks)


def _importance(reasons: Reasons) -> list[Any]:
    if not reasons.importance:
        return []
    credible = [item for item in reasons.importance if item.low > 0]
    names = ", ".join(f"“{_short(item.column)}”" for item in credible[:3])
    text = (
        f"The answers rest mostly on {names}."
        if credible
        else "No column alone is credibly important: without any one of them the answers stay as good."
    )
    text += (
        " Each column in turn was given the values of other rows; the bars show by how much that makes the log "
        "loss of rows that were not trained on worse, with 95% intervals. An interval that reaches zero means "
        "that the column may not matter. Columns that say the same thing share their importance."
    )
    items = [
        (_short(item.column), Interval(item.value, item.low, item.high))
        for item in reasons.importance[:_SHOWN_COLUMNS]
    ]
    left = len(reasons.importance) - len(items)
    caption = "Importance of the columns" + (f"; {left:,} less important ones are left out" if left else "")
    return [Text(text), Ranking(items, caption, ".4f")]


def _effects(reasons: Reasons, table: DataTable) -> list[Any]:
    if not reasons.effects:
        return []
    label = table.label(reasons.asked)
    text = f"The mean probability of {label} if every row had the value below, all else as it is:"
    return [Text(text), Row([_effect_figure(effect) for effect in reasons.effects], 260)]


def _effect_figure(effect: Effect) -> Figure:
    grid = [plain(written(value, effect.kind), 20) for value in effect.grid]
    if effect.kind == "number":
        trace = scatter(x=effect.grid, y=effect.probability, mode="lines+markers",
                        line={"color": COLORS["accent"], "width": 2},
                        hovertemplate="%{x:.4g}: %{y:.3f}<extra></extra>")  # fmt: skip
    elif effect.kind == "date":
        trace = scatter(x=grid, y=effect.probability, mode="lines+markers",
                        line={"color": COLORS["accent"], "width": 2},
                        hovertemplate="%{x}: %{y:.3f}<extra></extra>")  # fmt: skip
    else:
        trace = bar(x=grid, y=effect.probability, marker_color=COLORS["accent"],
                    hovertemplate="%{x}: %{y:.3f}<extra></extra>")  # fmt: skip
    figure = new_figure(trace, x=plain(effect.column, _LONGEST_NAME), y="probability")
    figure.update_yaxes(rangemode="tozero")
    alt = f"Mean probability over the values of {_short(effect.column)}."
    return Figure(figure, "", alt, 240)


def _errors(reasons: Reasons, table: DataTable) -> list[Any]:
    if not reasons.errors:
        return [Text("No held-out row was called wrongly.")]
    pictures = _pictures(reasons.errors, table)
    if pictures is not None:
        return [pictures]
    explained = reasons.errors[0].reasons is not None
    rows = [
        [
            "–" if error.name is None else str(error.name),
            _short(table.classes[error.called]),
            _short(table.classes[error.truth]),
            error.probability,
            *([_why(error, table)] if explained else []),
        ]
        for error in reasons.errors
    ]
    columns = ["row", "called", "true label", "its probability", *(["why"] if explained else [])]
    caption = "The surest errors among the rows that were not trained on" + (
        "." if table.ids is not None else "; rows are counted from 0."
    )
    if explained:
        caption += (
            " Beside each value: how many times lower it makes the odds of the true label than the values of other "
            f"rows would. {reasons.explained}"
        )
    return [Table(columns, rows, caption, {columns[3]: ".3f"})]


def _why(error: WorstError, table: DataTable) -> str:
    kinds = dict(zip(table.schema.names, table.kinds, strict=True))
    parts = [
        f"{_short(reason.column)} is {_short(written(reason.value, kinds[reason.column]))} "
        f"(odds ÷ {_times(reason.lowers)})"
        for reason in error.reasons or []
    ]
    return "; ".join(parts) or "no single column explains it"


def _times(log_odds: float) -> str:
    return f"{np.exp(log_odds):.1f}" if log_odds < np.log(1000) else "more than 1,000"


def _pictures(errors: list[WorstError], table: DataTable) -> Gallery | None:
    if table.image_shape is None:
        return None
    try:
        from PIL import Image
    except ImportError:
        return None
    top = float(np.nanmax(table.X[:1000])) if len(table) else 1.0
    items = []
    for error in errors:
        pixels = np.nan_to_num(np.asarray(table.X[error.row], dtype=np.float64)).reshape(table.image_shape)
        pixels = np.clip(pixels * (255.0 if top <= 1.0 else 1.0), 0, 255).astype(np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels.squeeze(axis=2) if pixels.shape[2] == 1 else pixels).save(file, format="PNG")
        truth, called = _short(table.classes[error.truth]), _short(table.classes[error.called])
        items.append(
            (file.getvalue(), f"{truth}, called {called}; probability of {truth}: {error.probability:.1%}")
        )
    return Gallery(items, "The surest errors among the pictures that were not trained on")


def _slices(reasons: Reasons, table: DataTable) -> list[Any]:
    if reasons.slices is None:
        return []
    if not reasons.slices:
        text = (
            "No group of rows was found in which the model is credibly worse than its probabilities say. Single "
            "columns and pairs of the most important ones were searched."
        )
        return [Note(text, "good", "Is it worse for some rows than for others?")]
    label = table.label(reasons.asked)
    columns = ["rows with", "held-out rows", f"share of {label}", "share that the model expects", "log loss",
               "log loss expected"]  # fmt: skip
    rows = [
        [
            " and ".join(f"{_short(name)}: {_short(text)}" for name, text in found.where),
            found.rows, found.happened, found.said, found.loss, found.expected,
        ]
        for found in reasons.slices
    ]  # fmt: skip
    formats = {columns[2]: ".1%", columns[3]: ".1%", columns[4]: ".3f", columns[5]: ".3f"}
    text = (
        "On these groups of rows the model is credibly worse than its own probabilities say (95% confidence for "
        "all groups together). Check its calls there before relying on them, or collect more such rows."
    )
    return [
        Note(text, "warning", "Is it worse for some rows than for others?"),
        Table(columns, rows, "", formats),
    ]


def _short(text: object) -> str:
    words = str(text)
    return words if len(words) <= _LONGEST_NAME else words[: _LONGEST_NAME - 1] + "…"
