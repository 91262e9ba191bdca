"""The report: what to use, what it will do, how sure that is, and why. Numbers come in, blocks go out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

import equipoise
from equipoise._core.checks import FloatArray, IntArray
from equipoise.advisor._advisor import Advisor
from equipoise.advisor._reasons_section import reasons_section
from equipoise.advisor.model import versions
from equipoise.advisor.reasons import Reasons
from equipoise.advisor.search import TOO_SHORT
from equipoise.advisor.verdict import ALWAYS, ENSEMBLE, NEVER, SAME
from equipoise.datasets import DataTable
from equipoise.diagnosis import Diagnosis
from equipoise.metrics import DecisionFigure, Wish, reliability_curve
from equipoise.report import (
    COLORS,
    SHADES,
    Code,
    Details,
    Facts,
    Figure,
    Headline,
    Interval,
    LiveOperatingPoint,
    Note,
    Ranking,
    Report,
    Row,
    Section,
    Table,
    Text,
    new_figure,
    plain_labels,
)
from equipoise.report.blocks import clip

NAMES = {
    "balanced_accuracy": "balanced accuracy", "average_precision": "average precision", "cost": "cost per case",
    "brier": "Brier score", "log_loss": "log loss", "recall": "recall", "precision": "precision",
    "specificity": "specificity", "f1": "F1", "macro_f1": "macro F1", "alerts": "share of alerts",
}  # fmt: skip
WEIGHT = "weight in the ensemble"
_MOST_IN_MATRIX = 30
_CONSTANT = {NEVER: "never raise an alert", ALWAYS: "always raise an alert"}
_PLAIN = (*_CONSTANT, SAME)


def build_report(
    advisor: Advisor,
    table: DataTable,
    diagnosis: Diagnosis | None,
    out: str = "out",
    reasons: Reasons | None = None,
) -> Report:
    """All sections from a fitted advisor, the table it was fitted to, its diagnosis and the model's reasons."""
    sections = [
        _summary(advisor, table, diagnosis, out),
        _operating(advisor, out),
        *([] if reasons is None else [reasons_section(reasons, advisor.compared_)]),
        _treatments(advisor),
        *([] if diagnosis is None else [_diagnosis(advisor, diagnosis)]),
        _data(advisor, table),
    ]
    counts = table.counts
    question = f"Is it {table.label(1)}?" if table.binary else f"Which {clip(table.target, 60)}?"
    times = counts.max() / max(counts.min(), 1)
    ratio = f"{times:.0f} to 1" if times >= 10 else f"{times:.2g} to 1"
    return Report(
        f"{clip(table.name, 80)}: a decision", sections,
        subtitle=f"{question} {table.n_rows:,} rows, {table.n_classes} classes, imbalance {ratio}.",
        data=_report_data(advisor, table, diagnosis, reasons), footer=f"Equipoise {equipoise.__version__}.",
    )  # fmt: skip


def _report_data(
    advisor: Advisor, table: DataTable, diagnosis: Diagnosis | None, reasons: Reasons | None = None
) -> dict[str, Any]:
    """The numbers of the report as plain values."""
    point = advisor.operating_point_
    return {
        "recommended": advisor.verdict_.recommended,
        "alternative": advisor.verdict_.alternative,
        "metric": advisor.verdict_.metric,
        "leaderboard": advisor.leaderboard_.reset_index().to_dict("records"),
        "operating_point": {
            "wish": point.wish,
            "threshold": point.threshold,
            "classes": advisor._labels,
            "losses": point.decision.losses,
            "prior": point.decision.prior,
            "figures": {k: [v.value, v.low, v.high, *v.long_run] for k, v in point.figures.items()},
            "confusion": point.confusion,
        },
        "counts": dict(zip(map(str, table.classes), table.counts.tolist(), strict=True)),
        "diagnosis": [] if diagnosis is None else diagnosis.to_json(),
        "reasons": None if reasons is None else asdict(reasons),
        "notes": advisor.notes_,
        "versions": versions(),
        "fit_seconds": advisor.fit_seconds_,
    }


def _label(advisor: Advisor, name: str) -> str:
    return _CONSTANT.get(name) or str(advisor.leaderboard_.loc[name, "treatment"])


