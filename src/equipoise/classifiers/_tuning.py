"""Choosing after training: λ and the decision of a conditional model, for any metric, wish and prior."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from torch import Tensor

from equipoise._core.checks import FloatArray, IntArray, check_choice
from equipoise.classifiers._lambda_search import (
    Answer,
    Held,
    Judged,
    Params,
    Tuning,
    read_grid,
    read_metric,
    scan,
    search_continuously,
)
from equipoise.classifiers.ledger import softmax
from equipoise.metrics import precision_at_recall, search_decision
from equipoise.metrics.by_class import costs_by_code, shares_by_code
from equipoise.training.distributions import Distribution


class _View:
    """The classifier at one λ on rows whose features are known, for scikit-learn's scorers."""

    _estimator_type = "classifier"

    def __init__(self, owner: Any, rows: Held, features: Tensor, params: Params) -> None:
        self._owner, self._rows, self._features, self._params = owner, rows, features, params
        self._order, self.classes_ = owner._order(), owner.classes_
        self.answer = owner._answer(features, params)
        self.codes: IntArray | None = None
        self.decided = False

    def __sklearn_tags__(self) -> Any:
        return self._owner.__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> FloatArray:
        return self.answer(self._rows.asked)[:, np.argsort(self._order)]

    def decision_function(self, X: Any) -> FloatArray:
        scores = self._owner._scores(self._features, self._params, "train")
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        self.decided = True
        codes = self.answer(self._rows.prior).argmax(axis=1) if self.codes is None else self.codes
        return np.asarray(self.classes_[self._order[codes]])


