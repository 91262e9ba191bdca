"""``compare``: the treatments, the folds, and what came out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from equipoise._core.checks import IntArray, check_integer, check_same_length
from equipoise._core.random import RandomState, draw_seed
from equipoise.advisor._old_treatments import Task, Treatment, select_treatments
from equipoise.advisor.compare.folds import CellResult, Fold, make_folds
from equipoise.advisor.compare.schedule import run_schedule
from equipoise.advisor.compare.scores import score_fold, summarize


@dataclass(frozen=True)
class Comparison:
    """What a comparison found.

    Attributes
    ----------
    scores
        One row a treatment and fold, one column a metric.
    summary
        Mean, standard error and interval of every treatment and metric.
    cells
        Test predictions by ``(treatment, fold)``.
    folds
        The splits, of which all treatments saw the same.
    treatments
        By name, those that were compared.
    notes
        Sentences about what was left out or cut short, and why.
    """

    task: Task
    treatments: dict[str, Treatment]
    folds: list[Fold]
    cells: dict[tuple[str, int], CellResult]
    scores: pd.DataFrame
    summary: pd.DataFrame
    seed: int
    notes: list[str] = field(default_factory=list)

    def mean(self, treatment: str, metric: str) -> float:
        rows = self.summary[(self.summary.treatment == treatment) & (self.summary.metric == metric)]
        return float(rows["mean"].iloc[0])


def as_task(
    X: Any, y: npt.ArrayLike, *, positive: Any = None, cost: tuple[float, float] | None = None
) -> Task:
    """Code the labels; in a binary task the positive class is ``positive`` or the rarer one."""
    check_same_length(X=X, y=y)
    labels, codes = np.unique(np.asarray(y), return_inverse=True)
    if len(labels) < 2:
        raise ValueError(f"y must have at least two classes, got only {labels.tolist()!r}")
    codes = codes.astype(np.int64)
    classes = tuple(labels.tolist())
    if positive is not None:
        if positive not in classes:
            raise ValueError(f"positive must be one of the labels {list(classes)!r}, got {positive!r}")
        codes = (codes == classes.index(positive)).astype(np.int64)
        rest = classes[1 - classes.index(positive)] if len(classes) == 2 else f"not {positive}"
        classes = (rest, positive)
    elif len(classes) == 2 and codes.mean() > 0.5:
        codes, classes = 1 - codes, classes[::-1]
    return Task(X, codes, classes, cost=cost)


def compare(
    X: Any,
    y: npt.ArrayLike,
    *,
    treatments: Iterable[str | Treatment] | None = None,
    positive: Any = None,
    cost: tuple[float, float] | None = None,
    n_splits: int = 5,
    repeats: int = 2,
    budget: float | None = None,
    n_jobs: int = 1,
    resume: str | PathLike[str] | None = None,
    random_state: RandomState = None,
    verbose: bool | None = None,
) -> Comparison:
    """Compare treatments by nested, repeated, stratified cross-validation.

    Every treatment sees the same outer folds, is tuned over as many settings by the same inner folds,
    and resamples
    inside the folds only. Probabilities are corrected to the data's prior before they are judged.

    Parameters
    ----------
    X, y
        Rows and labels.
    treatments
        Names or :class:`~equipoise.advisor._old_treatments.Treatment` objects; all that fit the data for ``None``.
    positive
        The label to find. By default the rarer one of two; with many classes, the question becomes
        "this one or another?".
    cost
        Cost of a false positive and of a false negative; thresholds are then tuned to it.
    n_splits, repeats
        Outer folds, and how often they are drawn.
    budget
        Seconds. Treatments too slow for it are left out, and repeats end when it does; the notes say so.
    n_jobs
        Processes. With more than one, a cell that outlasts the budget is stopped.
    resume
        Folder that keeps finished cells, so that a killed run goes on where it was.
    random_state, verbose
        Seed, and whether to show a progress bar (``None``: on a terminal).
    """
    task = X if isinstance(X, Task) else as_task(X, y, positive=positive, cost=cost)
    seed = draw_seed(random_state)
    check_integer("repeats", repeats, low=1)
    smallest = int(task.counts.min())
    if smallest < 4:
        rare = task.classes[int(task.counts.argmin())]
        raise ValueError(
            f"class {rare!r} has {smallest} rows; nested cross-validation needs at least 4: "
            "add rows, or leave the class out or merge it with another"
        )
    n_splits = min(check_integer("n_splits", n_splits, low=2), smallest)
    folds = make_folds(task.y, n_splits, repeats, seed)
    chosen, notes = [], []
    for treatment in select_treatments(treatments):
        reason = treatment.applies(task)
        if reason:
            notes.append(f"{treatment.label} was left out: {reason}.")
        else:
            chosen.append(treatment)
    if not chosen:
        raise ValueError("none of the treatments fits the data: " + " ".join(notes))
    cells, more = run_schedule(
        task,
        chosen,
        folds,
        seed,
        minimum=n_splits,
        budget=budget,
        n_jobs=n_jobs,
        resume=resume,
        verbose=verbose,
    )
    return collect(task, chosen, folds, cells, seed, notes + more)


def collect(
    task: Task,
    treatments: list[Treatment],
    folds: list[Fold],
    cells: dict[tuple[str, int], CellResult],
    seed: int,
    notes: list[str],
) -> Comparison:
    """Score the folds that all the finished treatments share."""
    done: IntArray = np.array([f.number for f in folds if any(number == f.number for _, number in cells)])
    names = [t.name for t in treatments if all((t.name, int(n)) in cells for n in done)]
    kept = [fold for fold in folds if fold.number in done]
    rows = []
    for name in names:
        for fold in kept:
            cell = cells[name, fold.number]
            scores = score_fold(task.y[fold.test], cell.proba, cell.weights, task.cost)
            rows.append({"treatment": name, "fold": fold.number, **scores, "seconds": cell.seconds})
    frame = pd.DataFrame(rows)
    share = len(kept[0].test) / len(task.y)
    by_name = {t.name: t for t in treatments if t.name in names}
    return Comparison(task, by_name, kept, cells, frame, summarize(frame, share), seed, notes)
