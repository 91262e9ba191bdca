"""SMOTE before a logistic regression, imbalanced-learn's."""

from __future__ import annotations

from typing import Any

from equipoise.advisor._old_treatments._contract import Task, Treatment, balanced_prior
from equipoise.advisor._old_treatments._parts import LINEAR_SETTINGS, linear, pipeline


def _build(task: Task, seed: int) -> Any:
    from imblearn.over_sampling import SMOTE

    # Two nested splits of at worst 1/2 each leave a quarter of the rarest class to find neighbors in.
    neighbors = max(1, min(5, int(task.counts.min() * 0.5) - 1))
    return pipeline(task, seed, linear(seed), SMOTE(k_neighbors=neighbors, random_state=seed))


def _applies(task: Task) -> str:
    return "" if task.counts.min() >= 6 else "the rarest class has fewer than 6 rows to interpolate between"


TREATMENT = Treatment(
    "smote", "SMOTE, logistic regression", "new points between rare neighbors widen the rare region",
    _build, LINEAR_SETTINGS, trained_prior=balanced_prior, applies=_applies, order=10, baseline=True,
)  # fmt: skip
