"""Gradient-boosted trees: LightGBM at two settings, and CatBoost where it is installed."""

from __future__ import annotations

import importlib.util
from typing import Any

from equipoise.advisor.treatments._boosted import CatBoostTrees, LightGBMTrees
from equipoise.advisor.treatments._contract import Context, Range, Treatment

LARGE = 200_000  # rows from which fewer and larger steps are taken


def _lightgbm(context: Context, **settings: Any) -> Any:
    if context.n_rows >= LARGE:
        rate, rounds = max(settings["learning_rate"], 0.1), min(settings["rounds"], 300)
        settings = {**settings, "learning_rate": rate, "rounds": rounds}
    return LightGBMTrees(
        categories=context.categories, threads=context.threads, random_state=context.seed, **settings
    )


def _catboost(context: Context, **settings: Any) -> Any:
    return CatBoostTrees(threads=context.threads, random_state=context.seed, **settings)


def _catboost_applies(context: Context) -> str:
    if importlib.util.find_spec("catboost") is None:
        return "CatBoost is not installed (pip install 'equipoise[catboost]')"
    return ""


_SPACE = {
    "learning_rate": Range(0.02, 0.1, log=True),
    "num_leaves": Range(4, 64, log=True),
    "min_data_in_leaf": Range(2, 60, log=True),
    "feature_fraction": Range(0.3, 1.0),
    "bagging_fraction": Range(0.5, 1.0),
    "lambda_l2": Range(0.01, 30.0, log=True),
}

TREATMENTS = [
    Treatment(
        "lightgbm", "gradient boosting (LightGBM)", _lightgbm,
        defaults={
            "rounds": 400, "learning_rate": 0.05, "num_leaves": 31, "min_data_in_leaf": 10,
            "feature_fraction": 0.8, "bagging_fraction": 0.8, "lambda_l2": 1.0, "extra_trees": False,
        },
        space=_SPACE, takes_learner=False, order=0, simplicity=20, view="trees",
    ),
    Treatment(
        "lightgbm-random", "gradient boosting with random splits (LightGBM)", _lightgbm,
        defaults={
            "rounds": 600, "learning_rate": 0.05, "num_leaves": 15, "min_data_in_leaf": 5,
            "feature_fraction": 0.5, "bagging_fraction": 0.8, "lambda_l2": 5.0, "extra_trees": True,
        },
        space=_SPACE, takes_learner=False, order=1, simplicity=21, view="trees",
    ),
    Treatment(
        "catboost", "gradient boosting (CatBoost)", _catboost,
        defaults={"rounds": 400, "learning_rate": 0.06, "depth": 6, "l2_leaf_reg": 3.0},
        space={
            "learning_rate": Range(0.03, 0.15, log=True), "depth": Range(3, 8),
            "l2_leaf_reg": Range(0.5, 30.0, log=True),
        },
        takes_learner=False, order=4, simplicity=22, view="trees", most_rows=500_000, applies=_catboost_applies,
    ),
]  # fmt: skip
