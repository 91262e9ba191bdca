"""A bag: one model per fold, and predictions of every row by models that did not see it. The bag is the model."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.pipeline import Pipeline

from equipoise._core.checks import FloatArray, IntArray
from equipoise._core.priors import correct_prior
from equipoise._core.random import derive_seed
from equipoise.advisor.splits import Fold
from equipoise.advisor.treatments._contract import Context, Treatment
from equipoise.datasets.thinning import thin

_FLOOR = 1e-6  # no model is surer than this of a class
_TREES_AT_ONCE = 10
_FIRST_FOLDS = 2  # after so many a bag that disappoints can be ended, also where all could run at once

Run = Callable[[list[Any]], list[Any]]


_BINNING = threading.Lock()  # folds are fitted in several threads, which share the bins


@dataclass(frozen=True)
class Rows:
    """Encoded rows: one matrix for trees, one for everything else, and the codes.

    Attributes
    ----------
    totals : array of int, optional
        Where the rows are a sample: how many rows of each class there are in all.
    bins : dict
        The rows as LightGBM keeps them, by the view. They stay where they were made.
    """

    views: Mapping[str, FloatArray]
    y: IntArray
    n_classes: int
    totals: IntArray | None = None
    bins: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def binned(self, view: str, trees: Any) -> Any:
        """The rows as LightGBM keeps them, made once for all folds: labels play no part in the bins."""
        with _BINNING:
            if view not in self.bins:
                self.bins[view] = trees.dataset(self.views[view], self.y).construct()
            return self.bins[view]

    def part(self, view: str, trees: Any, index: IntArray) -> Any:
        """Some of them, with the bins of all; ``None`` for no rows."""
        if not len(index):
            return None
        whole = self.binned(view, trees)
        with _BINNING:
            return whole.subset(index, whole.params).construct()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "bins": {}}

    @property
    def stands_for(self) -> FloatArray:
        """How many rows of the data one row of each class stands for."""
        if self.totals is None:
            return np.ones(self.n_classes)
        return self.totals / np.maximum(np.bincount(self.y, minlength=self.n_classes), 1)

    @property
    def weight(self) -> FloatArray | None:
        """How many rows of the data each row stands for; ``None`` for one each."""
        return None if self.totals is None else self.stands_for[self.y]

    def log_loss(self, log_proba: FloatArray, index: Any) -> float:
        """The mean log loss of predictions of the rows named by ``index``."""
        weight = self.weight
        return log_loss(log_proba, self.y[index], None if weight is None else weight[index])

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
        return np.log(np.clip(proba, _FLOOR, 1.0))


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
        """The log of the mean of the models' probabilities.

        A mean of logs would be lower than what the models were judged at: where a class is rare, models that differ
        cancel in the log odds and its mean probability falls below its share.
        """
        X = views[self.treatment.view]
        return _log_mean(np.stack([model.log_proba(X) for model in self.models]))

    def joined(self, other: Bag) -> Bag:
        """The bag with the models of another repeat of the same treatment and settings."""
        total = self.repeats + other.repeats
        held_out = _log_mean(np.stack([self.held_out, other.held_out]), [self.repeats, other.repeats])
        return Bag(
            self.name, self.treatment, self.settings, self.models + other.models,
            held_out, self.seconds + other.seconds, total,
        )  # fmt: skip


def _log_mean(log_proba: FloatArray, weight: Sequence[int] | None = None) -> FloatArray:
    """The log of the mean over the first axis of what these are the logs of, its classes summing to one."""
    return log_softmax(np.log(np.average(np.exp(log_proba), axis=0, weights=weight)), axis=1)


@dataclass(frozen=True)
class FoldJob:
    """One fit to come, which may be sent to another machine: its deadline travels as seconds that are left.

    Attributes
    ----------
    rows : Rows, optional
        ``None`` where they travel by themselves and are handed over in the call.
    deadline : float
        A time of :func:`time.monotonic` at which the fit ends with what it has.
    """

    treatment: Treatment
    context: Context
    settings: Mapping[str, Any]
    rows: Rows | None
    fold: Fold
    deadline: float = np.inf

    def __call__(self, rows: Rows | None = None) -> tuple[FoldModel, FloatArray, float]:
        """Fit; returns the model, its held-out log probabilities and the seconds."""
        given = self.rows if rows is None else rows
        assert given is not None
        return fit_fold(self.treatment, self.context, self.settings, given, self.fold, self.deadline)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "deadline": self.deadline - time.monotonic()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, deadline=time.monotonic() + state["deadline"])


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
    estimator = treatment.build(replace(context, deadline=deadline), **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the settings are judged by their scores
        if hasattr(estimator, "fit_dataset"):
            part, held_out = (rows.part(treatment.view, estimator, index) for index in (train, fold.test))
            estimator.fit_dataset(part, rows.n_classes, deadline, held_out)
        elif hasattr(estimator, "cut"):
            valid = (X[fold.test], y[fold.test]) if len(fold.test) else None
            estimator.fit(X[train], y[train], valid=valid, deadline=deadline)
        elif _grows(estimator):
            _grow(estimator, X[train], y[train], deadline)
        else:
            estimator.fit(X[train], y[train])
    counts = np.bincount(y[train], minlength=rows.n_classes)
    data_counts = rows.stands_for * np.bincount(y[fold.train], minlength=rows.n_classes)
    model = FoldModel(
        estimator, treatment.view, treatment.trained_prior(counts), data_counts / data_counts.sum()
    )
    predicted = model.log_proba(X[fold.test]) if len(fold.test) else np.empty((0, rows.n_classes))
    return model, predicted, time.monotonic() - started


def _grows(estimator: Any) -> bool:
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    return {"warm_start", "n_estimators"} <= set(last.get_params(deep=False))


def _grow(estimator: Any, X: FloatArray, y: IntArray, deadline: float) -> None:
    """Fit a forest by batches of trees, until it is whole or the time is up; the trees are those of one fit."""
    forest = estimator
    if isinstance(estimator, Pipeline):
        forest, X = estimator[-1], estimator[:-1].fit_transform(X, y)
    whole = forest.n_estimators
    for trees in range(min(_TREES_AT_ONCE, whole), whole + _TREES_AT_ONCE, _TREES_AT_ONCE):
        forest.set_params(n_estimators=min(trees, whole), warm_start=True).fit(X, y)
        if time.monotonic() > deadline:
            break
    forest.set_params(warm_start=False)


def fit_bag(
    treatment: Treatment,
    context: Context,
    settings: Mapping[str, Any],
    rows: Rows,
    folds: Sequence[Fold],
    *,
    deadline: float = np.inf,
    must_finish: bool = False,
    run: Run | None = None,
    keep_going: Callable[[list[float]], bool] | None = None,
) -> Bag | None:
    """Fit one model per fold.

    Parameters
    ----------
    deadline : float
        A time of :func:`time.monotonic` at which fits end with what they have and no further fold begins.
    must_finish : bool
        Begin every fold even after the deadline.
    run : callable, optional
        Runs a list of jobs and returns their results, for example on several threads or machines.
    keep_going : callable, optional
        Asked with the log losses of the folds so far; ``False`` ends the bag.

    Returns
    -------
    Bag or None
        ``None`` if it was ended before all folds were fitted.
    """
    done: list[tuple[FoldModel, FloatArray, float]] = []
    at_once = 1 if run is None else len(folds) if keep_going is None else _FIRST_FOLDS

    def job(number: int) -> FoldJob:
        own = replace(context, seed=derive_seed(context.seed, treatment.name, number) % 2**31)
        now, later = time.monotonic(), max(len(folds) - len(done) - at_once, 0)
        until = now + (deadline - now) * at_once / (at_once + later)  # an equal share of what is left
        return FoldJob(treatment, own, settings, rows, folds[number], until)

    while len(done) < len(folds):
        if done and not must_finish and time.monotonic() > deadline:
            return None
        jobs = [job(number) for number in range(len(done), min(len(done) + at_once, len(folds)))]
        done += [jobs[0]()] if run is None else run(jobs)
        losses = [rows.log_loss(d[1], f.test) for d, f in zip(done, folds, strict=False)]
        if keep_going is not None and len(done) < len(folds) and not keep_going(losses):
            return None
        at_once = 1 if run is None else len(folds)
    models = [model for model, _, _ in done]
    held_out = np.full((len(rows), rows.n_classes), np.nan)
    _cut_together(models)
    for fold, (model, predicted, _) in zip(folds, done, strict=True):
        again = hasattr(model.estimator, "cut")
        held_out[fold.test] = model.log_proba(rows.views[treatment.view][fold.test]) if again else predicted
    seconds = sum(spent for _, _, spent in done)
    return Bag(treatment.name, treatment, dict(settings), models, held_out, seconds)


def _cut_together(models: Sequence[FoldModel]) -> None:
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
