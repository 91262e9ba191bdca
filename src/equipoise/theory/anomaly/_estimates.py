"""What of the model can be read off real data: effective dimension, overlap and noise."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from equipoise._core.checks import FloatArray, check_array
from equipoise.theory.anomaly.metrics import area_under_curve
from equipoise.theory.anomaly.saddle import solve_saddle

HOTTEST = 5.0
_TEMPERATURES = np.concatenate([[0.0], np.geomspace(0.05, HOTTEST, 17)])


def standardize(X: FloatArray) -> FloatArray:
    """Columns of mean 0 and variance 1; constant columns are dropped."""
    spread = X.std(axis=0)
    keep = spread > 1e-12 * np.maximum(np.abs(X).max(axis=0), 1e-300)
    return (X[:, keep] - X[:, keep].mean(axis=0)) / spread[keep]


def effective_dimension(X: npt.ArrayLike) -> float:
    """(tr Σ)²/tr Σ², the participation ratio of the standardized features' covariance.

    Sampling noise inflates tr S²; its Gaussian mean, tr Σ²·(1 + 1/n) + (tr Σ)²/n, is solved for tr Σ².

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 20))
    >>> round(effective_dimension(X)), round(effective_dimension(np.hstack([X, X])))
    (20, 20)
    """
    table = check_array("X", X)
    if table.ndim != 2 or len(table) < 2:
        raise ValueError(f"X must have at least two rows and one column, got shape {table.shape}")
    Z = standardize(table)
    n, d = Z.shape
    if d == 0:
        return 1.0
    product = Z.T @ Z if d <= n else Z @ Z.T
    trace, square = float(d), float((product**2).sum()) / n**2
    corrected = (square - trace**2 / n) / (1.0 + 1.0 / n)
    return float(np.clip(trace**2 / max(corrected, trace**2 / max(d, 1)), 1.0, d))


def _fit_direction(X: FloatArray, labels: FloatArray, ridge: float = 1.0) -> FloatArray:
    """Weights of a ridge logistic regression with equal weight on both classes; the last entry is the bias."""
    weight = np.where(labels > 0, 0.5 / (labels > 0).sum(), 0.5 / (labels < 0).sum()) * len(labels)
    design = np.column_stack([X, np.ones(len(X))])

    def loss(w: FloatArray) -> tuple[float, FloatArray]:
        margin = labels * (design @ w)
        gradient = -(weight * labels * expit(-margin)) @ design
        penalty = np.append(w[:-1], 0.0)
        return float(
            -(weight @ log_expit(margin)) + 0.5 * ridge * penalty @ penalty
        ), gradient + ridge * penalty

    return np.asarray(minimize(loss, np.zeros(design.shape[1]), jac=True, method="L-BFGS-B").x)


def held_out_scores(
    X: FloatArray,
    positive: np.ndarray[tuple[int], np.dtype[np.bool_]],
    generator: np.random.Generator,
    folds: int = 5,
) -> FloatArray:
    """Each row's linear score from a classifier that has not seen its fold."""
    Z, labels = standardize(X), np.where(positive, 1.0, -1.0)
    fold = np.empty(len(Z), dtype=np.int64)
    for side in (positive, ~positive):
        rows = generator.permutation(np.flatnonzero(side))
        fold[rows] = np.arange(len(rows)) % folds
    scores = np.empty(len(Z))
    for k in range(folds):
        test = fold == k
        w = _fit_direction(Z[~test], labels[~test])
        scores[test] = (Z[test] @ w[:-1]) / max(float(np.linalg.norm(w[:-1])), 1e-300)
    return scores


def rank_area(positive: FloatArray, negative: FloatArray) -> float:
    """The ROC area: P(positive score > negative score), ties counted half."""
    order = np.sort(negative)
    below = np.searchsorted(order, positive, side="left") + np.searchsorted(order, positive, side="right")
    return float(below.mean() / (2 * len(negative)))


def overlap_from_area(area: float, teacher_bias: float) -> float:
    """The overlap R at which the model has this ROC area; 0 below chance."""
    grid = np.concatenate([np.linspace(0.0, 0.98, 60), 1.0 - np.geomspace(0.015, 1e-4, 20)])
    return float(np.interp(area, area_under_curve(grid, teacher_bias), grid))


def temperature_from_overlap(
    overlap: FloatArray, samples_per_dim: FloatArray, teacher_bias: FloatArray
) -> FloatArray:
    """The noise in [0, 5] at which the model, trained at ρ = ½, has this overlap (0 if even T = 0 has less)."""
    theory = solve_saddle(samples_per_dim[:, None], _TEMPERATURES, teacher_bias[:, None], 0.5).overlap
    falling = np.minimum.accumulate(theory, axis=1)
    found = [
        np.interp(-goal, -row, _TEMPERATURES) if goal < row[0] else 0.0
        for goal, row in zip(overlap, falling, strict=True)
    ]
    return np.array(found)
