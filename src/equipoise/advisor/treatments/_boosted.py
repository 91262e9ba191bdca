"""Gradient-boosted trees whose number of rounds is chosen by a curve on rows that were not trained on.

A bag fits one model per fold, with the fold's own held-out rows to validate it. Each fold records its log loss by
round; the bag then cuts all its models at the round where the mean curve is least. One number is chosen for all
folds, so the held-out predictions stay honest to within the choice of that number.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from equipoise._core.checks import FloatArray, IntArray

_PATIENCE = 40


@dataclass(repr=False, eq=False)
class LightGBMTrees(ClassifierMixin, BaseEstimator):
    """LightGBM with a deadline and a validation curve; missing values are seen as such.

    Parameters
    ----------
    rounds : int
        The most boosting rounds.
    categories : sequence of int
        Columns that hold codes of categories.
    threads, random_state : int
    **settings
        Further parameters are those of LightGBM.
    """

    rounds: int = 400
    learning_rate: float = 0.05
    num_leaves: int = 31
    min_data_in_leaf: int = 10
    feature_fraction: float = 0.8
    bagging_fraction: float = 0.8
    lambda_l2: float = 1.0
    extra_trees: bool = False
    scale_pos_weight: float = 1.0
    categories: tuple[int, ...] = ()
    threads: int = 1
    random_state: int = 0

    def boosting_params(self, n_classes: int, n_rows: int) -> dict[str, Any]:
        """What LightGBM is told."""
        task: dict[str, Any] = {"objective": "binary", "metric": "binary_logloss"}
        if n_classes > 2:
            task = {"objective": "multiclass", "metric": "multi_logloss", "num_class": n_classes}
        return {
            **task,
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "min_data_in_leaf": max(1, min(self.min_data_in_leaf, n_rows // 20)),
            "feature_fraction": self.feature_fraction,
            "bagging_fraction": self.bagging_fraction,
            "bagging_freq": 1,
            "lambda_l2": self.lambda_l2,
            "extra_trees": self.extra_trees,
            "scale_pos_weight": self.scale_pos_weight if n_classes == 2 else 1.0,
            "num_threads": self.threads,
            "seed": self.random_state,
            "deterministic": True,
            "force_row_wise": True,
            "feature_pre_filter": False,
            "verbosity": -1,
        }

    def fit(self, X: FloatArray, y: IntArray) -> LightGBMTrees:
        """Boost for ``rounds`` rounds."""
        self.classes_ = np.unique(y)
        data = self.dataset(X, np.searchsorted(self.classes_, y))
        return self._boost(data, None, len(y), _after(np.inf))

    def dataset(self, X: FloatArray, codes: IntArray) -> Any:
        """The rows as LightGBM keeps them."""
        import lightgbm as lgb

        params = {"feature_pre_filter": False, "num_threads": self.threads, "verbosity": -1}
        categories: Any = list(self.categories) or "auto"
        return lgb.Dataset(X, codes, categorical_feature=categories, params=params)

    def fit_dataset(
        self, data: Any, n_classes: int, deadline: float = np.inf, held_out: Any = None
    ) -> LightGBMTrees:
        """Boost on rows that LightGBM holds: all rounds, or until the deadline or no gain on ``held_out``.

        Parameters
        ----------
        data, held_out : lightgbm.Dataset
            With the same bins; labels are class codes.
        n_classes : int
        deadline : float
            A time of :func:`time.monotonic`.
        """
        self.classes_ = np.arange(n_classes)
        return self._boost(data, held_out, data.num_data(), _after(deadline))

    def fit_with_others(
        self,
        data: Any,
        n_classes: int,
        n_rows: int,
        network: Mapping[str, Any],
        is_last: Callable[[int], bool],
    ) -> LightGBMTrees:
        """Boost together with other machines, which hold the rest of the ``n_rows``.

        Parameters
        ----------
        data : lightgbm.Dataset
            The rows that lie here.
        n_classes, n_rows : int
            Of all rows.
        network : mapping
            LightGBM's parameters of the connection.
        is_last : callable
            Takes the number of rounds done, and must give the same answer on every machine.
        """
        import lightgbm as lgb

        self.classes_ = np.arange(n_classes)
        # The connection belongs to the process. A fit that fails leaves it open, and gives nothing to close it by.
        alone = lgb.Booster(
            {"verbosity": -1}, lgb.Dataset(np.zeros((2, 1)), np.zeros(2), params={"verbosity": -1})
        )
        try:
            return self._boost(data, None, n_rows, is_last, network)
        finally:
            alone.free_network()

    def _boost(
        self,
        data: Any,
        held_out: Any,
        n_rows: int,
        is_last: Callable[[int], bool],
        network: Mapping[str, Any] | None = None,
    ) -> LightGBMTrees:
        import lightgbm as lgb

        callbacks, record = [_end_at(is_last)], dict[str, Any]()
        if held_out is not None:
            callbacks += [lgb.record_evaluation(record), lgb.early_stopping(_PATIENCE, verbose=False)]
        booster = lgb.train(
            {**self.boosting_params(len(self.classes_), n_rows), **(network or {})}, data, self.rounds,
            valid_sets=[] if held_out is None else [held_out], callbacks=callbacks,
        )  # fmt: skip
        self.curve_: list[float] = list(next(iter(next(iter(record.values())).values()))) if record else []
        return self._take_booster(booster)

    def to_text(self) -> str:
        """All trees, as LightGBM writes them."""
        return str(self.booster_.model_to_string(num_iteration=-1))

    def _take_booster(self, booster: Any) -> LightGBMTrees:
        self.booster_ = booster
        self.rounds_ = booster.current_iteration()
        return self

    @classmethod
    def from_text(cls, text: str, classes: list[int]) -> LightGBMTrees:
        """The fitted trees of a saved model."""
        import lightgbm as lgb

        made = cls()
        made.classes_ = np.array(classes)
        return made._take_booster(lgb.Booster(model_str=text))

    def cut(self, rounds: int) -> None:
        """Use the first ``rounds`` rounds only."""
        self.rounds_ = min(rounds, self.booster_.current_iteration())

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Probabilities in the order of ``classes_``."""
        p: Any = self.booster_.predict(X, num_iteration=self.rounds_, num_threads=self.threads)
        return np.column_stack([1 - p, p]) if len(self.classes_) == 2 else p

    def predict(self, X: FloatArray) -> Any:
        """The most probable class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _after(deadline: float) -> Callable[[int], bool]:
    return lambda done: time.monotonic() > deadline


def _end_at(is_last: Callable[[int], bool]) -> Any:
    import lightgbm as lgb

    def stop(environment: Any) -> None:
        if is_last(environment.iteration + 1):
            raise lgb.callback.EarlyStopException(
                environment.iteration, environment.evaluation_result_list or []
            )

    stop.order = 40  # type: ignore[attr-defined]
    return stop


@dataclass(repr=False, eq=False)
class CatBoostTrees(ClassifierMixin, BaseEstimator):
    """CatBoost with a deadline and a validation curve.

    Parameters
    ----------
    rounds, learning_rate, depth, l2_leaf_reg
        As CatBoost's iterations and the parameters of the same names.
    threads, random_state : int
    """

    rounds: int = 400
    learning_rate: float = 0.06
    depth: int = 6
    l2_leaf_reg: float = 3.0
    threads: int = 1
    random_state: int = 0

    def fit(
        self,
        X: FloatArray,
        y: IntArray,
        valid: tuple[FloatArray, IntArray] | None = None,
        deadline: float = np.inf,
    ) -> CatBoostTrees:
        """Boost until ``rounds``, the deadline, or no gain on ``valid`` for a while."""
        from catboost import CatBoostClassifier

        self.classes_ = np.unique(y)
        model = CatBoostClassifier(
            iterations=self.rounds, learning_rate=self.learning_rate, depth=self.depth,
            l2_leaf_reg=self.l2_leaf_reg, thread_count=self.threads, random_seed=self.random_state,
            allow_writing_files=False, verbose=False, use_best_model=False,
            early_stopping_rounds=_PATIENCE if valid is not None else None,
            loss_function="Logloss" if len(self.classes_) == 2 else "MultiClass",
        )  # fmt: skip
        model.fit(
            X, np.searchsorted(self.classes_, y),
            eval_set=None if valid is None else (valid[0], np.searchsorted(self.classes_, valid[1])),
            callbacks=[_CatBoostDeadline(deadline)],
        )  # fmt: skip
        scores = model.get_evals_result().get("validation", {})
        self.curve_ = list(next(iter(scores.values()), []))
        self.model_ = model
        self.rounds_ = int(model.tree_count_)
        return self

    def to_json(self) -> Any:
        """The rounds in use as plain values."""
        copied = self.model_.copy()
        copied.shrink(ntree_end=self.rounds_)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.json")
            copied.save_model(str(path), format="json")
            return json.loads(path.read_bytes())

    @classmethod
    def from_json(cls, model: Any, classes: list[int]) -> CatBoostTrees:
        """The fitted trees of a saved model that was checked."""
        from catboost import CatBoost

        made = cls()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.json")
            path.write_text(json.dumps(model), encoding="utf-8")
            made.model_ = CatBoost().load_model(str(path), format="json")
        made.classes_, made.rounds_ = np.array(classes), int(made.model_.tree_count_)
        return made

    def cut(self, rounds: int) -> None:
        """Use the first ``rounds`` rounds only."""
        self.rounds_ = min(rounds, int(self.model_.tree_count_))

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Probabilities in the order of ``classes_``."""
        raw: Any = self.model_.predict(
            X, prediction_type="RawFormulaVal", ntree_end=self.rounds_, thread_count=self.threads
        )
        return np.column_stack([expit(-raw), expit(raw)]) if len(self.classes_) == 2 else softmax(raw, axis=1)

    def predict(self, X: FloatArray) -> Any:
        """The most probable class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class _CatBoostDeadline:
    def __init__(self, deadline: float) -> None:
        self.deadline = deadline

    def after_iteration(self, info: Any) -> bool:
        return time.monotonic() <= self.deadline
