"""The advisor: from a table to the best decision in the time you have."""

from __future__ import annotations

import copy
import math
import time as clock
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from equipoise._core.checks import FloatArray
from equipoise._core.priors import correct_prior
from equipoise._core.random import derive_seed, draw_seed
from equipoise.advisor.bags import Bag
from equipoise.advisor.budget import Budget, parse_duration
from equipoise.advisor.concluding import Conclusion, conclude, left_out, refitted
from equipoise.advisor.delivering import (
    Model,
    fit_all_rows,
    match_prior,
    seconds_for_all_rows,
    seconds_for_the_bags,
)
from equipoise.advisor.engines import count_threads, least_memory, running
from equipoise.advisor.ensemble import Stack
from equipoise.advisor.preparing import Prepared, prepare, with_leaks_said
from equipoise.advisor.search import Found, search
from equipoise.advisor.telling import Teller
from equipoise.advisor.treatments import advised_treatments
from equipoise.datasets import DataTable
from equipoise.datasets.image_features import pixel_rows
from equipoise.datasets.schema import Schema, refuse_duplicates
from equipoise.datasets.table import number_in_every_row
from equipoise.metrics import Wish, choose_decision, judge_decision
from equipoise.metrics.by_class import costs_by_code, shares_by_code, sorted_codes

MOST_COMPARED = 200_000  # rows of a larger table on which treatments are compared, the rare classes first
_LEAST_COMPARED, _COMPARED_A_SECOND = 50_000, 400  # with a short budget fewer of them
_NO_WISH: dict[str, Any] = {
    "cost": None, "recall": None, "precision": None, "alerts": None, "beta": None, "confidence": 0.95,
}  # fmt: skip
_UNMET = "The wish cannot be met"  # begins the note that says why
_CONCLUDING_A_ROW = 5e-5  # seconds for the figures of some ten models


