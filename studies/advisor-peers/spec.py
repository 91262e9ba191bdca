"""The advisor beside its peers, with the same time, on tables that nobody tuned on."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from equipoise.studies.spec import Spec

COST = {"fp": 1.0, "fn": 20.0}
#: Tables that were looked at while the advisor was written; the page counts them apart.
LOOKED_AT = (
    "ecoli", "abalone", "sick_euthyroid", "solar_flare_m0", "yeast_ml8", "car_eval_34", "mammography",
    "optical_digits", "satimage",
)  # fmt: skip
UNSEEN = (
    "arrhythmia", "car_eval_4", "coil_2000", "isolet", "pen_digits", "webpage", "keel-abalone9-18", "keel-glass1",
    "keel-haberman", "keel-kr-vs-k-three_vs_eleven", "keel-page-blocks0", "keel-pima", "keel-segment0",
    "keel-vehicle1", "keel-vehicle3", "keel-vowel0", "keel-winequality-red-4", "keel-wisconsin", "keel-yeast1",
    "keel-yeast3",
)  # fmt: skip
METHODS = ("advisor", "lightgbm", "lightgbm-unbalance", "histogram-boosting", "balanced-forest", "flaml")


def run_cell(dataset: str, method: str, split: int, budget: float) -> dict[str, Any]:
    """One method on a stratified split, three tenths of the rows for testing."""
    from sklearn.model_selection import train_test_split

    from equipoise.studies import data

    found = data.load(dataset)
    X, y = np.asarray(found.table, dtype=np.float64), np.asarray(found.y)
    fit, test = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=split)
    started = time.perf_counter()
    if method == "advisor":
        answer = _advisor(X[fit], y[fit], X[test], y[test], budget, split)
    else:
        answer = _peer(method, X[fit], y[fit], X[test], budget, split)
    spent = time.perf_counter() - started
    return {
        **_scores(y[test], **answer),
        "rows": len(y),
        "test_positives": int(y[test].sum()),
        "wall_seconds": spent,
    }


def _advisor(X: Any, y: Any, X_test: Any, y_test: Any, budget: float, seed: int) -> dict[str, Any]:
    """Fitted for the cost; the decision for balanced accuracy is made after, from the same model."""
    from equipoise.advisor import Advisor

    treatments = [
        name for name in _names() if name != "catboost"
    ]  # the advisor as it is installed by default
    model = Advisor(cost=COST, budget=budget, treatments=treatments, random_state=seed, verbose=False).fit(
        X, y
    )
    balanced = model.retuned(confidence=0.95)
    recall = model.operating_point_.figures["recall"]
    cheap = model.predict(X_test)
    return {
        "proba": model.predict_proba(X_test)[:, 1],
        "cheap": cheap,
        "balanced": balanced.predict(X_test),
        "more": {
            "recall_low": recall.low,
            "recall_high": recall.high,
            "test_recall": float(cheap[y_test == 1].mean()),
            "recommended": model.verdict_.recommended,
            "budget_share": model.fit_seconds_ / budget,
            "bags": len(model.leaderboard_) - 2,
        },
    }


def _names() -> list[str]:
    from equipoise.advisor import treatment_names

    return treatment_names()


def _peer(method: str, X: Any, y: Any, X_test: Any, budget: float, seed: int) -> dict[str, Any]:
    """A peer with its defaults and thresholds that are best on its out-of-fold predictions."""
    from equipoise.metrics import best_threshold

    if method == "autogluon":
        held_out, proba = _autogluon(X, y, X_test, budget)
    else:
        model = _flaml(X, y, budget, seed) if method == "flaml" else _default(method, seed)
        held_out = _out_of_fold(model, X, y, seed)
        proba = model.fit(X, y).predict_proba(X_test)[:, 1]
    matrix = [[0, COST["fp"]], [COST["fn"], 0]]
    cheap = best_threshold(y, held_out, "cost", cost_matrix=matrix).threshold
    balanced = best_threshold(y, held_out, "balanced_accuracy").threshold
    return {
        "proba": proba,
        "cheap": (proba >= cheap).astype(int),
        "balanced": (proba >= balanced).astype(int),
    }


def _out_of_fold(model: Any, X: Any, y: Any, seed: int) -> Any:
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    return cross_val_predict(model, X, y, cv=folds, method="predict_proba")[:, 1]


def _autogluon(X: Any, y: Any, X_test: Any, budget: float) -> tuple[Any, Any]:
    """AutoGluon's bags and their weighted ensemble: its own out-of-fold predictions, and those of the test rows."""
    python = os.environ.get("EQUIPOISE_AUTOGLUON")
    if not python:
        raise ValueError("set EQUIPOISE_AUTOGLUON to the python of an environment that has autogluon.tabular")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "rows.npz"), Path(folder, "answer.npz")
        np.savez(source, X=X, y=y, X_test=X_test)
        script = Path(__file__).with_name("autogluon_alone.py")
        subprocess.run([python, script, source, target, str(budget)], check=True, capture_output=True)
        with np.load(target) as answer:
            return answer["held_out"], answer["proba"]


