"""One treatment on one outer fold: tuned on inner folds of its training rows, judged on its test rows."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score, balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold

from equipoise._core.checks import FloatArray, IntArray
from equipoise._core.priors import correct_prior
from equipoise._core.random import derive_seed
from equipoise.advisor._old_treatments import Task, Treatment
from equipoise.advisor.compare.decisions import decide, prior_weights, tune_weights

INNER_SPLITS = 3


@dataclass(frozen=True)
class Fold:
    """A split of the rows; ``number`` counts through the repeats."""

    number: int
    train: IntArray
    test: IntArray


@dataclass(frozen=True)
class CellResult:
    """Test predictions of one treatment on one fold, at the data's prior, and the decision that was tuned."""

    proba: FloatArray
    weights: FloatArray
    candidate: int
    seconds: float


def make_folds(y: IntArray, n_splits: int, repeats: int, seed: int) -> list[Fold]:
    """Repeated stratified folds, numbered repeat by repeat."""
    folds: list[Fold] = []
    for repeat in range(repeats):
        splitter = StratifiedKFold(n_splits, shuffle=True, random_state=derive_seed(seed, "outer", repeat))
        for train, test in splitter.split(np.zeros(len(y)), y):
            folds.append(Fold(len(folds), train, test))
    return folds


def mean_average_precision(y: IntArray, proba: FloatArray) -> float:
    """Average precision of the positive class, or the one-versus-all mean over classes that occur."""
    if proba.shape[1] == 2:
        return float(average_precision_score(y == 1, proba[:, 1]))
    present = [c for c in range(proba.shape[1]) if (y == c).any()]
    return float(np.mean([average_precision_score(y == c, proba[:, c]) for c in present]))


def fit_proba(
    treatment: Treatment, task: Task, candidate: int, train: IntArray, test: IntArray, seed: int
) -> FloatArray:
    """Fit one candidate on ``train`` and predict ``test``, corrected to the training rows' own prior."""
    model = fit_candidate(treatment, task, candidate, train, seed)
    return data_proba(treatment, model, task.rows(test), np.bincount(task.y[train], minlength=task.n_classes))


def fit_candidate(treatment: Treatment, task: Task, candidate: int, rows: IntArray, seed: int) -> object:
    model = clone(treatment.build(task, seed)).set_params(**treatment.candidates[candidate])
    from threadpoolctl import threadpool_limits

    # Small fits lose more by waiting for each other's threads than they gain.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the settings are judged by their scores
        warnings.filterwarnings("ignore", message=".*unknown categories.*")
        return model.fit(task.rows(rows), task.y[rows])


def data_proba(treatment: Treatment, model: object, X: object, counts: IntArray) -> FloatArray:
    """Probabilities of all classes at the prior ``counts``, whatever prior the treatment trained to."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*unknown categories.*")
        raw = model.predict_proba(X)  # type: ignore[attr-defined]
    proba = np.zeros((len(raw), len(counts)))
    proba[:, model.classes_] = raw  # type: ignore[attr-defined]
    return correct_prior(proba, treatment.trained_prior(counts), counts / counts.sum())


def tune(treatment: Treatment, task: Task, rows: IntArray, seed: int) -> tuple[int, FloatArray, FloatArray]:
    """The best candidate, its decision weights and its out-of-fold probabilities, by inner folds within
    ``rows``.
    """
    y = task.y[rows]
    counts = np.bincount(y, minlength=task.n_classes)
    n_splits = int(np.clip(counts[counts > 0].min(), 2, INNER_SPLITS))
    splitter = StratifiedKFold(n_splits, shuffle=True, random_state=derive_seed(seed, "inner"))
    splits = list(splitter.split(np.zeros(len(y)), y))
    prior = counts / counts.sum()
    best: tuple[float, int, FloatArray, FloatArray] | None = None
    for candidate in range(len(treatment.candidates)):
        proba = np.empty((len(y), task.n_classes))
        for train, test in splits:
            proba[test] = fit_proba(treatment, task, candidate, rows[train], rows[test], seed)
        if treatment.decision == "tuned":
            weights = tune_weights(proba, y, prior, task.cost)
        else:
            weights = prior_weights(treatment.trained_prior(counts), prior)
        score = selection_score(y, proba, weights, task.cost)
        if best is None or score > best[0] + 1e-12:
            best = (score, candidate, weights, proba)
    assert best is not None
    return best[1:]


def selection_score(
    y: IntArray, proba: FloatArray, weights: FloatArray, cost: tuple[float, float] | None
) -> float:
    """What settings are chosen by: the mean of average precision and balanced accuracy (or of the cost
    saved).
    """
    called = decide(proba, weights)
    ranking = mean_average_precision(y, proba)
    if cost is None:
        return 0.5 * (ranking + float(balanced_accuracy_score(y, called)))
    spent = cost[0] * np.sum((called == 1) & (y == 0)) + cost[1] * np.sum((called == 0) & (y == 1))
    worst = min(
        cost[0] * np.sum(y == 0), cost[1] * np.sum(y == 1)
    )  # of the two constant answers, the cheaper
    return 0.5 * (ranking + 1 - float(spent / worst))


def run_cell(task: Task, treatment: Treatment, fold: Fold, seed: int) -> CellResult:
    """Tune inside the fold's training rows, fit there, predict its test rows."""
    started = time.perf_counter()
    seed = derive_seed(seed, treatment.name, fold.number)
    candidate, weights, _ = tune(treatment, task, fold.train, seed)
    proba = fit_proba(treatment, task, candidate, fold.train, fold.test, seed)
    return CellResult(proba, weights, candidate, time.perf_counter() - started)
