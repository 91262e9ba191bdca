"""The main job's results as sections: what to do first, then why."""

from __future__ import annotations

from typing import Any

from equipoise.advisor.compare.result import Comparison
from equipoise.advisor.compare.sections import comparison_section, score_figure
from equipoise.advisor.compare.verdict import REFERENCE, Difference, Verdict
from equipoise.advisor.job.figures import confusion_figure, cost_figures, curves, reliability_figure
from equipoise.advisor.job.operating import OperatingPoint
from equipoise.diagnosis import Diagnosis
from equipoise.report import Code, Details, Facts, Interval, Note, Row, Section, Table, Text

NAMES = {
    "balanced_accuracy": "balanced accuracy",
    "average_precision": "average precision",
    "cost": "cost a row",
}


def recommendation(result: Comparison, verdict: Verdict) -> tuple[str, str]:
    """Two sentences: what, and the reason."""
    chosen = result.treatments[verdict.recommended]
    figures = " and ".join(f"{NAMES[m]} {result.mean(verdict.recommended, m):.3f}" for m in verdict.metrics)
    first = f"Use “{chosen.label}”, because {chosen.reason}: {figures} on rows that were not trained on."
    return first, _reason(result, verdict)


def _reason(result: Comparison, verdict: Verdict) -> str:
    others = [name for name in result.treatments if name != verdict.recommended]
    if not others:
        return "Nothing else was compared."
    main = verdict.metrics[0]
    equal = [n for n in others if all(_equal(verdict.against(n, m)) for m in verdict.metrics)]
    if len(equal) == len(others):
        return "Between the treatments there is no difference worth having, so the simplest one was taken."
    best = verdict.best[main]
    if best != verdict.recommended:
        d = verdict.against(best, main)
        assert d is not None
        return (
            f"“{result.treatments[best].label}” scored highest, by {abs(d.mean):.3f} in {NAMES[main]}, but it is "
            f"not credibly better (probability {d.worse:.0%} of a gain above 0.01), so the simpler one was taken."
        )
    rival = REFERENCE if REFERENCE in others else others[0]
    d = verdict.against(rival, main)
    assert d is not None
    label = result.treatments[rival].label
    if d.better > 0.95:
        return f"It beats “{label}” by {d.mean:.3f} in {NAMES[main]} ({d.low:.3f} to {d.high:.3f})."
    return (
        f"Nothing tried is credibly better, and it is the simplest that is as good; against “{label}” it is "
        f"{d.mean:+.3f} in {NAMES[main]} ({d.low:+.3f} to {d.high:+.3f}), "
        + ("no difference worth having." if d.equal > 0.8 else "a difference that these rows cannot confirm.")
    )


def _equal(d: Difference | None) -> bool:
    return d is not None and d.equal > 0.8


def summary_section(
    result: Comparison,
    verdict: Verdict,
    point: OperatingPoint,
    facts: list[tuple[str, ...]],
    commands: str,
    diagnosis: Diagnosis,
) -> Section:
    """The page that most readers read."""
    first, second = recommendation(result, verdict)
    figures: list[tuple[str, ...]] = list(facts)
    for name in ("recall", "precision") if point.threshold is not None else ():
        value = point.figures[name]
        figures.append((name.capitalize(), f"{value.value:.2f}", f"{value.low:.2f} to {value.high:.2f}"))
    if point.threshold is not None:
        figures.append(("Threshold", f"{point.threshold:.3f}", point.wish))
    return Section(
        "Summary",
        [
            Note(f"{first} {second}", "good", "Recommendation"),
            Facts(figures),
            *(Note(f.answer, "warning", f.question) for f in diagnosis.warnings[:3]),
            score_figure(result, list(result.treatments), verdict.recommended),
            Text(
                "The model was fitted to all rows and lies beside this page. To use it, or to move its threshold:"
            ),
            Code(commands),
        ],
    )


def treatments_section(result: Comparison, verdict: Verdict) -> Section:
    """All treatments, and each against the recommended one."""
    section = comparison_section(result, verdict.recommended)
    rows = []
    for d in verdict.differences:
        label = result.treatments[d.second].label
        rows.append([label, NAMES[d.metric], Interval(d.mean, d.low, d.high), d.better, d.equal, d.worse])
    columns = ["Against", "Metric", "Difference", "better", "no difference", "worse"]
    table = Table(
        columns,
        rows,
        caption=f"“{result.treatments[verdict.recommended].label}” against each: posterior probabilities of the "
        "Bayesian correlated t-test, where differences within 0.01 are not worth having.",
        formats={"Difference": "+.3f", "better": ".0%", "no difference": ".0%", "worse": ".0%"},
    )
    blocks: list[Any] = list(section.blocks)
    if rows:
        blocks.insert(
            3 if len(blocks) > 3 else len(blocks),
            Details("The recommended treatment against each of the others", [table]),
        )
    return Section(section.title, blocks)


def operating_section(result: Comparison, point: OperatingPoint, proba: Any, truth: Any) -> Section:
    """Curves, the chosen point and its interval."""
    labels = {"f1": "F1", "balanced_accuracy": "Balanced accuracy"}
    table = Facts(
        [
            (labels.get(name, name.capitalize()), f"{v.value:.3f}", f"{v.low:.3f} to {v.high:.3f}")
            for name, v in point.figures.items()
        ]
    )
    confusion = confusion_figure(point.confusion, result.task.classes)
    if point.threshold is None:
        text = f"Classes are called by p·w with weights tuned for {point.wish}."
        return Section(
            "Operating point", [Text(text), Row([table, confusion]), reliability_figure(proba, truth)]
        )
    positive = result.task.classes[1]
    text = (
        f"A row is called “{positive}” from a probability of {point.threshold:.3f} on. The threshold was "
        f"chosen for "
        f"{point.wish}, on out-of-fold predictions of all rows; the intervals are 95 % bootstrap intervals."
    )
    pictures = [
        *curves(proba, truth, point.threshold),
        *cost_figures(proba, truth, point.threshold, result.task.cost),
        reliability_figure(proba, truth),
        confusion,
    ]
    return Section(
        "Operating point", [Text(text), table, Row(pictures[:2]), Row(pictures[2:4]), Row(pictures[4:])]
    )
