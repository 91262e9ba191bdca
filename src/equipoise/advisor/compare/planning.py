"""What a budget can pay for: one fit of each treatment is timed, and all are tuned over equally many settings."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from equipoise.advisor._old_treatments import Task, Treatment
from equipoise.advisor.compare.folds import INNER_SPLITS, Fold, fit_candidate

SAFETY = 1.3  # times the estimate is what is set aside: machines have other things to do
TIMING_SHARE = 0.15  # of what is left may go into timing
SETTINGS = (4, 2, 1)


@dataclass(frozen=True)
class Plan:
    """Treatments with as many settings each as the budget allows, and sentences about what was cut."""

    treatments: list[Treatment]
    settings: int
    notes: list[str]


def with_settings(treatment: Treatment, count: int) -> Treatment:
    """The treatment with ``count`` of its settings, from the middle of its list."""
    start = max(0, (len(treatment.candidates) - count) // 2)
    return replace(treatment, candidates=list(treatment.candidates)[start : start + count])


def make_plan(
    task: Task,
    treatments: list[Treatment],
    fold: Fold,
    seed: int,
    minimum: int,
    n_jobs: int,
    left: Callable[[], float],
) -> Plan:
    """Time one fit each, then choose the most settings at which one repeat of all baselines fits.

    The baselines come first, the simplest before the elaborate; other treatments join while there is room.
    """
    seconds, notes = _time_fits(task, treatments, fold, seed, left)
    timed = sorted((t for t in treatments if t.name in seconds), key=lambda t: (not t.baseline, t.order))

    def cost(names: list[Treatment], settings: int) -> float:
        fits = minimum * (1 + INNER_SPLITS * settings)
        return SAFETY * fits * sum(seconds[t.name] for t in names) / n_jobs

    room = left()
    baselines = [t for t in timed if t.baseline] or timed[:1]
    settings = next((s for s in SETTINGS if cost(baselines, s) <= room), SETTINGS[-1])
    if settings < SETTINGS[0]:
        notes.append(
            f"Every treatment was tuned over {settings} instead of {SETTINGS[0]} settings, for the budget."
        )
    kept: list[Treatment] = []
    for treatment in timed:
        if not kept or cost([*kept, treatment], settings) <= room:
            kept.append(treatment)
        else:
            wanted = cost([treatment], settings)
            notes.append(
                f"{treatment.label} was left out: it would take {wanted:.0f} s more than the budget has."
            )
    kept.sort(key=lambda t: (t.order, t.name))
    return Plan([with_settings(t, settings) for t in kept], settings, notes)


def _time_fits(
    task: Task, treatments: list[Treatment], fold: Fold, seed: int, left: Callable[[], float]
) -> tuple[dict[str, float], list[str]]:
    seconds: dict[str, float] = {}
    notes: list[str] = []
    enough = left() * (1 - TIMING_SHARE)
    few = np.concatenate([fold.train[task.y[fold.train] == c][:10] for c in range(task.n_classes)])
    for treatment in sorted(treatments, key=lambda t: (not t.baseline, t.order)):
        if seconds and left() < enough:
            notes.append(f"{treatment.label} was left out: the budget leaves no time to try it.")
            continue
        candidate = min(1, len(treatment.candidates) - 1)
        with contextlib.suppress(Exception):  # a few rows first: importing a library is not part of a fit
            fit_candidate(treatment, task, candidate, few, seed)
        started = time.perf_counter()
        try:
            fit_candidate(treatment, task, candidate, fold.train, seed)
        except Exception as error:  # one treatment that fails must not lose the others
            notes.append(f"{treatment.label} was left out: it failed ({type(error).__name__}: {error}).")
            continue
        seconds[treatment.name] = time.perf_counter() - started
    if not seconds:
        raise ValueError("no treatment could be fitted: " + " ".join(notes))
    return seconds, notes