def _summary(advisor: Advisor, table: DataTable, diagnosis: Diagnosis | None, out: str) -> Section:
    point, verdict = advisor.operating_point_, advisor.verdict_
    first = f"Use {_label(advisor, verdict.recommended)}"
    if point.threshold is not None:
        first += f" and raise an alert at a probability of {_percent(point.threshold)} or more"
    parts = [
        ("What it is for", _purpose(advisor)),
        ("What it will do", _will_do(advisor, table)),
    ]
    parts += [("How sure", _how_sure(advisor)), ("What was not tried", _not_tried(advisor))]
    rare, columns = table.rare, len(table.schema.columns)
    facts: list[tuple[str, ...]] = [
        ("Rows", f"{table.n_rows:,}", f"{columns:,} column{'s' * (columns != 1)}"),
        (
            "Rarest class",
            f"{table.counts[rare]:,}",
            f"{table.label(rare)}, 1 in {table.n_rows / table.counts[rare]:.0f}",
        ),
    ]
    figures = _known_figures(advisor)
    for name in ("recall", "precision", "balanced_accuracy", "cost"):
        if name in figures and (name != "balanced_accuracy" or "recall" not in figures):
            f = figures[name]
            facts.append(
                (NAMES[name].capitalize(), f"{f.value:.3f}", f"{f.low:.3f} to {f.high:.3f} in a fresh batch")
            )
    warnings = (
        [] if diagnosis is None else [Note(f.answer, "warning", f.question) for f in diagnosis.warnings[:3]]
    )
    warnings += [Note(note, "warning") for note in advisor.compared_.notes if note not in table.notes]
    unmet = [n for n in advisor.notes_ if n.startswith("The wish cannot be met")]
    commands = f"equipoise predict {out}/model NEW.csv --out predictions.csv"
    if table.binary:
        wishes = "--cost fp=1,fn=20   # or --recall 0.95, --alerts 50, --prior 0.01"
        commands += f"\nequipoise retune {out}/model {wishes}"
    return Section(
        "Summary",
        [
            Headline(f"{first}.", parts), *(Note(note, "warning") for note in unmet), Facts(facts), *warnings,
            Text(
                "The model is in the folder beside this page and is used like this. Another decision needs no "
                "training: see the tab “Operating point”."
            ),
            Code(commands),
        ],
    )  # fmt: skip


def _percent(share: float) -> str:
    """Three digits, or as many as tell it from 100 %.

    >>> _percent(0.04761), _percent(0.99996), _percent(1.0)
    ('4.76%', '99.996%', '100%')
    """
    shown = [
        np.format_float_positional(100 * share, digits, fractional=False, trim="-") for digits in (3, 5, 17)
    ]
    return next((text for text in shown if text != "100"), "100") + "%"


def _purpose(advisor: Advisor) -> str:
    point = advisor.operating_point_
    if point.decision.wish.objective == "balanced_accuracy" and advisor.unmet_wish_ is None:
        return "No cost was named, so every class counts the same, however rare: the best balanced accuracy."
    return f"{point.wish[0].upper()}{point.wish[1:]}."


def _known_figures(advisor: Advisor) -> dict[str, DecisionFigure]:
    """The figures of the decision; where no held-out row raised an alert, there is no precision."""
    point = advisor.operating_point_
    silent = len(point.confusion) == 2 and not point.confusion[:, 1].any()
    return {name: figure for name, figure in point.figures.items() if not (silent and name == "precision")}


def _will_do(advisor: Advisor, table: DataTable) -> str:
    figures = _known_figures(advisor)
    if "recall" not in figures:
        value = figures["balanced_accuracy"]
        text = (
            f"Of each class {value.value:.0%} are called right on average "
            f"({value.low:.0%} to {value.high:.0%})."
        )
        if "cost" in figures:
            text += f" A case costs {figures['cost'].value:.3g} on average; to {_label(advisor, SAME)} costs "
            text += f"{_constant_cost(advisor):.3g}."
        return text
    text = "It raised no alert on rows that were not trained on, so do not expect it to find anything."
    if "precision" in figures:
        text = (
            f"Of 100 true cases of {table.label(1)} it finds {_of_hundred(figures['recall'])}; of 100 alerts "
            f"{_of_hundred(figures['precision'])} are right; it raises {10_000 * figures['alerts'].value:,.0f} "
            "alerts in 10,000 cases."
        )
    if "cost" in figures:
        text += f" A case costs {figures['cost'].value:.3g} on average"
        plain = _constant_cost(advisor)
        if plain is not None:
            text += f"; the better of always and never raising an alert costs {plain:.3g}"
        text += "."
    return text


