"""A bag: one model a fold, and predictions of every row by models that did not see it. The bag is the model."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax

from equipoise._core.checks import FloatArray, IntArray
from equipoise._core.priors import correct_prior
from equipoise._core.random import derive_seed
from equipoise.advisor.splits import Fold
from equipoise.advisor.treatments._contract import Context, Treatment

FLOOR = 1e-6  # no model is surer than this of a class


@dataclass(frozen=True)
class Rows:
    """Encoded rows: one matrix for trees, one for everything else, and the codes."""

    views: Mapping[str, FloatArray]
    y: IntArray
    n_classes: int

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class FoldModel:
    """A fitted estimator, and the priors that its answers are turned from and to."""

    estimator: Any
    view: str
    trained_prior: FloatArray
    data_prior: FloatArray

    def log_proba(self, X: FloatArray) -> FloatArray:
        """Log probabilities of all classes at the data's prior."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            raw = self.estimator.predict_proba(X)
        proba = np.zeros((len(raw), len(self.data_prior)))
        proba[:, np.asarray(self.estimator.classes_, dtype=np.int64)] = raw
        proba = correct_prior(proba, self.trained_prior, self.data_prior)
        return np.log(np.clip(proba, FLOOR, 1.0))


@dataclass
class Bag:
    """The models of one treatment at one setting over all folds of one or more repeats.

    Attributes
    ----------
    name : str
        The treatment's name, with a number where it stands more than once.
    models : list of FoldModel
    held_out : array of shape (rows, classes)
        Log probabilities by models that did not see the row; nan where no model predicted it.
    seconds : float
        What fitting took.
    """

    name: str
    treatment: Treatment
    settings: dict[str, Any]
    models: list[FoldModel]
    held_out: FloatArray
    seconds: float
    repeats: int = 1

    def log_proba(self, views: Mapping[str, FloatArray]) -> FloatArray:
        """The mean of the models' log probabilities, normalized."""
        X = views[self.treatment.view]
        return log_softmax(np.mean([model.log_proba(X) for model in self.models], axis=0), axis=1)

    def joined(self, other: Bag) -> Bag:
        """The bag with the models of another repeat of the same treatment and settings."""
        total = self.repeats + other.repeats
        held_out = (self.held_out * self.repeats + other.held_out * other.repeats) / total
        return Bag(
            self.name, self.treatment, self.settings, self.models + other.models,
            log_softmax(held_out, axis=1), self.seconds + other.seconds, total,
        )  # fmt: skip


def thin(y: IntArray, rows: IntArray, most: int, seed: int) -> IntArray:
    """At most ``most`` of the rows: all of the rare classes, and a random part of the frequent ones."""
    if len(rows) <= most:
        return rows
    rng = np.random.default_rng(seed)
    counts = np.bincount(y[rows])
    left, keep = most, np.zeros(len(counts), dtype=np.int64)
    for rank, code in enumerate(np.argsort(counts)):
        share = left // (len(counts) - rank)
        keep[code] = min(counts[code], share)
        left -= keep[code]
    kept = [rng.choice(rows[y[rows] == c], keep[c], replace=False) for c in range(len(counts)) if keep[c]]
    return np.sort(np.concatenate(kept))


def fit_fold(
    treatment: Treatment,
    context: Context,
    settings: Mapping[str, Any],
    rows: Rows,
    fold: Fold,
    deadline: float,
) -> tuple[FoldModel, FloatArray, float]:
    """Fit one model on a fold's training rows; returns it, its held-out log probabilities and the seconds."""
    started = time.monotonic()
    train = thin(rows.y, fold.train, treatment.most_rows, context.seed)
    X, y = rows.views[treatment.view], rows.y
    estimator = treatment.build(context, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the settings are judged by their scores
        if hasattr(estimator, "cut"):
            estimator.fit(X[train], y[train], valid=(X[fold.test], y[fold.test]), deadline=deadline)
        else:
            estimator.fit(X[train], y[train])
    counts = np.bincount(y[train], minlength=rows.n_classes)
    data_counts = np.bincount(y[fold.train], minlength=rows.n_classes)
    model = FoldModel(
        estimator, treatment.view, treatment.trained_prior(counts), data_counts / data_counts.sum()
    )
    predicted = model.log_proba(X[fold.test]) if len(fold.test) else np.empty((0, rows.n_classes))
    return model, predicted, time.monotonic() - started


def fit_bag(
    treatment: Treatment,
    context: Context,
    settings: Mapping[str, Any],
    rows: Rows,
    folds: Sequence[Fold],
    *,
    deadline: float = np.inf,
    must_finish: bool = False,
    run: Callable[[list[Callable[[], Any]]], list[Any]] | None = None,
    keep_going: Callable[[list[float]], bool] | None = None,
) -> Bag | None:
    """Fit one model a fold.

    Parameters
    ----------
    deadline : float
        A time of :func:`time.monotonic` at which boosting stops and no further fold begins.
    must_finish : bool
        Begin every fold even after the deadline.
    run : callable, optional
        Runs a list of functions and returns their results, for example on several threads.
    keep_going : callable, optional
        Asked with the log losses of the folds so far; ``False`` ends the bag.

    Returns
    -------
    Bag or None
        ``None`` if it was ended before all folds were fitted.
    """
    done: list[tuple[FoldModel, FloatArray, float]] = []
    share = (deadline - time.monotonic()) / len(folds)

    def job(number: int, fold: Fold) -> Callable[[], Any]:
        own = Context(**{**vars(context), "seed": derive_seed(context.seed, treatment.name, number) % 2**31})
        until = min(deadline, time.monotonic() + 2 * share) if np.isfinite(deadline) else deadline
        return lambda: fit_fold(treatment, own, settings, rows, fold, until)

    jobs = [(number, fold) for number, fold in enumerate(folds)]
    if run is not None and keep_going is None:
        done = run([job(number, fold) for number, fold in jobs])
    else:
        losses: list[float] = []
        for number, fold in jobs:
            if done and not must_finish and time.monotonic() > deadline:
                return None
            done.append(job(number, fold)())
            losses.append(log_loss(done[-1][1], rows.y[fold.test]))
            if keep_going is not None and number + 1 < len(folds) and not keep_going(losses):
                return None
    models = [model for model, _, _ in done]
    held_out = np.full((len(rows), rows.n_classes), np.nan)
    cut_together(models)
    for fold, (model, predicted, _) in zip(folds, done, strict=True):
        again = hasattr(model.estimator, "cut")
        held_out[fold.test] = model.log_proba(rows.views[treatment.view][fold.test]) if again else predicted
    seconds = sum(spent for _, _, spent in done)
    return Bag(treatment.name, treatment, dict(settings), models, held_out, seconds)


def cut_together(models: Sequence[FoldModel]) -> None:
    """Cut boosted models at the round where the mean of their validation curves is least."""
    curves = [getattr(model.estimator, "curve_", []) for model in models]
    if not all(curves):
        return
    longest = max(map(len, curves))
    padded = [np.append(curve, np.full(longest - len(curve), curve[-1])) for curve in curves]
    best = int(np.mean(padded, axis=0).argmin()) + 1
    for model in models:
        model.estimator.cut(best)


def log_loss(log_proba: FloatArray, y: IntArray, weight: FloatArray | None = None) -> float:
    """The mean of −log p of the true class."""
    losses = -log_softmax(log_proba, axis=1)[np.arange(len(y)), y]
    return float(np.average(losses, weights=weight))
