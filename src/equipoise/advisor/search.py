"""The search: strongest first, never over the budget, and something to show at any time.

Treatments are tried in the order of what they bring for their time, each as a bag over the same folds. What a
treatment will cost is predicted before it may spend the budget: on a small table from its first fold, on a large
one from a sample. When all were tried, the time that is left goes into repeats of the useful bags with other folds
and into better settings, proposed by Optuna and dropped early where the first folds disappoint.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from equipoise._core.checks import IntArray
from equipoise._core.random import derive_seed
from equipoise.advisor.bags import Bag, Rows, Run, fit_bag, fit_fold
from equipoise.advisor.budget import Budget
from equipoise.advisor.ensemble import keep_useful
from equipoise.advisor.splits import Fold
from equipoise.advisor.treatments._contract import Context, Treatment
from equipoise.datasets.thinning import thin

PROBE_ROWS = 2_000  # a table of more than twice as many is timed on a sample first
PROBE_ROUNDS, USUAL_ROUNDS = 15, 150
SAFETY = 1.25
TOO_SHORT = "the budget is too short"
_MOST_REPEATS = 4
_TUNED_KEPT = 3  # settings of one treatment that may join the ensemble beside its defaults

_MakeFolds = Callable[[int], list[Fold]]


@dataclass
class Found:
    """What a search leaves behind.

    Attributes
    ----------
    bags : list of Bag
    folds : list of Fold
        Of the first repeat, by which every bag was fitted.
    tried : list of str
        Names of treatments that were fitted.
    left_out : dict of str to str
        Why a treatment was not tried or not finished, by its name.
    """

    folds: list[Fold]
    bags: list[Bag] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    trials: int = 0

    @property
    def tried(self) -> list[str]:
        return list(dict.fromkeys(bag.treatment.name for bag in self.bags))

    def block(self, n: int) -> IntArray:
        """The number of the fold in which a row was predicted; −1 where none did."""
        block = np.full(n, -1, dtype=np.int64)
        for number, fold in enumerate(self.folds):
            block[fold.test] = number
        return block


def search(
    rows: Rows,
    treatments: Sequence[Treatment],
    context: Context,
    make_folds: _MakeFolds,
    budget: Budget,
    *,
    trials: int | None = None,
    run: Run | None = None,
    told: Callable[[str], None] = lambda note: None,
    tried: Callable[[Found], None] = lambda found: None,
) -> Found:
    """Fit bags until the budget or the number of trials is spent.

    Parameters
    ----------
    rows : Rows
    treatments : sequence of Treatment
        In the order in which they are tried. The first always gives a model, whatever the budget.
    context : Context
    make_folds : callable
        ``make_folds(repeat)``; repeat 0 gives the folds that all bags share.
    budget : Budget
    trials : int, optional
        End after so many bags beyond the first of every treatment. With a budget that is never reached, the same
        seed then gives the same bits.
    run : callable, optional
        See :func:`~equipoise.advisor.bags.fit_bag`.
    told : callable
        Given a sentence whenever something begins.
    tried : callable
        Given what was found whenever a treatment was tried.

    Returns
    -------
    Found

    Raises
    ------
    ValueError
        If no treatment gave a model; the message says why for each.
    """
    found = Found(make_folds(0))
    for number, treatment in enumerate(treatments, 1):
        reason = treatment.applies(context) or (
            "" if treatment.multiclass or rows.n_classes == 2 else "it takes two classes"
        )
        if reason:
            found.left_out[treatment.name] = reason
            continue
        to_come = len(treatments) - number
        told(
            treatment.summary
            + (f"; {to_come} more treatments to try" if to_come else "; the last one to try")
        )
        _try(found, treatment, rows, context, budget, run)
        tried(found)
    if not found.bags:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in found.left_out.items())
        raise ValueError(f"none of the treatments can be tried here ({reasons})")
    _improve(found, rows, context, make_folds, budget, trials, run, told)
    return found


def _try(found: Found, treatment: Treatment, rows: Rows, context: Context, budget: Budget, run: Any) -> None:
    """One bag at the defaults, or the reason why not."""
    first = not found.bags
    if not first and not budget.fits(treatment.least_seconds + 1e-9):
        found.left_out[treatment.name] = TOO_SHORT
        return
    try:
        expected = None if first else _probed_seconds(treatment, rows, context, found.folds)
        if expected is not None and not budget.fits(expected):
            found.left_out[treatment.name] = (
                f"{TOO_SHORT}: it would take about {expected:.0f} s, and {budget.left:.0f} s were left"
            )
            return
        started = time.monotonic()

        def in_time(losses: list[float]) -> bool:
            per_fold = (time.monotonic() - started) / len(losses)
            return budget.fits(0.9 * per_fold * (len(found.folds) - len(losses)))

        bag = fit_bag(
            treatment, context, treatment.defaults, rows, found.folds,
            deadline=budget.deadline(0.5 if first else 1.0), must_finish=first,
            run=run, keep_going=None if first or (run and expected is not None) else in_time,
        )  # fmt: skip
    except Exception as error:  # one treatment that fails must not lose the others
        if first:
            raise
        found.left_out[treatment.name] = (
            f"it failed: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        )
        return
    if bag is None:
        found.left_out[treatment.name] = f"{TOO_SHORT}: it was ended"
    else:
        found.bags.append(bag)


def _probed_seconds(
    treatment: Treatment, rows: Rows, context: Context, folds: Sequence[Fold]
) -> float | None:
    """What a bag will take, from short fits on a sample; ``None`` where its first fold is as good a sample."""
    train = min(len(folds[0].train), treatment.most_rows)
    settings = dict(treatment.defaults)
    if train <= 2 * PROBE_ROWS and "epochs" not in settings:
        return None
    factor = 1.0
    for name, (short, usual) in {
        "rounds": (PROBE_ROUNDS, USUAL_ROUNDS),
        "epochs": (1, settings.get("epochs", 1)),
    }.items():
        if name in settings:
            settings[name] = short
            factor = usual / short
    sizes, spent = [0], [0.0]
    for most in (200, PROBE_ROWS, *([10 * PROBE_ROWS] if train > 20 * PROBE_ROWS else [])):
        sample = thin(rows.y, folds[0].train, most, context.seed)
        fold = Fold(sample, folds[0].test[:200])
        small = replace(context, n_rows=len(sample))
        _, _, seconds = fit_fold(treatment, small, settings, rows, fold, np.inf)
        if most > 200:  # the first fit imports what it needs
            sizes.append(len(sample))
            spent.append(seconds)
    per_row = max(spent[-1] - spent[-2], 0.0) / max(
        sizes[-1] - sizes[-2], 1
    )  # a large fit has other fixed costs
    return SAFETY * len(folds) * factor * (spent[-1] + per_row * max(train - sizes[-1], 0))


def _improve(
    found: Found, rows: Rows, context: Context, make_folds: _MakeFolds, budget: Budget, trials: int | None,
    run: Any, told: Callable[[str], None],
) -> None:  # fmt: skip
    """Repeats of the useful bags and better settings, by turns, while there is time."""
    judged = found.block(len(rows)) >= 0
    tuner = _Tuner(found, rows, context, budget, run) if importlib.util.find_spec("optuna") else None
    turn = 0
    while trials is None or found.trials < trials:
        affordable = [b for b in found.bags if budget.fits(1.1 * b.seconds / b.repeats)]
        if not affordable or budget.left <= 0:
            return
        names = [b.name for b in found.bags]
        members = np.stack([b.held_out[judged] for b in found.bags])
        weight = None if rows.weight is None else rows.weight[judged]
        useful = [found.bags[i] for i in keep_useful(names, members, rows.y[judged], weight)]
        repeatable = [b for b in useful if b in affordable and b.repeats < _MOST_REPEATS]
        found.trials += 1
        turn += 1
        if repeatable and (turn % 2 or tuner is None):
            bag = min(repeatable, key=lambda b: (b.repeats, b.seconds))
            told(f"{bag.treatment.summary}, other folds")
            _repeat(found, bag, rows, context, make_folds, budget, run)
        elif tuner is not None:
            tuner.step(affordable, told)
        else:
            return


def _repeat(
    found: Found, bag: Bag, rows: Rows, context: Context, make_folds: _MakeFolds, budget: Budget, run: Any
) -> None:
    folds = make_folds(bag.repeats)
    own = replace(context, seed=derive_seed(context.seed, "repeat", bag.repeats) % 2**31)
    again = fit_bag(bag.treatment, own, bag.settings, rows, folds, deadline=budget.deadline(), run=run)
    if again is not None:
        found.bags[found.bags.index(bag)] = bag.joined(again)


class _Tuner:
    """Settings proposed by Optuna, one study a treatment; a trial that begins badly is dropped."""

    def __init__(self, found: Found, rows: Rows, context: Context, budget: Budget, run: Run | None) -> None:
        self.found, self.rows, self.context, self.budget, self.run = found, rows, context, budget, run
        self.studies: dict[str, Any] = {}
        self.first_losses: dict[str, list[float]] = {}

    def step(self, affordable: Sequence[Bag], told: Callable[[str], None]) -> None:
        """One trial of the treatment that promises most: the best so far, or the one tried least."""
        import optuna

        candidates = {b.treatment.name: b for b in affordable if b.treatment.space}
        if not candidates:
            return
        judged = self.found.block(len(self.rows)) >= 0

        def promise(bag: Bag) -> float:
            done = len(self.first_losses.get(bag.treatment.name, []))
            return self.rows.log_loss(bag.held_out[judged], judged) * (1 + 0.03 * done)

        bag = min(candidates.values(), key=promise)
        treatment = bag.treatment
        study = self._study(treatment, bag)
        trial = study.ask({name: span.distribution() for name, span in treatment.space.items()})
        told(f"{treatment.summary}, other settings")
        settings = {**treatment.defaults, **trial.params}
        seen = self.first_losses.setdefault(treatment.name, [])

        def keep_going(losses: list[float]) -> bool:
            mean = float(np.mean(losses))
            if len(losses) == 2:
                seen.append(mean)
            return len(losses) != 2 or len(seen) < 4 or mean <= float(np.median(seen))

        tuned = fit_bag(
            treatment, self.context, settings, self.rows, self.found.folds, deadline=self.budget.deadline(),
            run=self.run, keep_going=keep_going,
        )  # fmt: skip
        if tuned is None:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            return
        study.tell(trial, self.rows.log_loss(tuned.held_out[judged], judged))
        self._keep(tuned, judged)

    def _study(self, treatment: Treatment, bag: Bag) -> Any:
        import optuna

        if treatment.name not in self.studies:
            optuna.logging.set_verbosity(optuna.logging.WARNING)
            sampler = optuna.samplers.TPESampler(
                seed=derive_seed(self.context.seed, "tune", treatment.name) % 2**31, n_startup_trials=6
            )
            study = optuna.create_study(sampler=sampler)
            self.studies[treatment.name] = study
        return self.studies[treatment.name]

    def _keep(self, tuned: Bag, judged: Any) -> None:
        """The best few settings of a treatment stay beside its defaults."""
        family = [b for b in self.found.bags if b.treatment.name == tuned.treatment.name and "#" in b.name]
        tuned.name = f"{tuned.treatment.name}#{len(self.first_losses[tuned.treatment.name])}"
        self.found.bags.append(tuned)
        if len(family) >= _TUNED_KEPT:
            worst = max([*family, tuned], key=lambda b: self.rows.log_loss(b.held_out[judged], judged))
            self.found.bags.remove(worst)