@dataclass(kw_only=True, repr=False, eq=False)
class Advisor(ClassifierMixin, BaseEstimator):
    """Finds the best decision for an imbalanced table within a budget of time.

    Several treatments are fitted as bags over the same folds, the strongest first; a stack of them is calibrated on
    rows that its members did not see, and the decision that the wish asks for follows from its probabilities. All
    figures that it shows come from rows that were not trained on.

    Parameters
    ----------
    cost : mapping, Series, DataFrame or array, optional
        ``{"fp": 1, "fn": 20}``, where a value may name a column with one cost per row; ``{label: cost}`` or a
        Series, what it costs to call a row of that class anything else; ``{truth: {call: cost}}`` or a
        DataFrame, whose index is the truth and whose columns are the call; or an array ``cost[truth, call]`` over
        the sorted classes, those of ``classes_``.
    recall, precision : float, optional
        At least this much, with ``confidence``.
    alerts : float, optional
        At most this share of the rows, or this many of as many rows as were held out.
    beta : float, optional
        The best F-beta. With none of these wishes balanced accuracy is wanted.
    confidence : float
        How sure a promised recall or precision has to be.
    prior : float, mapping, Series or array, optional
        The share of the positive class, ``{label: share}``, or the share of each of the sorted classes, where the
        model will be used, if not as in the data.
    positive : label, optional
        The label to find; by default the rarer one of two.
    budget : str or float
        ``"90s"``, ``"5m"``, ``"1h"`` or seconds, for all of :meth:`fit`.
    treatments : sequence, optional
        Names (see :func:`equipoise.advisor.treatment_names`) or scikit-learn classifiers; by default all.
    trials : int, optional
        End after so many bags beyond the first of each treatment, even if there is time. Time decides what is
        fitted; with ``trials`` and a budget that is not reached the same seed gives the same bits.
    n_jobs : int or None
        Threads, as in scikit-learn: ``None`` is one, -1 all processors, -2 all but one.
    engine : str
        ``"local"``, or ``"dask://host:port"`` to spread the fits over a Dask cluster; with ``trials`` and a budget
        that is not reached the results are the same.
    random_state : int, generator or None
        The source of all randomness: folds, samples and models.
    verbose : bool, optional
        Whether to say what is being done; by default only on a terminal.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    leaderboard_ : DataFrame
        Every treatment on the held-out rows: its figures, their standard errors, its time and its weight.
    verdict_ : Verdict
        What is recommended, and the simplest alternative.
    operating_point_ : Judgment
        The decision and its figures with intervals.
    notes_ : list of str
        What was not tried, and everything else that a reader should know.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(400, weights=[0.9], random_state=0)
    >>> advisor = Advisor(cost={"fp": 1, "fn": 20}, treatments=["lightgbm", "logistic"], trials=0).fit(X, y)
    >>> advisor.predict(X[:3]).shape, sorted(advisor.leaderboard_.index)[-2:]
    ((3,), ['logistic', 'never-positive'])
    """

    cost: Any = None
    recall: float | None = None
    precision: float | None = None
    alerts: float | None = None
    beta: float | None = None
    confidence: float = 0.95
    prior: Any = None
    positive: Any = None
    budget: str | float = "5m"
    treatments: Sequence[Any] | None = None
    trials: int | None = None
    n_jobs: int | None = 1
    engine: str = "local"
    random_state: Any = 0
    verbose: bool | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(
        self, X: Any, y: Any, *, groups: npt.ArrayLike | None = None, time: npt.ArrayLike | None = None
    ) -> Advisor:
        """Search for the best model and decision within the budget.

        Parameters
        ----------
        X : array or DataFrame
            Numbers, texts, categories, dates, missing values; or an array of pictures × height × width, with
            one or three channels before or after these two.
        y : array
            Labels.
        groups : array, optional
            Rows of one group are never on both sides of a split.
        time : array, optional
            Models are judged on rows later than those they were fitted to.

        Returns
        -------
        Advisor
            The fitted advisor itself.

        Raises
        ------
        ValueError
            If the wish cannot be read, or a class has too few rows for folds.
        """
        started = Budget(parse_duration(self.budget))
        X, shape = _pixels(X)
        X, y = self._validated(X, y)
        table = DataTable.from_arrays(X, y, positive=self.positive, groups=groups, time=time)
        table = replace(table, image_shape=shape)
        wish = self._wish(table.classes)
        if wish.by_row:
            table = replace(table, row_values=_row_values(X, wish, table.schema))
        return self._fit(with_leaks_said(table), started)

    def fit_table(self, table: DataTable) -> Advisor:
        """Like :meth:`fit`, for a table that was read with :func:`equipoise.datasets.read_table`.

        Parameters
        ----------
        table : DataTable
            The table, with its groups, times and costs by row.

        Returns
        -------
        Advisor
            The fitted advisor itself.
        """
        started = Budget(parse_duration(self.budget))
        self.n_features_in_ = len(table.schema.columns)
        return self._fit(table, started)

    def check(self, table: DataTable) -> tuple[Wish, FloatArray | None]:
        """Read the wish and the prior, and refuse what the table cannot follow, before time is spent on it.

        Parameters
        ----------
        table : DataTable
            The table that would be fitted to.

        Returns
        -------
        Wish
            The wish.
        array or None
            The class shares that are wanted; ``None`` for those of the data.

        Raises
        ------
        ValueError
            If the wish, the prior, a treatment or ``n_jobs`` cannot be read, or does not fit the classes.
        """
        wish = self._wish(table.classes)
        wish.check(table.n_classes)
        advised_treatments(self.treatments)
        count_threads(self.n_jobs)
        return wish, None if self.prior is None else shares_by_code(self.prior, table.classes)

    @threadpool_limits.wrap(limits=1, user_api="blas")
    def _fit(self, table: DataTable, budget: Budget) -> Advisor:
        wish, prior = self.check(table)
        seed = draw_seed(self.random_state)
        self._labels = tuple(_plain(label) for label in table.classes)
        self._set_classes(self._labels)
        with Teller(self.verbose, budget) as told:
            self._find(table, budget, wish, prior, seed, told)
        self.fit_seconds_ = clock.monotonic() - budget.started
        self.table_ = table
        self.info_: dict[str, Any] = {"target": table.target, "data": table.name, "rows": table.n_rows}
        if table.image_shape is not None:
            self.info_["image_shape"] = list(table.image_shape)
        return self

    def _find(
        self, table: DataTable, budget: Budget, wish: Wish, prior: FloatArray | None, seed: int, told: Teller
    ) -> None:
        """The model and the decision, in the time there is."""
        told("preparing the columns")
        memory = math.inf if table.parts is None else least_memory(self.engine)
        made = prepare(table, _most_compared(table, budget), seed, memory)
        found, failures = self._search(table, made, budget, told)
        told("choosing the decision")
        concluded = conclude(made.sample, made.rows, found, wish, prior)
        self._take(concluded, made, found)
        self.notes_ += failures
        if made.rows.totals is not None:
            told("fitting the boosted models to all rows")
            self._deliver(table, made, budget, derive_seed(seed, "prior"))
        self._decide(concluded.wish, prior)

    def _search(
        self, table: DataTable, made: Prepared, budget: Budget, told: Teller
    ) -> tuple[Found, list[str]]:
        """Fit bags for as long as the budget lasts, less what the figures and a fit to all rows will take.

        Returns what was found, and a sentence for each failure of a cluster.
        """
        rows, treatments = made.rows, advised_treatments(self.treatments)
        threads = count_threads(self.n_jobs)
        budget.keep_back(_CONCLUDING_A_ROW * len(rows))
        most = 0.0 if rows.totals is None else 0.5 * budget.left
        if most:
            first = seconds_for_all_rows(rows, treatments, made.context, table.n_rows, threads)
            budget.set_aside(min(most, first))

        def keep_time(found: Found) -> None:
            if most:
                needed = seconds_for_the_bags(found.bags, len(rows), table.n_rows, threads)
                budget.set_aside(min(most, needed))

        failures: list[str] = []
        with running(self.engine, threads, rows, failures) as run:
            found = search(
                rows, treatments, made.context, made.folds, budget, trials=self.trials, run=run, told=told,
                tried=keep_time,
            )  # fmt: skip
        budget.set_aside(0.0)
        return found, failures

    bags_: list[Bag] = field(init=False)
    stack_: Stack = field(init=False)
    encoders_: dict[str, Any] = field(init=False)

    def _take(self, concluded: Conclusion, made: Prepared, found: Found) -> None:
        """Keep what the search came to."""
        self.leaderboard_, self.verdict_ = concluded.leaderboard, concluded.verdict
        self.left_out_, self.unmet_wish_ = left_out(found), concluded.unmet
        missed = [f"Not tried: {', '.join(names)}, because {why}." for why, names in self.left_out_.items()]
        self.notes_ = [*made.sample.notes, *missed]
        if concluded.unmet is not None:
            self.notes_.insert(0, f"{_UNMET}: {concluded.unmet}")
            warnings.warn(
                f"{concluded.unmet}; the decision is for balanced accuracy instead", UserWarning, stacklevel=5
            )
        if unable := [str(self.leaderboard_["treatment"][name]) for name in self.verdict_.unable]:
            self.notes_.append(
                f"{'; '.join(unable)}: {concluded.wish.words} cannot be promised, so the comparison shows the "
                "decision for balanced accuracy, and the recommended model is one of the others."
            )
        self.bags_, self.stack_ = concluded.bags, concluded.stack
        self.judges_, self.compared_ = concluded.bags, made.sample  # for reasons
        self.judged_ = concluded.judged
        if made.sample.time is not None:
            self.bags_ = [refitted(bag, made.rows, made.context) for bag in self.bags_]
        self.encoders_, self.schema_ = made.encoders, made.sample.schema
        self.data_prior_, self.held_out_ = made.sample.prior, concluded.held_out
        rows = concluded.rows
        self.truth_, self.block_ = rows.y, rows.block
        self.row_costs_, self.groups_ = rows.row_costs, rows.groups

    def _deliver(self, table: DataTable, made: Prepared, budget: Budget, seed: int) -> None:
        """Fit what can be to all rows of a large table, and match the class shares of all rows."""
        context = replace(made.context, threads=count_threads(self.n_jobs))
        model, again, notes = fit_all_rows(self._model, table, made.rows, context, budget, self.engine)
        model = match_prior(model, table, made.rows, again, self.held_out_, self.truth_, seed)
        self.bags_, self.stack_ = model.bags, model.stack
        self.notes_ += notes

    @property
    def _model(self) -> Model:
        return Model(self.encoders_, self.bags_, self.stack_)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the sorted classes, at the wanted prior.

        Parameters
        ----------
        X : array or DataFrame
            Rows with the columns that the model was fitted to.

        Returns
        -------
        array of shape (rows, classes)
            The probabilities.
        """
        return self._proba(X)[:, self._order]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Labels, by the decision of :attr:`operating_point_`.

        Parameters
        ----------
        X : array or DataFrame
            Rows with the columns that the model was fitted to, and those that a cost by row names.

        Returns
        -------
        array of shape (rows,)
            The labels.
        """
        proba = self._proba(X)
        costs = None
        if self.decision_.wish.by_row:
            wish = self.decision_.wish
            costs = wish.row_costs(_row_values(X, wish, self.schema_), len(proba))
        codes = self.decision_.codes(proba, costs)
        return self.classes_[np.argsort(self._order)[codes]]

    def _proba(self, X: Any) -> FloatArray:
        check_is_fitted(self, "stack_")
        X, _ = _pixels(X)
        typed = self.schema_.convert(X if isinstance(X, pd.DataFrame) else self._checked_array(X))
        return correct_prior(self._model.proba(typed), self.data_prior_, self.decision_.prior)

    def _set_classes(self, labels: Sequence[Any]) -> None:
        """The labels in scikit-learn's order, and the column of each among the inner ones."""
        self._order = sorted_codes(labels)
        alike = len({type(label) for label in labels}) == 1
        self.classes_ = np.array([labels[code] for code in self._order], dtype=None if alike else object)

    def retuned(self, *, prior: Any = None, **wish: Any) -> Advisor:
        """The same model with another wish or prior; nothing is trained.

        Parameters
        ----------
        prior : float, mapping, Series or array, optional
            As in `Advisor`; by default the one that was wanted before.
        **wish : Any
            One of ``cost``, ``recall``, ``precision``, ``alerts``, ``beta`` and ``threshold`` (on the positive
            class's probability; a ``cost`` beside it says what its errors cost), and ``confidence``; by default
            the earlier wish.

        Returns
        -------
        Advisor
            A copy with another decision; this one stays as it is.
        """
        check_is_fitted(self, "stack_")
        by_code = {"cost": costs_by_code(wish["cost"], self._labels)} if "cost" in wish else {}
        made = Wish.make(**{**wish, **by_code}) if wish else self.decision_.wish
        made.check(len(self._labels))
        if made.by_row and (self.row_costs_ is None or made != self.decision_.wish):
            raise ValueError("a cost by row needs the table: pass it to Advisor or to the report")
        other = copy.copy(self)
        if wish:  # a clone of the copy looks for what the copy decides for
            other.set_params(**{name: wish.get(name, unsaid) for name, unsaid in _NO_WISH.items()})
        if prior is not None:
            other.set_params(prior=prior)
        wanted = self.decision_.prior if prior is None else shares_by_code(prior, self._labels)
        costs = self.row_costs_ if made.by_row else None
        other.row_costs_, other.unmet_wish_ = costs, None
        other.notes_ = [note for note in self.notes_ if not note.startswith(_UNMET)]
        other._decide(made, wanted)
        return other

    def _decide(self, wish: Wish, prior: FloatArray | None) -> None:
        """Choose a decision on the held-out rows, and judge it."""
        known: Any = {"data_prior": self.data_prior_, "groups": self.groups_, "folds": self.block_}
        self.decision_ = choose_decision(self.held_out_, self.truth_, wish, prior=prior, **known)
        self._judge()

    def _judge(self) -> None:
        self.operating_point_ = judge_decision(
            self.decision_, self.held_out_, self.truth_, data_prior=self.data_prior_, row_costs=self.row_costs_,
            groups=self.groups_, folds=self.block_,
        )  # fmt: skip

    def report(self, out: str | PathLike[str]) -> dict[str, Path]:
        """Write the page, and the model beside it.

        Parameters
        ----------
        out : path
            A folder; ``report.html``, ``report.md``, ``report.json`` and ``model/`` are written into it.

        Returns
        -------
        dict of str to Path
            The paths that were written: ``"html"``, ``"md"``, ``"json"`` and ``"model"``.

        Raises
        ------
        ValueError
            If the model was loaded: its folder holds no table.
        """
        check_is_fitted(self, "stack_")
        if not hasattr(self, "table_"):
            raise ValueError("a loaded model has no table to report on: call report where it was fitted")
        from equipoise.advisor.writing import write_fitted

        return write_fitted(self, self.table_, out)

    def save(self, folder: str | PathLike[str]) -> Path:
        """Write the model folder; :func:`equipoise.load` reads it.

        Parameters
        ----------
        folder : path
            Where to write; a model folder that is there is replaced.

        Returns
        -------
        Path
            The folder.
        """
        from equipoise.advisor.model import save_advisor

        return save_advisor(self, folder)

    def _wish(self, labels: Sequence[Any]) -> Wish:
        """What is wished for, over class codes that stand for these labels."""
        return Wish.make(
            cost=costs_by_code(self.cost, labels), recall=self.recall, precision=self.precision,
            alerts=self.alerts, beta=self.beta, confidence=self.confidence,
        )  # fmt: skip

    def _validated(self, X: Any, y: Any) -> tuple[Any, Any]:
        from sklearn.utils.multiclass import check_classification_targets
        from sklearn.utils.validation import (
            _check_feature_names,
            _check_n_features,
            column_or_1d,
            validate_data,
        )

        y = _plain_labels(y)
        if isinstance(X, pd.DataFrame):
            if y is None:
                raise ValueError("y must be given: Advisor is a classifier")
            labels = column_or_1d(y, warn=True)
            refuse_duplicates([str(name) for name in X.columns])
            _check_feature_names(self, X, reset=True)
            _check_n_features(self, X, reset=True)
        else:
            X, labels = validate_data(
                self, X, y, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
            )
        check_classification_targets(labels)
        return X, labels

    def _checked_array(self, X: Any) -> Any:
        from sklearn.utils.validation import validate_data

        return validate_data(
            self, X, reset=False, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
        )


