"""The operating point: which threshold, and what it does, from predictions of rows that were not trained on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise._core.checks import FloatArray, IntArray, check_distribution, check_fraction
from equipoise._core.priors import correct_prior
from equipoise.advisor.compare.decisions import (
    decide,
    threshold_for_recall,
    threshold_of,
    threshold_weights,
    tune_threshold,
    tune_weights,
)
from equipoise.metrics import bootstrap_interval
from equipoise.report import Interval


@dataclass(frozen=True)
class OperatingPoint:
    """A decision, and its figures on held-out rows with bootstrap intervals."""

    weights: FloatArray
    prior: FloatArray
    figures: dict[str, Interval]
    confusion: IntArray
    wish: str

    @property
    def threshold(self) -> float | None:
        return threshold_of(self.weights) if len(self.weights) == 2 else None


def choose(
    held_out: FloatArray,
    truth: IntArray,
    data_prior: FloatArray,
    *,
    cost: tuple[float, float] | None = None,
    recall: float | None = None,
    prior: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, str]:
    """Decision weights and prior for a wish, from held-out probabilities at ``data_prior``.

    The wish is a cost of false positives and false negatives, a recall to reach, or (with neither)
    balanced accuracy;
    ``prior`` says how frequent the classes will be where the model is used, if not as in the data. Returns the
    weights, the prior and the wish in words.
    """
    binary = held_out.shape[1] == 2
    if not binary and (cost is not None or recall is not None):
        raise ValueError(
            "a cost or a recall needs a question with two answers: name one class with --positive"
        )
    wanted = data_prior if prior is None else check_distribution("prior", prior)
    if len(wanted) != len(data_prior):
        raise ValueError(f"prior must have {len(data_prior)} shares, got {len(wanted)}")
    proba = correct_prior(held_out, data_prior, wanted)
    row_weight = (wanted / data_prior)[truth]
    if recall is not None:
        check_fraction("recall", recall if recall < 1 else 0.5)
        weights = threshold_weights(threshold_for_recall(proba[:, 1], truth, recall))
        return weights, wanted, f"find at least {recall:.0%} of the positives"
    if binary:
        weights = threshold_weights(tune_threshold(proba[:, 1], truth, cost, row_weight))
    else:
        weights = tune_weights(proba, truth, wanted)
    if cost is not None:
        return weights, wanted, f"least cost, a false alarm {cost[0]:g} and a miss {cost[1]:g}"
    return weights, wanted, "equal regard for every class (balanced accuracy)"


def operating_point(
    held_out: FloatArray,
    truth: IntArray,
    data_prior: FloatArray,
    weights: FloatArray,
    prior: FloatArray,
    wish: str,
    seed: int = 0,
) -> OperatingPoint:
    """What the decision does to the held-out rows."""
    proba = correct_prior(held_out, data_prior, prior)
    called = decide(proba, weights)
    n = len(prior)
    moved = not np.allclose(prior, data_prior)
    figures: dict[str, Interval] = {}
    for name, (metric, options) in _figures(n, float(prior[-1]) if moved else None).items():
        found: Any = bootstrap_interval(metric, truth, called, n_resamples=500, random_state=seed, **options)
        figures[name] = Interval(float(found.estimate), float(found.low), float(found.high))
    confusion = np.bincount(truth * n + called, minlength=n * n).reshape(n, n)
    return OperatingPoint(weights, prior, figures, confusion, wish)


def _figures(n_classes: int, moved_prior: float | None) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Metrics by name: all of the positive class in a binary question; precision at a moved prior where asked."""
    figures: dict[str, tuple[Any, dict[str, Any]]] = {"balanced_accuracy": ("balanced_accuracy", {})}
    if n_classes > 2:
        return {**figures, "macro_f1": ("macro_f1", {})}
    positive = {"pos_label": 1}
    figures["recall"] = ("recall", positive)
    figures["specificity"] = ("specificity", positive)
    if moved_prior is not None:
        return {**figures, "precision": (precision_at(moved_prior), {})}
    return {**figures, "precision": ("precision", positive), "f1": ("f_beta", {"beta": 1.0, **positive})}


def precision_at(prior: float) -> Callable[[IntArray, IntArray], float]:
    """Precision where the positives' share is ``prior``: it follows from recall and false alarms."""

    def precision(truth: IntArray, called: IntArray) -> float:
        hits = prior * np.mean(called[truth == 1] == 1)
        alarms = (1 - prior) * np.mean(called[truth == 0] == 1)
        return float(hits / (hits + alarms)) if hits + alarms > 0 else 1.0

    return precision
