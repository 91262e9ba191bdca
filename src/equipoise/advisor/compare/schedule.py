"""Which cells run, in which order, until when: a budget kept, progress shown, and a killed run resumed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from equipoise._core.files import read_json, replacing, write_json
from equipoise._core.progress import Progress
from equipoise.advisor._old_treatments import Task, Treatment
from equipoise.advisor.compare.folds import CellResult, Fold, run_cell
from equipoise.advisor.compare.planning import Plan, make_plan, with_settings

Key = tuple[str, int]
ENOUGH = 2  # folds that all treatments must have finished before a run may end early
PILOT_SHARE = 0.5  # of the budget may go by until every treatment has finished its first fold


class CellStore:
    """Finished cells as one npz each: numbers only, whole or absent."""

    def __init__(self, folder: str | PathLike[str] | None, task: Task, seed: int) -> None:
        self.folder = None if folder is None else Path(folder)
        self.tag = f"{fingerprint(task)}-{seed}"

    def _path(self, treatment: Treatment, fold: Fold) -> Path:
        assert self.folder is not None
        what = (self.tag, treatment.name, repr(list(treatment.candidates)), fold.number, len(fold.train))
        return self.folder / f"{hashlib.blake2b(repr(what).encode(), digest_size=12).hexdigest()}.npz"

    def load_plan(self) -> dict[str, Any] | None:
        """What the run that was killed had decided to compare."""
        if self.folder is None or not (self.folder / f"{self.tag}.json").is_file():
            return None
        try:
            return dict(read_json(self.folder / f"{self.tag}.json"))
        except ValueError:
            return None

    def save_plan(self, plan: dict[str, Any]) -> None:
        if self.folder is not None:
            write_json(self.folder / f"{self.tag}.json", plan)

    def load(self, treatment: Treatment, fold: Fold) -> CellResult | None:
        if self.folder is None:
            return None
        path = self._path(treatment, fold)
        try:
            with np.load(path, allow_pickle=False) as stored:
                return CellResult(
                    stored["proba"], stored["weights"], int(stored["candidate"]), float(stored["seconds"])
                )
        except (OSError, ValueError, KeyError, EOFError):  # absent or damaged: it is computed again
            return None

    def save(self, treatment: Treatment, fold: Fold, cell: CellResult) -> None:
        if self.folder is not None:
            with replacing(self._path(treatment, fold)) as temporary, temporary.open("wb") as file:
                np.savez(
                    file,
                    proba=cell.proba,
                    weights=cell.weights,
                    candidate=cell.candidate,
                    seconds=cell.seconds,
                )


def fingerprint(task: Task) -> str:
    """A digest of rows, labels, costs and class names."""
    digest = hashlib.blake2b(digest_size=12)
    if hasattr(task.X, "columns"):
        import pandas as pd

        digest.update(pd.util.hash_pandas_object(task.X, index=False).to_numpy().tobytes())
        digest.update(repr([str(c) for c in task.X.columns]).encode())
    else:
        digest.update(np.ascontiguousarray(task.X).tobytes())
    digest.update(np.ascontiguousarray(task.y).tobytes())
    digest.update(repr((task.classes, task.cost)).encode())
    return digest.hexdigest()


@dataclass
class _Clock:
    budget: float | None
    started: float

    def left(self, share: float = 1.0) -> float:
        if self.budget is None:
            return float("inf")
        return self.started + share * self.budget - time.monotonic()


def run_schedule(
    task: Task,
    treatments: list[Treatment],
    folds: list[Fold],
    seed: int,
    *,
    minimum: int,
    budget: float | None = None,
    n_jobs: int = 1,
    resume: str | PathLike[str] | None = None,
    verbose: bool | None = None,
) -> tuple[dict[Key, CellResult], list[str]]:
    """Run fold after fold, all treatments in each, so that whatever was finished can be compared.

    Returns the cells of the folds that all kept treatments finished, and sentences about what was left out.
    """
    store = CellStore(resume, task, seed)
    clock = _Clock(budget, time.monotonic())
    cells: dict[Key, CellResult] = {}
    notes: list[str] = []
    kept = list(treatments)
    if budget is not None:
        plan = _planned(task, kept, folds[0], store, seed, minimum, n_jobs, clock)
        kept, notes = plan.treatments, list(plan.notes)
    with (
        Progress(len(kept) * len(folds), "comparing", verbose) as bar,
        _Workers(task, seed, n_jobs) as workers,
    ):
        for fold in folds:
            pilot = fold.number == 0
            repeat_starts = fold.number > 0 and fold.number % minimum == 0  # only whole repeats are compared
            if repeat_starts and clock.left() < minimum * _fold_seconds(cells, kept, fold) / n_jobs:
                break
            share = PILOT_SHARE if pilot else 1.0
            finished, failed = _run_fold(kept, fold, store, workers, clock, share, bar)
            for treatment in [t for t in kept if t.name in failed]:
                error = failed[treatment.name]
                notes.append(f"{treatment.label} was left out: it failed ({type(error).__name__}: {error}).")
                kept.remove(treatment)
                if not kept:
                    raise error
            late = [t for t in kept if t.name not in finished]
            if late and fold.number >= ENOUGH:
                break  # fewer folds of all treatments are worth more than all folds of a few
            for treatment in late:
                notes.append(f"{treatment.label} was left out: one fold took longer than the budget allows.")
            kept = [t for t in kept if t.name in finished]
            cells.update({(name, fold.number): cell for name, cell in finished.items()})
            if not kept:
                raise ValueError("the budget is too small for even one treatment: give it more time")
    names = {t.name for t in kept}
    done = 1 + max(number for name, number in cells if name in names)
    whole = done // minimum * minimum if done > minimum else done
    if whole < minimum:
        notes.append(
            f"The budget ended after {whole} of {minimum} folds: the figures are rough, give it more time."
        )
    elif whole < len(folds):
        repeats = f"{whole // minimum} of {len(folds) // minimum}"
        notes.append(f"The budget ended after {repeats} repeats of the cross-validation.")
    return {key: cell for key, cell in cells.items() if key[0] in names and key[1] < whole}, notes


def _planned(
    task: Task,
    treatments: list[Treatment],
    fold: Fold,
    store: CellStore,
    seed: int,
    minimum: int,
    n_jobs: int,
    clock: _Clock,
) -> Plan:
    """The plan of the run that is resumed, or a new one."""
    names = [t.name for t in treatments]
    saved = store.load_plan()
    if saved is not None and set(saved["kept"]) <= set(names):
        kept = [with_settings(t, saved["settings"]) for t in treatments if t.name in saved["kept"]]
        return Plan(kept, saved["settings"], saved["notes"])
    plan = make_plan(task, treatments, fold, seed, minimum, n_jobs, clock.left)
    store.save_plan(
        {"kept": [t.name for t in plan.treatments], "settings": plan.settings, "notes": plan.notes}
    )
    return plan


def _fold_seconds(cells: dict[Key, CellResult], kept: list[Treatment], fold: Fold) -> float:
    names = {t.name for t in kept}
    return sum(c.seconds for (name, _), c in cells.items() if name in names) / max(fold.number, 1)


def _run_fold(
    treatments: list[Treatment],
    fold: Fold,
    store: CellStore,
    workers: _Workers,
    clock: _Clock,
    share: float,
    bar: Progress,
) -> tuple[dict[str, CellResult], dict[str, Exception]]:
    """The fold's finished cells, and what went wrong in those that failed."""
    finished: dict[str, CellResult] = {}
    failed: dict[str, Exception] = {}
    waiting = []
    for treatment in treatments:
        stored = store.load(treatment, fold)
        if stored is None:
            waiting.append(treatment)
        else:
            finished[treatment.name] = stored
            bar.advance(note=treatment.label)
    if waiting:
        bar.advance(0, note=f"fold {fold.number + 1}: {waiting[0].label}")
    for treatment, cell in workers.run(waiting, fold, lambda: clock.left(share)):
        if isinstance(cell, Exception):
            failed[treatment.name] = cell
            continue
        store.save(treatment, fold, cell)
        finished[treatment.name] = cell
        bar.advance(note=treatment.label)
    return finished, failed