def _constant_cost(advisor: Advisor) -> float | None:
    """What a case costs if the same is always done, whichever is cheaper."""
    decision, board = advisor.operating_point_.decision, advisor.leaderboard_
    costs = decision.wish.cost_table(len(decision.prior))
    if costs is not None:
        return float((decision.prior @ costs).min())
    return (
        float(board.loc[[NEVER, ALWAYS], "cost"].min()) if "cost" in board and NEVER in board.index else None
    )


def _of_hundred(figure: DecisionFigure) -> str:
    return f"{100 * figure.value:.0f} ({100 * figure.low:.0f} to {100 * figure.high:.0f})"


def _how_sure(advisor: Advisor) -> str:
    verdict = advisor.verdict_
    text = (
        "All figures come from rows that were not trained on. The ranges hold for 95 of 100 fresh batches of "
        f"{max(len(advisor.truth_) // 2, 1):,} rows each."
    )
    if advisor.groups_ is not None:
        text += " Rows that belong together count as fewer, by how alike they are."
    if verdict.alternative:
        sign = 1 if verdict.difference >= 0 else -1
        low, high = sorted((sign * verdict.low, sign * verdict.high))
        text += f" The simplest model that does about as well is {_label(advisor, verdict.alternative)}: its "
        text += f"{NAMES[verdict.metric]} is "
        if max(-low, high) < 5e-4:
            return text + "the same."
        text += (
            f"{'worse' if sign > 0 else 'better'} by {abs(verdict.difference):.3f} ({low:.3f} to {high:.3f})"
        )
        text += ", which may be chance." if low <= 0 else "."
    return text


def _not_tried(advisor: Advisor) -> str:
    missed = _grouped(advisor)
    if advisor.treatments is not None:
        missed.insert(0, "Only the treatments that were asked for were tried.")
    named = (
        "The budget", "Treatments were compared", "The delivered model", "The other models", "The fits went on",
    )  # fmt: skip
    sampled = [n for n in advisor.notes_ if n.startswith(named)]
    return " ".join([*(missed or ["Everything that applies to this table was tried."]), *sampled])


def _grouped(advisor: Advisor) -> list[str]:
    """What was not tried, a sentence for each reason."""
    said = (
        f"For lack of time: {'; '.join(names)}." if why == TOO_SHORT else f"{'; '.join(names)}: {why}."
        for why, names in advisor.left_out_.items()
    )
    return [sentence[0].upper() + sentence[1:] for sentence in said]


def _figure_name(name: str, labels: list[str]) -> str:
    """A figure's name for readers; a class is called by its label."""
    code = name.removeprefix("recall of class ")
    return f"recall of “{labels[int(code)][:60]}”" if code != name else NAMES.get(name, name)


def _operating(advisor: Advisor, out: str) -> Section:
    point, labels = advisor.operating_point_, [str(label) for label in advisor._labels]
    wish = point.decision.wish
    table = Table(
        ["Figure", "Value", "Range in a fresh batch", "Range in the long run"],
        [
            [
                _figure_name(k, labels),
                v.value,
                f"{v.low:.3f} to {v.high:.3f}",
                "{:.3f} to {:.3f}".format(*v.long_run),
            ]
            for k, v in _known_figures(advisor).items()
        ],
        formats={"Value": ".3f"},
        caption=f"What the decision for {point.wish} does to rows that were not trained on, with 95% ranges. A "
        "fresh batch has half as many rows as were held out.",
    )
    blocks: list[Any] = []
    if not wish.by_row:
        cost = wish.cost_table(len(labels))
        blocks.append(
            LiveOperatingPoint(
                advisor.held_out_, advisor.truth_, labels, advisor.data_prior_, point.decision, cost=cost,
                alerts=wish.level if wish.objective == "alerts" else None, model=f"{out}/model",
                groups=advisor.groups_,
                folds=advisor.block_,
            )
        )  # fmt: skip
    else:
        text = "Costs come from a column, so each row has its own threshold: a false alarm's cost over both costs."
        blocks.append(Note(text))
    blocks += [
        table,
        *_cost_table(wish, labels),
        Row(
            [
                _reliability_figure(advisor.held_out_, advisor.truth_),
                confusion_figure(point.confusion, labels),
            ]
        ),
    ]
    return Section("Operating point", blocks)