def _pixels(X: Any) -> tuple[Any, tuple[int, int, int] | None]:
    """Pictures as rows of pixels, with their shape; anything else as it is."""
    return pixel_rows(X) if isinstance(X, np.ndarray) and X.ndim in (3, 4) else (X, None)


def _row_values(X: Any, wish: Wish, schema: Schema) -> dict[str, FloatArray]:
    """The costs by row that a wish takes from a table, read as the table's columns are."""
    if not isinstance(X, pd.DataFrame):
        return {}
    named, known = X.set_axis([str(name) for name in X.columns], axis=1), {c.name: c for c in schema.columns}
    return {
        name: number_in_every_row(name, named[name], "a number", known.get(name))
        for name in wish.columns
        if name in named
    }


def _plain_labels(y: Any) -> Any:
    """Labels of a list, a Series or an array of objects as an array of one type, none of them missing."""
    read: Any = (list, tuple, np.ndarray, pd.Series, pd.Index, pd.api.extensions.ExtensionArray)
    if not isinstance(y, read) or np.ndim(y) != 1 or (isinstance(y, np.ndarray) and y.dtype.kind in "biufU"):
        return y
    labels = pd.Series(y).infer_objects()
    if missing := int(labels.isna().sum()):
        raise ValueError(f"y must have a label in every row, got {missing} missing: drop these rows")
    return labels.to_numpy(dtype=getattr(labels.dtype, "numpy_dtype", None))


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _most_compared(table: DataTable, budget: Budget) -> int:
    """All rows, or of a large table as many as the budget can compare treatments on."""
    if table.n_rows <= MOST_COMPARED:
        return len(table)
    return min(MOST_COMPARED, max(_LEAST_COMPARED, int(_COMPARED_A_SECOND * budget.seconds)))
