"""A random forest in which each tree sees as many rows of every class, imbalanced-learn's."""

from __future__ import annotations

from typing import Any

from equipoise.advisor._old_treatments._contract import Task, Treatment, balanced_prior
from equipoise.advisor._old_treatments._parts import pipeline


def _build(task: Task, seed: int) -> Any:
    from imblearn.ensemble import BalancedRandomForestClassifier

    forest = BalancedRandomForestClassifier(
        n_estimators=100, sampling_strategy="all", replacement=True, bootstrap=False, random_state=seed
    )
    return pipeline(task, seed, forest)


TREATMENT = Treatment(
    "balanced_forest", "Balanced random forest",
    "every tree sees the rare class as often as the frequent one",
    _build,
    [
        {"classifier__min_samples_leaf": leaf, "classifier__max_features": features}
        for leaf in (1, 3)
        for features in ("sqrt", 0.3)
    ],
    trained_prior=balanced_prior, order=21,
)  # fmt: skip