def _cost_table(wish: Wish, labels: list[str]) -> list[Any]:
    """The costs by class as they were understood, with the names of the classes."""
    if wish.cost is None or isinstance(wish.cost, Mapping) or len(labels) > _MOST_IN_MATRIX:
        return []
    calls = [f"called {label}" for label in labels]
    rows = [[label, *row] for label, row in zip(labels, wish.cost, strict=True)]
    caption = "What a call costs: a row for each true class, a column for each call."
    return [Table(["True class", *calls], rows, caption=caption)]


def _treatments(advisor: Advisor) -> Section:
    board, verdict = advisor.leaderboard_, advisor.verdict_
    metrics = [
        m for m in ("cost", "balanced_accuracy", "average_precision", "brier", "log_loss") if m in board
    ]
    rows, stacked = [], ENSEMBLE in board.index
    for name, row in board.iterrows():
        cells = [_two_errors(row, m) for m in metrics]
        fitted = name not in (ENSEMBLE, *_PLAIN)
        own = [row["seconds"], *([row["weight"]] if stacked else [])]
        rows.append([_label(advisor, str(name)), *cells, *(own if fitted else [None] * len(own))])
    columns = ["Treatment", *(NAMES[m] for m in metrics), "seconds", *([WEIGHT] if stacked else [])]
    formats = {NAMES[m]: ".3f" for m in metrics} | {"seconds": ".1f", WEIGHT: ".2f"}
    emphasis = [list(board.index).index(verdict.recommended)]
    shown = [n for n in board.index if n not in _PLAIN]
    ranking = [(_label(advisor, n), _two_errors(board.loc[n], verdict.metric)) for n in shown]
    text = (
        "Every treatment was fitted on the same folds and judged on rows that it did not see, with probabilities "
        "corrected to the class shares of the data. Ranges are two standard errors over the folds to either side."
    )
    if verdict.unable:
        names = ", ".join(_label(advisor, name) for name in verdict.unable)
        text += f" The wish cannot be met by {names}: their decision is the one for balanced accuracy."
    if stacked:
        text += " The ensemble weighs the treatments by what they add to each other."
    blocks: list[Any] = [
        Text(text),
        Ranking(ranking, f"{NAMES[verdict.metric]} of every treatment".capitalize(), from_zero=False),
    ]
    blocks.append(Table(columns, rows, formats=formats, emphasis=emphasis))
    if advisor.left_out_:
        blocks.append(Details("What was not tried", [Text(sentence) for sentence in _grouped(advisor)]))
    return Section("Treatments", blocks)


def _two_errors(row: Any, metric: str) -> Interval:
    value, reach = float(row[metric]), 2 * float(row[f"{metric}_error"])
    most = np.inf if metric in ("cost", "log_loss") else 1.0
    return Interval(value, max(value - reach, 0.0), min(value + reach, most))


def _diagnosis(advisor: Advisor, diagnosis: Diagnosis) -> Section:
    """The diagnosis, and beside the theory's expectation what was measured."""
    section = diagnosis.section()
    theory = next((finding for finding in diagnosis.findings if finding.slug == "training_ratio"), None)
    if theory is None:
        return section
    board = advisor.leaderboard_
    names = [n for n in ("logistic", advisor.verdict_.recommended) if n in board.index]
    measured = " and ".join(
        f"{_label(advisor, n)} reaches {board['balanced_accuracy'][n]:.3f}" for n in dict.fromkeys(names)
    )
    text = (
        "The theory speaks of a linear model that is used as it was trained. Here every treatment is "
        "corrected to the class shares of the data and has its threshold chosen, so that the share in "
        f"training matters less: in balanced accuracy {measured}. Where the two differ, go by what was measured."
    )
    titles = [getattr(block, "title", None) for block in section.blocks]
    end = titles.index(theory.question) + 1 + len(theory.blocks)
    measured_here = Note(text, title="What was measured")
    return Section(section.title, [*section.blocks[:end], measured_here, *section.blocks[end:]])


