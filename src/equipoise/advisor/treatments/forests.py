"""Forests: extremely randomized trees, and a forest whose trees see every class equally often."""

from __future__ import annotations

from typing import Any

from equipoise.advisor.treatments._contract import Context, Range, Treatment, balanced_prior

MOST_ROWS = 50_000  # deeper forests on more rows take more memory than they are worth


def _leaf(context: Context, smallest: int) -> int:
    """Leaves grow with the table, so that a bag of forests stays small, also for workers with little memory."""
    return max(smallest, context.n_rows // 10_000)


def _filled(forest: Any) -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), forest)


def _extra_trees(context: Context, *, trees: int, min_samples_leaf: int, max_features: float) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return _filled(
        ExtraTreesClassifier(
            trees, min_samples_leaf=_leaf(context, min_samples_leaf), max_features=max_features,
            n_jobs=context.threads, random_state=context.seed,
        )
    )  # fmt: skip


def _balanced_forest(context: Context, *, trees: int, min_samples_leaf: int, max_features: float) -> Any:
    from imblearn.ensemble import BalancedRandomForestClassifier

    return _filled(
        BalancedRandomForestClassifier(
            trees, min_samples_leaf=_leaf(context, min_samples_leaf), max_features=max_features,
            sampling_strategy="all", replacement=True, bootstrap=False, n_jobs=context.threads,
            random_state=context.seed,
        )
    )  # fmt: skip


_SPACE = {"min_samples_leaf": Range(1, 12, log=True), "max_features": Range(0.1, 1.0)}

TREATMENTS = [
    Treatment(
        "extra-trees", "extremely randomized trees", _extra_trees,
        defaults={"trees": 80, "min_samples_leaf": 1, "max_features": 0.4},
        space=_SPACE, takes_learner=False, order=5, simplicity=30, view="trees", most_rows=MOST_ROWS,
    ),
    Treatment(
        "balanced-trees", "random forest on balanced samples", _balanced_forest,
        defaults={"trees": 80, "min_samples_leaf": 1, "max_features": 0.3},
        space=_SPACE, takes_learner=False, order=6, simplicity=31, view="trees", most_rows=MOST_ROWS,
        trained_prior=balanced_prior,
    ),
]  # fmt: skip
