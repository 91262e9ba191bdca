"""The main job, step by step: read, diagnose, compare, judge, choose, fit, write."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import equipoise
from equipoise._core.checks import FloatArray, IntArray
from equipoise._core.random import derive_seed
from equipoise.advisor._old_treatments import Task
from equipoise.advisor.compare.folds import fit_candidate, tune
from equipoise.advisor.compare.result import Comparison, compare
from equipoise.advisor.compare.schedule import fingerprint
from equipoise.advisor.compare.verdict import Verdict, judge
from equipoise.advisor.job.model import FittedModel, save_model, versions, without_samplers
from equipoise.advisor.job.operating import OperatingPoint, choose, operating_point
from equipoise.advisor.job.sections import operating_section, summary_section, treatments_section
from equipoise.datasets import Table
from equipoise.diagnosis import Diagnosis, diagnose
from equipoise.report import Note, Report, Section, Text
from equipoise.report import Table as TableBlock

MOST_ROWS = 20_000


@dataclass(frozen=True)
class Options:
    """What the user may wish for."""

    positive: str | None = None
    cost: tuple[float, float] | None = None
    budget: float = 300.0
    out: str = "out"
    treatments: Sequence[str] | None = None
    repeats: int = 3
    n_jobs: int = 1
    seed: int = 0
    verbose: bool | None = None


def run_job(table: Table, options: Options) -> dict[str, Path]:
    """Write ``report.html``, ``report.md``, ``report.json`` and ``model/`` under ``options.out``."""
    started = time.monotonic()
    task = table_task(table, options)
    out = Path(options.out)
    small, notes = subsample(task, options.seed)
    diagnosis = _diagnose(table, task, options)
    left = max(5.0, 0.85 * (options.budget - (time.monotonic() - started)))
    unfinished = out / ".unfinished"
    result = compare(
        small, small.y, treatments=options.treatments, repeats=options.repeats, budget=left,
        n_jobs=options.n_jobs, resume=unfinished, random_state=options.seed, verbose=options.verbose,
    )  # fmt: skip
    result.notes.extend(notes)
    verdict = verdict_of(result)
    model, point, held_out, truth = finish(table, result, verdict, options)
    report = build_report(table, task, result, verdict, point, held_out, truth, diagnosis, options)
    paths = report.write(out)
    paths["model"] = save_model(model, out / "model")
    shutil.rmtree(unfinished, ignore_errors=True)
    return paths


def table_task(table: Table, options: Options) -> Task:
    """The task with the question that ``--positive`` asks."""
    if options.positive is not None:
        table = table.with_positive(options.positive)
    table.check_classes()
    if options.cost is not None and not table.binary:
        raise ValueError(
            f"--cost needs a question with two answers, and {table.target!r} has {table.n_classes} classes: "
            "name the one to find with --positive"
        )
    plain = {"date": "number", "text": "category"}
    kinds = () if table.schema.all_numbers else tuple(plain.get(kind, kind) for kind in table.kinds)
    return Task(table.X, table.y, table.classes, kinds, options.cost, table.image_shape)


def subsample(task: Task, seed: int, most: int = MOST_ROWS) -> tuple[Task, list[str]]:
    """A stratified part of a large table, at least 50 rows of each class, for the comparison."""
    if len(task.y) <= most:
        return task, []
    rng = np.random.default_rng(derive_seed(seed, "subsample"))
    keep = []
    for code, count in enumerate(task.counts):
        rows = np.flatnonzero(task.y == code)
        share = max(round(most * count / len(task.y)), min(50, count))
        keep.append(rng.choice(rows, min(share, count), replace=False))
    index = np.sort(np.concatenate(keep))
    note = f"The comparison used a stratified sample of {len(index):,} of {len(task.y):,} rows."
    return replace(task, X=task.rows(index), y=task.y[index]), [note]


def verdict_of(result: Comparison) -> Verdict:
    """The verdict on balanced accuracy (or the user's cost) and average precision."""
    metrics = (
        ("cost", "average_precision") if result.task.cost else ("balanced_accuracy", "average_precision")
    )
    share = len(result.folds[0].test) / len(result.task.y)
    return judge(result.scores, list(result.treatments), share, metrics)


def held_out_predictions(result: Comparison, name: str) -> FloatArray:
    """Each row's probability from the first repeat's fold that did not train on it."""
    proba = np.full((len(result.task.y), result.task.n_classes), np.nan)
    for fold in result.folds:
        if np.isnan(proba[fold.test, 0]).all():
            proba[fold.test] = result.cells[name, fold.number].proba
    return proba


def finish(
    table: Table, result: Comparison, verdict: Verdict, options: Options
) -> tuple[FittedModel, OperatingPoint, FloatArray, IntArray]:
    """Fit the recommended treatment to all compared rows, and choose its threshold on held-out predictions."""
    treatment, task = result.treatments[verdict.recommended], result.task
    rows = np.arange(len(task.y))
    seed = derive_seed(result.seed, treatment.name, "final")
    candidate, weights, _ = tune(treatment, task, rows, seed)
    fitted: Any = fit_candidate(treatment, task, candidate, rows, seed)
    prior = task.counts / task.counts.sum()
    held_out = held_out_predictions(result, treatment.name)
    seen = ~np.isnan(held_out[:, 0])  # all rows, unless the budget ended within the first repeat
    held_out, truth = held_out[seen], task.y[seen]
    if treatment.decision == "tuned":
        weights, _, wish = choose(held_out, truth, prior, cost=task.cost)
    else:
        wish = "the most probable class at the prior it was trained to"
    point = operating_point(held_out, truth, prior, weights, prior, wish, options.seed)
    info = {
        "target": table.target,
        "data": table.name,
        "rows": len(task.y),
        "fingerprint": fingerprint(task),
        "treatment": treatment.name,
        "label": treatment.label,
        "settings": dict(treatment.candidates[candidate]),
        "decision": {"wish": wish},
        "image_shape": list(task.image_shape) if task.image_shape else None,
    }
    model = FittedModel(
        pipeline=without_samplers(fitted),
        schema=table.schema,
        classes=task.classes,
        weights=weights,
        prior=prior,
        trained_prior=treatment.trained_prior(task.counts),
        data_prior=prior,
        held_out=held_out,
        truth=truth,
        info=info,
    )
    return model, point, held_out, truth


def _diagnose(table: Table, task: Task, options: Options) -> Diagnosis:
    asked = replace(table, y=task.y, classes=task.classes)
    return diagnose(asked, random_state=options.seed, verbose=options.verbose)


def build_report(
    table: Table,
    task: Task,
    result: Comparison,
    verdict: Verdict,
    point: OperatingPoint,
    held_out: FloatArray,
    truth: IntArray,
    diagnosis: Diagnosis,
    options: Options,
) -> Report:
    """All sections from all results."""
    counts = task.counts
    facts: list[tuple[str, ...]] = [("Rows", f"{len(task.y):,}", f"{len(table.schema.columns):,} columns")]
    rare = int(counts.argmin())
    facts.append(
        (
            "Rarest class",
            f"{counts[rare]:,}",
            f"“{task.classes[rare]}”, 1 in {len(task.y) / counts[rare]:.0f}",
        )
    )
    commands = (
        f"equipoise predict {options.out}/model NEW.csv --out predictions.csv\n"
        f"equipoise retune {options.out}/model --cost fp=1,fn=20   # or --recall 0.95, or --prior 0.01"
    )
    sections = [summary_section(result, verdict, point, facts, commands, diagnosis)]
    sections.append(diagnosis.section())
    sections.append(treatments_section(result, verdict))
    sections.append(operating_section(result, point, held_out, truth))
    sections.append(_data_section(table))
    question = f"Is it “{task.classes[1]}”?" if task.binary else f"Which {table.target}?"
    data = {
        "recommended": verdict.recommended,
        "best": verdict.best,
        "shortfalls": verdict.shortfalls,
        "differences": verdict.differences,
        "summary": result.summary.to_dict("records"),
        "operating_point": {"threshold": point.threshold, "weights": point.weights, "figures": point.figures},
        "counts": dict(zip(map(str, task.classes), counts.tolist(), strict=True)),
        "diagnosis": diagnosis.to_json(),
        "notes": [*table.notes, *result.notes],
        "versions": versions(),
    }
    ratio = f"{counts.max() / counts.min():.0f} to 1"
    subtitle = f"{question} {len(task.y):,} rows, {task.n_classes} classes, imbalance {ratio}."
    return Report(
        f"{table.name}: a report on imbalanced data", sections, subtitle=subtitle, data=data,
        footer=f"Equipoise {equipoise.__version__}, seed {options.seed}.",
    )  # fmt: skip


def _data_section(table: Table) -> Section:
    blocks: list[Any] = [Text(f"Read from {table.name}; the target is “{table.target}”.")]
    blocks += [Note(note) for note in table.notes]
    rows = [[c.name, c.kind, c.dtype] for c in table.schema.columns[:200]]
    blocks.append(
        TableBlock(["column", "kind", "dtype"], rows, caption="The columns that the model uses (first 200).")
    )
    blocks.append(
        TableBlock(["package", "version"], [[k, v] for k, v in versions().items()], caption="Made with.")
    )
    return Section("Data", blocks)
