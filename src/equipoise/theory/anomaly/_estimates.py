"""What of the model can be read off real data: a linear classifier's held-out scores, and the model's fit."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from equipoise._core.checks import FloatArray, check_array, check_same_length
from equipoise._core.solution import ConvergenceWarning
from equipoise.theory.anomaly.metrics import area_under_curve
from equipoise.theory.anomaly.saddle import balanced_weights, solve_saddle

BoolArray = npt.NDArray[np.bool_]
_FOLDS = 5
_REPEATS, _SCORED = 5, 200  # folds are drawn again, so often at most, until so many positives were scored
_LOADS = np.geomspace(0.05, 1500.0, 16)
_TEMPERATURES = np.array([0.0, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0, 1.6, 3.0])


def binary_labels(X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, BoolArray]:
    """X as finite rows, and which of them are of the rarer of exactly two classes (of two equals the second)."""
    rows = check_array("X", X)
    if rows.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {rows.ndim}")
    labels = np.asarray(y).ravel()
    check_same_length(X=rows, y=labels)
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) != 2:
        raise ValueError(f"y must have exactly two classes, got {len(classes)}")
    if counts.min() < _FOLDS:
        raise ValueError(f"y must have at least {_FOLDS} samples of each class, got {counts.min()}")
    return rows, labels == classes[int(counts[1] <= counts[0])]


def standardize(X: FloatArray) -> FloatArray:
    """Columns of mean 0 and variance 1; constant columns are dropped."""
    spread = X.std(axis=0)
    keep = spread > 1e-12 * np.maximum(np.abs(X).max(axis=0), 1e-300)
    return (X[:, keep] - X[:, keep].mean(axis=0)) / spread[keep]


def _fit_logistic(X: FloatArray, positive: BoolArray, ridge: float, balanced: bool) -> FloatArray:
    """Weights of a ridge logistic regression; the last entry is the bias."""
    labels = np.where(positive, 1.0, -1.0)
    share = float(positive.mean())
    weight = np.where(positive, 0.5 / share, 0.5 / (1 - share)) if balanced else np.ones(len(X))
    design = np.column_stack([X, np.ones(len(X))])

    def loss(w: FloatArray) -> tuple[float, FloatArray]:
        margin = labels * (design @ w)
        penalty = ridge * np.append(w[:-1], 0.0)
        gradient = penalty - (weight * labels * expit(-margin)) @ design
        return float(0.5 * penalty @ w - weight @ log_expit(margin)), gradient

    found = minimize(loss, np.zeros(design.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    if found.status == 1:
        warnings.warn("a logistic regression did not converge in 500 steps", ConvergenceWarning, stacklevel=2)
    return np.asarray(found.x)


def held_out_scores(
    X: FloatArray,
    positive: BoolArray,
    generator: np.random.Generator,
    *,
    ridge: float = 1.0,
    balanced: bool = True,
) -> FloatArray:
    """Each row's signed distance from the boundary of a linear classifier that has not seen its fold.

    With few positives the folds decide much, so that several divisions are drawn: (repeats, rows).
    """
    Z = standardize(X)
    repeats = int(np.clip(_SCORED // max(int(positive.sum()), 1), 1, _REPEATS))
    return np.array([_one_division(Z, positive, generator, ridge, balanced) for _ in range(repeats)])


def _one_division(
    Z: FloatArray, positive: BoolArray, generator: np.random.Generator, ridge: float, balanced: bool
) -> FloatArray:
    fold = np.empty(len(Z), dtype=np.int64)
    for side in (positive, ~positive):
        rows = generator.permutation(np.flatnonzero(side))
        fold[rows] = np.arange(len(rows)) % _FOLDS
    scores = np.empty(len(Z))
    for k in range(_FOLDS):
        test = fold == k
        w = _fit_logistic(Z[~test], positive[~test], ridge, balanced)
        scores[test] = (Z[test] @ w[:-1] + w[-1]) / max(float(np.linalg.norm(w[:-1])), 1e-300)
    return scores


def rank_area(positive: FloatArray, negative: FloatArray) -> float:
    """The ROC area: P(positive score > negative score), ties counted half."""
    order = np.sort(negative)
    below = np.searchsorted(order, positive, side="left") + np.searchsorted(order, positive, side="right")
    return float(below.mean() / (2 * len(negative)))


def _overlap_from_area(area: npt.ArrayLike, teacher_bias: float) -> FloatArray:
    """The overlap R at which the model has this ROC area; 0 below chance."""
    grid = np.concatenate([np.linspace(0.0, 0.98, 60), 1.0 - np.geomspace(0.015, 1e-4, 20)])
    return np.asarray(np.interp(np.asarray(area, dtype=float), area_under_curve(grid, teacher_bias), grid))


class Evidence(NamedTuple):
    """What a linear classifier does on held-out rows: draws, the first of which is the estimate itself."""

    area: FloatArray  # ROC area with balanced class weights
    weights_gain: FloatArray  # balanced accuracy with balanced weights, minus that without


def measure(rows: FloatArray, positive: BoolArray, draws: int, generator: np.random.Generator) -> Evidence:
    """Two weakly penalized logistic regressions, with and without balanced weights; rows drawn again by class."""
    ridge = 0.01  # C = 100
    seed = int(generator.integers(2**63))  # the same folds for both, so that they cancel in the gain
    weighted, plain = (
        held_out_scores(rows, positive, np.random.default_rng(seed), ridge=ridge, balanced=balanced)
        for balanced in (True, False)
    )
    sides = [np.flatnonzero(positive), np.flatnonzero(~positive)]
    found = []
    for draw in range(draws + 1):
        plus, minus = sides if draw == 0 else [generator.choice(side, len(side)) for side in sides]
        gain = 0.5 * (
            (weighted[:, plus] > 0).mean() - (plain[:, plus] > 0).mean()
            + (weighted[:, minus] < 0).mean() - (plain[:, minus] < 0).mean()
        )  # fmt: skip
        found.append((np.mean([rank_area(scores[plus], scores[minus]) for scores in weighted]), gain))
    area, gains = np.array(found).T
    return Evidence(area, gains)


def fit_model(
    evidence: Evidence, teacher_bias: float, train_fraction: float
) -> tuple[FloatArray, FloatArray]:
    """The rows per dimension and the noise at which the model does what the classifier does.

    At every temperature one load has the measured ROC area; of these pairs the one is taken at which balanced
    weights gain what they gained. A gain below the model's lowest means T = 0, one above its highest the
    highest T.
    """
    plus, minus = balanced_weights(train_fraction)
    grid = (_LOADS[:, None], _TEMPERATURES, teacher_bias, train_fraction)
    weighted = solve_saddle(*grid, positive_weight=plus, negative_weight=minus)
    plain = solve_saddle(*grid)
    overlap = np.maximum.accumulate(weighted.overlap, axis=0)
    gain = weighted.metrics().balanced_accuracy - plain.metrics().balanced_accuracy
    wanted = _overlap_from_area(evidence.area, teacher_bias)
    log_load = np.log(_LOADS)
    columns = range(_TEMPERATURES.size)
    loads = np.array([np.interp(wanted, overlap[:, k], log_load) for k in columns])  # (temperatures, draws)
    gains = np.array([np.interp(loads[k], log_load, gain[:, k]) for k in columns])
    gains = np.maximum.accumulate(gains, axis=0)
    noise = np.array(
        [np.interp(g, row, _TEMPERATURES) for g, row in zip(evidence.weights_gain, gains.T, strict=True)]
    )
    load = [np.interp(t, _TEMPERATURES, row) for t, row in zip(noise, loads.T, strict=True)]
    return np.exp(np.array(load)), noise
