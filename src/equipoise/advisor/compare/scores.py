"""What a fold's predictions are worth."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.metrics import (
    balanced_accuracy_score,
    brier_score_loss,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
)

from equipoise._core.checks import FloatArray, IntArray
from equipoise.advisor.compare.decisions import decide
from equipoise.advisor.compare.folds import mean_average_precision

#: Metrics in the order of the tables: name, label, whether larger is better.
METRICS = [
    ("balanced_accuracy", "Balanced accuracy", True),
    ("average_precision", "Average precision", True),
    ("roc_auc", "ROC AUC", True),
    ("recall", "Recall", True),
    ("precision", "Precision", True),
    ("f1", "F1", True),
    ("g_mean", "G-mean", True),
    ("brier", "Brier score", False),
    ("cost", "Cost a row", False),
]


def score_fold(
    y: IntArray, proba: FloatArray, weights: FloatArray, cost: tuple[float, float] | None = None
) -> dict[str, float]:
    """Metrics of one fold; of the positive class in a binary task, macro averages otherwise."""
    called = decide(proba, weights)
    binary = proba.shape[1] == 2
    average = {"average": "binary" if binary else "macro", "zero_division": 0}
    recalls = recall_score(y, called, average=None, zero_division=0, labels=np.unique(y))
    scores = {
        "balanced_accuracy": float(balanced_accuracy_score(y, called)),
        "average_precision": mean_average_precision(y, proba),
        "roc_auc": float(roc_auc_score(y, proba[:, 1])) if binary else _auc_over_classes(y, proba),
        "recall": float(recall_score(y, called, **average)),
        "precision": float(precision_score(y, called, **average)),
        "f1": float(f1_score(y, called, **average)),
        "g_mean": float(np.prod(recalls) ** (1 / len(recalls))),
    }
    if binary:
        scores["brier"] = float(brier_score_loss(y, proba[:, 1]))
    else:
        scores["brier"] = float(np.mean(np.sum((proba - np.eye(proba.shape[1])[y]) ** 2, axis=1)))
    if cost is not None:
        alarms, missed = np.sum((called == 1) & (y == 0)), np.sum((called == 0) & (y == 1))
        scores["cost"] = float((cost[0] * alarms + cost[1] * missed) / len(y))
    return scores


def _auc_over_classes(y: IntArray, proba: FloatArray) -> float:
    present = [c for c in range(proba.shape[1]) if 0 < (y == c).sum() < len(y)]
    return float(np.mean([roc_auc_score(y == c, proba[:, c]) for c in present]))


def summarize(scores: pd.DataFrame, test_share: float, level: float = 0.95) -> pd.DataFrame:
    """Mean, standard error and interval of each metric and treatment over the folds.

    Folds share training rows, so their scores vary together; the variance of the mean is (1/J +
    n_test/n_train)·s² (Nadeau & Bengio 2003) rather than s²/J.
    """
    from scipy import stats

    rows = []
    names = [name for name, _, _ in METRICS if name in scores]
    for treatment, group in scores.groupby("treatment", sort=False):
        for name in names:
            values = group[name].to_numpy(dtype=float)
            folds = len(values)
            ratio = test_share / (1 - test_share)
            spread = float(values.std(ddof=1)) if folds > 1 else float("nan")
            error = spread * np.sqrt(1 / folds + ratio)
            reach = error * stats.t.ppf(0.5 + level / 2, max(folds - 1, 1))
            mean = float(values.mean())
            rows.append((treatment, name, mean, error, mean - reach, mean + reach, folds))
    columns = ["treatment", "metric", "mean", "standard_error", "low", "high", "folds"]
    return pd.DataFrame(rows, columns=columns)
