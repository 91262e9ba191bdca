"""Random under-sampling before a logistic regression, imbalanced-learn's."""

from __future__ import annotations

from typing import Any

from equipoise.advisor._old_treatments._contract import Task, Treatment, balanced_prior
from equipoise.advisor._old_treatments._parts import LINEAR_SETTINGS, linear, pipeline


def _build(task: Task, seed: int) -> Any:
    from imblearn.under_sampling import RandomUnderSampler

    return pipeline(task, seed, linear(seed), RandomUnderSampler(random_state=seed))


TREATMENT = Treatment(
    "undersampling", "Under-sampling, logistic regression",
    "the frequent class has more rows than the boundary needs",
    _build, LINEAR_SETTINGS, trained_prior=balanced_prior, order=11, baseline=True,
)  # fmt: skip
