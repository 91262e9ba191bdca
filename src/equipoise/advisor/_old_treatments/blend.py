"""A soft vote of three learners that all train to balanced classes: linear, boosted trees, balanced
forest.
"""

from __future__ import annotations

from typing import Any

from equipoise.advisor._old_treatments._contract import Task, Treatment, balanced_prior
from equipoise.advisor._old_treatments._parts import linear, pipeline


def _build(task: Task, seed: int) -> Any:
    from imblearn.ensemble import BalancedRandomForestClassifier
    from sklearn.ensemble import VotingClassifier

    from equipoise.advisor.treatments._binning import boosting

    forest = BalancedRandomForestClassifier(
        n_estimators=60, sampling_strategy="all", replacement=True, bootstrap=False, random_state=seed
    )
    trees = boosting("balanced", max_iter=60, max_leaf_nodes=8, early_stopping=False, random_state=seed)
    members = [("linear", linear(seed, class_weight="balanced")), ("boosting", trees), ("forest", forest)]
    return pipeline(task, seed, VotingClassifier(members, voting="soft"))


TREATMENT = Treatment(
    "blend", "Blend of linear, boosted and forest",
    "models that err differently average out each other's errors",
    _build,
    [
        {"classifier__linear__C": c, "classifier__boosting__model__min_samples_leaf": leaf}
        for c in (0.1, 1.0)
        for leaf in (5, 20)
    ],
    trained_prior=balanced_prior, order=30,
)  # fmt: skip