def _data(advisor: Advisor, table: DataTable) -> Section:
    blocks: list[Any] = [Text(f"Read from {table.name}; the target is “{table.target}”.")]
    blocks += [Note(note) for note in table.notes]
    rows = [[c.name, c.kind, c.dtype] for c in table.schema.columns[:200]]
    caption = f"The first 200 of {len(table.schema.columns):,}." if len(table.schema.columns) > 200 else ""
    blocks.append(Details("Columns", [Table(["column", "kind", "stored as"], rows, caption=caption)]))
    blocks.append(
        Details("Versions", [Table(["package", "version"], [[k, v] for k, v in versions().items()])])
    )
    return Section("Data", blocks)


def _reliability_figure(proba: FloatArray, truth: IntArray) -> Figure:
    """Do events called 30 % probable happen in 30 % of the cases?"""
    curve = reliability_curve(
        truth, proba, n_bins=10, strategy="quantile", labels=list(range(proba.shape[1]))
    )
    seen = np.isfinite(curve.confidence) & (curve.weight > 0)
    x, y, share = curve.confidence[seen], curve.frequency[seen], curve.weight[seen]
    n = share / share.sum() * len(truth)
    error = np.sqrt(np.maximum(y * (1 - y), 1 / (n + 2)) / n)
    top = float(min(1.0, 1.1 * max(x.max(), y.max(), 0.05)))
    accent = COLORS["accent"]
    diagonal = {
        "type": "scatter", "x": [0, top], "y": [0, top], "mode": "lines", "name": "perfect",
        "line": {"color": COLORS["muted"], "dash": "dot", "width": 1.5}, "hoverinfo": "skip",
    }  # fmt: skip
    points = {
        "type": "scatter", "x": x.tolist(), "y": y.tolist(), "mode": "markers+lines", "name": "observed",
        "line": {"color": accent, "width": 1.5}, "marker": {"color": accent, "size": 9},
        "customdata": np.round(n).tolist(),
        "error_y": {"type": "data", "array": error.tolist(), "color": accent, "thickness": 1.2, "width": 3},
        "hovertemplate": "said %{x:.3f}<br>happened %{y:.3f}<br>%{customdata} rows<extra></extra>",
    }  # fmt: skip
    figure = new_figure(diagonal, points, x="probability said", y="share that happened")
    caption = "Ten bins of equally many rows; probabilities are at the data's own class shares."
    return Figure(figure, caption, "Reliability diagram: said against observed probability.", 340)


def confusion_figure(confusion: IntArray, classes: list[str]) -> Figure:
    """Where the rows of each class go; the smallest of very many classes are taken together."""
    caption = "Rows by true class; the shade is the share of the row's class."
    if len(classes) > _MOST_IN_MATRIX:
        order = np.argsort(-confusion.sum(axis=1), kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.minimum(np.arange(len(order)), _MOST_IN_MATRIX - 1)
        folded = np.zeros((_MOST_IN_MATRIX, _MOST_IN_MATRIX), dtype=np.int64)
        np.add.at(folded, (place[:, None], place[None, :]), confusion)
        kept = [classes[code] for code in order[: _MOST_IN_MATRIX - 1]]
        confusion, classes = folded, [*kept, f"{len(order) - len(kept)} smaller classes"]
        caption += f" The {len(order) - len(kept)} classes with the fewest rows are one row and one column."
    labels, few = plain_labels(classes), len(classes) <= 15
    shares = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    heat = {
        "type": "heatmap", "z": np.round(shares, 4).tolist(), "x": labels, "y": labels,
        "customdata": confusion.tolist(), "colorscale": SHADES, "zmin": 0, "zmax": 1, "showscale": False,
        "xgap": 2 if few else 0, "ygap": 2 if few else 0, "text": confusion.tolist() if few else None,
        "texttemplate": "%{text}" if few else None,
        "hovertemplate": "true %{y}<br>called %{x}<br>%{customdata} rows, %{z:.1%}<extra></extra>",
    }  # fmt: skip
    figure = new_figure(heat, x="called", y="true", yaxis_autorange="reversed", margin_t=16)
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(type="category", showgrid=False)
    return Figure(figure, caption, "Confusion matrix.", max(260, min(640, 120 + 44 * len(labels))))


__all__ = ["ENSEMBLE", "build_report"]