_TASK: Task | None = None


def _keep_task(task: Task) -> None:
    global _TASK
    _TASK = task
    import sklearn.ensemble  # noqa: F401  (imported before the clock of the first cell starts)


def _run_kept(treatment: Treatment, fold: Fold, seed: int) -> CellResult:
    assert _TASK is not None
    return run_cell(_TASK, treatment, fold, seed)


class _Workers:
    """Runs a fold's cells here, or in processes that can be stopped when the time is up."""

    def __init__(self, task: Task, seed: int, n_jobs: int) -> None:
        self.task, self.seed, self.n_jobs = task, seed, n_jobs
        self.pool: object | None = None

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _start(self) -> object:
        from joblib.externals.loky import ProcessPoolExecutor

        if self.pool is None:
            one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
            self.pool = ProcessPoolExecutor(
                self.n_jobs, env=one, initializer=_keep_task, initargs=(self.task,)
            )
        return self.pool

    def _stop(self) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, kill_workers=True)  # type: ignore[attr-defined]
            self.pool = None

    def run(
        self, treatments: list[Treatment], fold: Fold, remaining: Callable[[], float]
    ) -> Iterator[tuple[Treatment, CellResult | Exception]]:
        if self.n_jobs == 1:
            for treatment in treatments:
                if remaining() <= 0:
                    return
                try:
                    yield treatment, run_cell(self.task, treatment, fold, self.seed)
                except Exception as error:  # one treatment that fails must not lose the others
                    yield treatment, error
            return
        if not treatments:
            return
        import concurrent.futures as futures

        pool = self._start()
        jobs = {pool.submit(_run_kept, t, fold, self.seed): t for t in treatments}  # type: ignore[attr-defined]
        try:
            timeout = remaining()
            for job in futures.as_completed(
                jobs, timeout=None if timeout == float("inf") else max(timeout, 0.01)
            ):
                problem = job.exception()
                if problem is not None and not isinstance(problem, Exception):
                    raise problem
                yield jobs[job], problem or job.result()
        except futures.TimeoutError:
            self._stop()
