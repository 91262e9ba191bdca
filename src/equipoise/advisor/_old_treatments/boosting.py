"""Histogram gradient boosting, scikit-learn's, with a tuned threshold."""

from __future__ import annotations

from typing import Any

from equipoise.advisor._old_treatments._contract import Task, Treatment
from equipoise.advisor._old_treatments._parts import pipeline


def _build(task: Task, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return pipeline(task, seed, HistGradientBoostingClassifier(early_stopping=False, random_state=seed))


TREATMENT = Treatment(
    "boosting", "Gradient boosting, tuned threshold", "trees find interactions that a linear model cannot",
    _build,
    [
        {"classifier__max_iter": 60, "classifier__max_leaf_nodes": 8, "classifier__min_samples_leaf": 5},
        {"classifier__max_iter": 60, "classifier__max_leaf_nodes": 8, "classifier__min_samples_leaf": 20},
        {"classifier__max_iter": 60, "classifier__max_leaf_nodes": 24, "classifier__min_samples_leaf": 5},
        {"classifier__max_iter": 120, "classifier__max_leaf_nodes": 8, "classifier__min_samples_leaf": 10},
    ],
    order=20, baseline=True,
)  # fmt: skip