class TunedAfterTraining:
    """What a classifier can choose once it is trained, given its features and its answer under any λ."""

    classes_: npt.NDArray[Any]
    data_prior_: FloatArray
    distribution_: dict[str, Distribution]
    params_: Params
    tuning_: Tuning
    positive_: Any

    def backbone(self, X: npt.ArrayLike) -> Tensor:
        """Features of the data, which serve every λ."""
        raise NotImplementedError

    def _scores(self, features: Tensor, params: Params | None, prior: Any) -> FloatArray:
        raise NotImplementedError

    def tune(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        metric: str | Callable[..., float] | None = None,
        *,
        params: Any = None,
        search: str = "grid",
        prior: str | npt.ArrayLike = "data",
        pos_label: Any = None,
        **keywords: Any,
    ) -> Tuning:
        """Choose λ and, for a metric of labels, the decision on validation data. Nothing is retrained.

        What is judged is what :meth:`predict` does afterwards.

        Parameters
        ----------
        X : array-like
            Validation samples that took no part in training.
        y : array-like of shape (n,)
            Their labels.
        metric : str or callable, optional
            A name of ``equipoise.metrics.METRICS``, ``"f1"``, ``"cost"`` (with ``cost_matrix``, by name or
            truth by call over ``classes_``), or a scikit-learn scorer ``scorer(estimator, X, y)``. A wish needs no
            metric: ``recall=0.9``, ``precision=0.9`` or ``alerts=0.01`` (the largest share of rows that are
            called). A wanted recall or precision holds for new rows with a ``confidence`` of 0.95; λ is then
            the one with the best average precision, since a λ chosen by its threshold would break the promise more
            often. Without either the average precision is tuned.
        params : dict or list of dict, optional
            Values to combine, or the λ themselves; by default five values over each range.
        search : {"grid", "continuous"}
            Over those λ, or over the whole trained range.
        prior : {"data"}, float, mapping, Series or array
            ``"data"`` takes the validation rows as they come. The share of the positive class, ``{label:
            share}`` or an array over ``classes_`` says what the class shares will be in use: rows are weighted
            and decisions made for those.
        pos_label : label, optional
            The positive class; the rarer one by default.
        **keywords : Any
            Keywords of the metric, or a wish such as ``recall=0.99``.

        Returns
        -------
        Tuning
            The best λ, the decision and what they are worth on the validation data.

        Raises
        ------
        UnmetWish
            If the rows cannot promise the wanted recall or precision; the message says what they can promise.
        """
        check_choice("search", search, ["grid", "continuous"])
        if pos_label is not None and pos_label not in self.classes_.tolist():
            raise ValueError(f"pos_label must be one of {self.classes_.tolist()}, got {pos_label!r}")
        self.positive_ = self._positive() if pos_label is None else pos_label
        rows = self._held(y, prior)
        judge = self._judge(metric, keywords, self.backbone(X), X, np.asarray(y), rows)
        if search == "grid":
            found = scan(read_grid(params, self.distribution_), judge)
        else:
            found = search_continuously(self.distribution_, judge)
        best = found[int(np.nanargmax([row["merit"] for row in found]))]
        self.params_ = {name: best[name] for name in self.distribution_}
        told = prior if rows.weight is None else rows.prior.tolist()
        table = pd.DataFrame(found).drop(columns=["decision", "merit"])
        self.tuning_ = Tuning(self.params_, best["value"], best["decision"], told, table)
        return self.tuning_

    def _positive(self) -> Any:
        return self.classes_[int(self.data_prior_.argmin())]

    def _order(self) -> IntArray:
        """Columns of the classes, the positive one last if there are two."""
        order = np.arange(len(self.classes_))
        return order[::-1] if len(order) == 2 and self.positive_ == self.classes_[0] else order

    def _held(self, y: npt.ArrayLike, prior: Any) -> Held:
        order = self._order()
        place = {label: code for code, label in enumerate(self.classes_[order].tolist())}
        labels = np.asarray(y).tolist()
        unknown = sorted(set(map(str, set(labels) - set(place))))
        if unknown:
            raise ValueError(f"y holds the class {unknown[0]}, which was not trained on")
        codes = np.array([place[label] for label in labels], dtype=np.int64)
        given = self.data_prior_[order]
        if isinstance(prior, str):
            check_choice("prior", prior, ["data"])
            return Held.make(codes, given, None)
        shares = shares_by_code(prior, self.classes_[order].tolist())
        if not (shares > 0).all():
            raise ValueError(f"prior must lie between 0 and 1 for every class, got {shares.tolist()}")
        return Held.make(codes, given, shares)

    def _answer(self, features: Tensor, params: Params) -> Answer:
        """Probabilities under λ at a prior; classes, also those of the prior, stand with the positive one last."""
        order = self._order()

        def answer(prior: Any) -> FloatArray:
            at = prior if isinstance(prior, str) else np.asarray(prior)[np.argsort(order)]
            return softmax(self._scores(features, params, at))[:, order]

        return answer

    def _judge(
        self, metric: Any, keywords: dict[str, Any], features: Tensor, X: Any, y: npt.NDArray[Any], rows: Held
    ) -> Callable[[Params], Judged]:
        if not callable(metric):
            labels = self.classes_[self._order()].tolist()
            costs = {k: costs_by_code(v, labels) for k, v in keywords.items() if k in ("cost", "cost_matrix")}
            judge = read_metric(metric, {**keywords, **costs})
            return lambda candidate: judge(rows, self._answer(features, candidate))
        weights = {} if rows.weight is None else {"sample_weight": rows.weight}

        def by_scorer(candidate: Params) -> Judged:
            view = _View(self, rows, features, candidate)
            value = float(metric(view, X, y, **weights))
            if not view.decided:
                return Judged(value, None, value)

            def worth(codes: IntArray) -> float:
                view.codes = codes
                return float(metric(view, X, y, **weights))

            decision, value = search_decision(view.answer(rows.prior), rows.codes, worth, prior=rows.prior)
            return Judged(value, decision, value)

        return by_scorer

    def survey(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        metrics: Sequence[str] = ("auc", "brier", "precision_at_recall", "best_f1"),
        *,
        params: Any = None,
        prior: str | npt.ArrayLike = "data",
    ) -> pd.DataFrame:
        """Several metrics under every λ for one pass of the backbone: one row per λ; nothing is chosen.

        ``params`` and ``prior`` are those of :meth:`tune`. Draw the table with
        :func:`~equipoise.classifiers.plot_tradeoff` or :func:`~equipoise.classifiers.plot_map`.

        Parameters
        ----------
        X : array-like
            Validation samples.
        y : array-like of shape (n,)
            Their labels.
        metrics : sequence of str
            Names of ``equipoise.metrics.METRICS``.
        params : dict or list of dict, optional
            As in :meth:`tune`.
        prior : {"data"}, float or array
            As in :meth:`tune`.

        Returns
        -------
        DataFrame
            A column for each hyper-parameter and each metric.
        """
        self.positive_ = getattr(self, "positive_", self._positive())
        features, rows = self.backbone(X), self._held(y, prior)
        judges = {name: read_metric(name, {}, promise=False) for name in metrics}
        found = []
        for candidate in read_grid(params, self.distribution_):
            answer = self._answer(features, candidate)
            found.append({**candidate, **{name: judge(rows, answer).value for name, judge in judges.items()}})
        return pd.DataFrame(found)

    def frontier(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        recalls: npt.ArrayLike | None = None,
        params: Any = None,
    ) -> pd.DataFrame:
        """The best precision at each recall over all λ, and the λ that gives it.

        Returns a table with ``recall``, ``precision`` and one column a hyper-parameter. On validation data this
        is a menu; the precision of a chosen line is to be measured on other data.

        Parameters
        ----------
        X : array-like
            Validation samples.
        y : array-like of shape (n,)
            Their labels, of two classes.
        recalls : array, optional
            The recalls; by default twenty from 0.05 to 1.
        params : dict or list of dict, optional
            As in :meth:`tune`.

        Returns
        -------
        DataFrame
            A row for each recall.
        """
        if len(self.classes_) != 2:
            raise ValueError(f"a precision-recall frontier needs two classes, got {len(self.classes_)}")
        wanted = np.linspace(0.05, 1, 20) if recalls is None else np.atleast_1d(np.asarray(recalls, float))
        features, y = self.backbone(X), np.asarray(y)
        positive = self._positive()
        column = self.classes_.tolist().index(positive)
        rows = []
        for candidate in read_grid(params, self.distribution_):
            scores = softmax(self._scores(features, candidate, "data"))[:, column]
            rows += [
                {
                    "recall": recall,
                    "precision": precision_at_recall(y, scores, min_recall=recall, pos_label=positive),
                    **candidate,
                }
                for recall in wanted
            ]
        table = pd.DataFrame(rows)
        return table.loc[table.groupby("recall")["precision"].idxmax()].reset_index(drop=True)