def _default(method: str, seed: int) -> Any:
    if method.startswith("lightgbm"):
        from lightgbm import LGBMClassifier

        return LGBMClassifier(
            is_unbalance=method.endswith("unbalance"), n_jobs=1, verbosity=-1, random_state=seed
        )
    if method == "histogram-boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(random_state=seed)
    from imblearn.ensemble import BalancedRandomForestClassifier

    return BalancedRandomForestClassifier(
        sampling_strategy="all", replacement=True, bootstrap=False, n_jobs=1, random_state=seed
    )


def _flaml(X: Any, y: Any, budget: float, seed: int) -> Any:
    """What FLAML's search for average precision finds in the same time."""
    import logging

    from flaml import AutoML

    logging.getLogger("flaml").setLevel(logging.ERROR)
    search = AutoML()
    search.fit(X, y, task="classification", metric="ap", time_budget=budget, n_jobs=1, seed=seed, verbose=0)
    return _AsFound(search)


class _AsFound(ClassifierMixin, BaseEstimator):
    """The estimator that FLAML found, to be fitted again by scikit-learn's rules."""

    def __init__(self, search: Any) -> None:
        self.search = search

    def __sklearn_clone__(self) -> _AsFound:
        return _AsFound(self.search)

    def fit(self, X: Any, y: Any) -> _AsFound:
        import copy

        self.model_ = copy.deepcopy(self.search.model)
        self.model_.fit(X, y)
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        return self.model_.predict_proba(X)

    def predict(self, X: Any) -> Any:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _scores(
    y: Any, proba: Any, cheap: Any, balanced: Any, more: dict[str, Any] | None = None
) -> dict[str, Any]:
    from equipoise import metrics

    columns = np.column_stack([1 - proba, proba])
    return {
        "average_precision": metrics.average_precision(y, proba),
        "balanced_accuracy": metrics.balanced_accuracy(y, balanced),
        "cost": metrics.expected_cost(y, cheap, cost_matrix=[[0, COST["fp"]], [COST["fn"], 0]]),
        "brier": metrics.brier(y, columns),
        "ece": metrics.expected_calibration_error(y, columns),
        **(more or {}),
    }


def _needed(cells: Sequence[dict[str, Any]]) -> list[str]:
    return sorted({cell["dataset"] for cell in cells})


SPEC = Spec(
    name="advisor-peers",
    title="The advisor beside LightGBM, histogram boosting, a balanced forest and FLAML, with the same time",
    run_cell=run_cell,
    grid={"dataset": [*UNSEEN, *LOOKED_AT], "method": list(METHODS), "split": [0, 1, 2], "budget": 60.0},
    sizes={
        "tiny": {"dataset": ["keel-haberman"], "split": [0], "budget": 5.0},
        "small": {},
        "long": {
            "dataset": ["coil_2000", "isolet", "keel-page-blocks0", "keel-yeast1", "mammography", "abalone"],
            "method": ["advisor", "flaml"], "budget": 300.0,
        },
        "autogluon": {
            "dataset": ["coil_2000", "isolet", "keel-page-blocks0", "keel-yeast1", "keel-pima", "keel-vehicle1"],
            "method": ["autogluon"], "split": [0],
        },
    },
    metrics=("average_precision", "balanced_accuracy", "cost", "brier", "ece"),
    requires_data=_needed,
)  # fmt: skip
