"""The advisor: from a table to the best decision in the time you have."""

from __future__ import annotations

import copy
import math
import sys
import time as clock
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from equipoise._core.checks import FloatArray, check_distribution
from equipoise._core.priors import correct_prior
from equipoise._core.random import derive_seed, draw_seed
from equipoise.advisor.bags import Bag, Rows, fit_fold
from equipoise.advisor.budget import Budget, parse_duration
from equipoise.advisor.engines import least_memory, running
from equipoise.advisor.ensemble import Stack, fit_stack, held_out_stack, keep_useful
from equipoise.advisor.search import TOO_SHORT, Found, search
from equipoise.advisor.splits import Fold, make_folds
from equipoise.advisor.treatments import Context, Treatment, advised_treatments, all_treatments
from equipoise.advisor.verdict import ENSEMBLE, HeldOut, make_leaderboard
from equipoise.datasets import DataTable, describe_near_copies, find_near_copies
from equipoise.datasets.blocks import ROWS_AT_ONCE, table_blocks
from equipoise.datasets.encoding import TableEncoder
from equipoise.datasets.image_features import ImageEncoder
from equipoise.datasets.schema import refuse_duplicates
from equipoise.datasets.thinning import sample_rows
from equipoise.metrics import UnmetWish, Wish, choose_decision, judge_decision

MOST_COMPARED = 200_000  # rows of a larger table on which treatments are compared, the rare classes first
_LEAST_COMPARED, _COMPARED_A_SECOND = 50_000, 400  # with a short budget fewer of them
_ROWS_DRAWN, _BLOCKS_DRAWN = 20_000, 4  # of a larger table, to match mean probabilities to the class shares
_CONCLUDING_A_ROW = 5e-5  # seconds for the figures of some ten models
_MOST_VALUES_FOR_COPIES = 20_000_000  # in a larger table near-copies are not looked for


class Advisor(ClassifierMixin, BaseEstimator):
    """Finds the best decision for an imbalanced table within a budget of time.

    Several treatments are fitted as bags over the same folds, the strongest first; a stack of them is calibrated on
    rows that its members did not see, and the decision that the wish asks for follows from its probabilities. All
    figures that it shows come from rows that were not trained on.

    Parameters
    ----------
    cost : mapping or array, optional
        ``{"fp": 1, "fn": 20}``, where a value may name a column with one cost per row, or a table
        ``cost[truth, call]`` over the sorted classes.
    recall, precision : float, optional
        At least this much, with ``confidence``.
    alerts : float, optional
        At most this share of the rows, or this many of as many rows as were held out.
    beta : float, optional
        The best F-beta. With none of these wishes balanced accuracy is wanted.
    confidence : float
        How sure a promised recall or precision has to be.
    prior : float or array, optional
        The share of the positive class (or of each of the sorted classes) where the model will be used, if not
        as in the data.
    positive : label, optional
        The label to find; by default the rarer one of two.
    budget : str or float
        ``"90s"``, ``"5m"``, ``"1h"`` or seconds, for all of :meth:`fit`.
    treatments : sequence, optional
        Names (see :func:`equipoise.advisor.treatment_names`) or scikit-learn classifiers; by default all.
    trials : int, optional
        End after so many bags beyond the first of each treatment, even if there is time. Time decides what is
        fitted; with ``trials`` and a budget that is not reached the same seed gives the same bits.
    n_jobs : int
        Threads.
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

    def __init__(
        self,
        *,
        cost: Any = None,
        recall: float | None = None,
        precision: float | None = None,
        alerts: float | None = None,
        beta: float | None = None,
        confidence: float = 0.95,
        prior: Any = None,
        positive: Any = None,
        budget: str | float = "5m",
        treatments: Sequence[Any] | None = None,
        trials: int | None = None,
        n_jobs: int = 1,
        engine: str = "local",
        random_state: Any = 0,
        verbose: bool | None = None,
    ) -> None:
        self.cost = cost
        self.recall = recall
        self.precision = precision
        self.alerts = alerts
        self.beta = beta
        self.confidence = confidence
        self.prior = prior
        self.positive = positive
        self.budget = budget
        self.treatments = treatments
        self.trials = trials
        self.n_jobs = n_jobs
        self.engine = engine
        self.random_state = random_state
        self.verbose = verbose

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
            Numbers, texts, categories, dates, missing values.
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
        X, y = self._validated(X, y)
        wish = self._wish()
        table = DataTable.from_arrays(X, y, positive=self.positive, groups=groups, time=time)
        if wish.by_row:
            costs = {name: np.asarray(X[name], dtype=np.float64) for name in wish.columns if name in X}
            table = replace(table, row_values=costs)
        return self._fit(table, started)

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

    @threadpool_limits.wrap(limits=1, user_api="blas")
    def _fit(self, table: DataTable, budget: Budget) -> Advisor:
        wish, seed = self._wish(), draw_seed(self.random_state)
        self._labels = tuple(_plain(label) for label in table.classes)
        self._set_classes(self._labels)
        wish.cost_table(table.n_classes)
        told = _Teller(self.verbose, budget)
        told("preparing the columns")
        sample = sample_rows(table, _most_compared(table, budget), derive_seed(seed, "sample") % 2**31)
        sample = _with_copies_together(sample)
        encoders = {view: _encoder(table, view) for view in ("trees", "linear")}
        # Without the labels: an encoding by class shares would tell a row about others of its group.
        views = {view: e.fit_transform(sample.X) for view, e in encoders.items()}
        rows = Rows(views, sample.y, table.n_classes, sample.class_totals)
        context = Context(
            seed=seed % 2**31, smallest=int(table.counts[table.counts > 0].min()), n_rows=len(sample),
            n_columns=views["linear"].shape[1], n_classes=table.n_classes,
            categories=tuple(map(int, encoders["trees"].categorical_features_)), image_shape=table.image_shape,
            memory=math.inf if table.parts is None else least_memory(self.engine),
        )  # fmt: skip
        n_splits = _splits(table)

        def folds(repeat: int) -> list[Fold]:
            own = derive_seed(seed, "repeat", repeat)
            return make_folds(sample.y, n_splits, own, groups=sample.groups, time=sample.time)

        treatments = advised_treatments(self.treatments)
        budget.keep_back(_CONCLUDING_A_ROW * len(rows))
        most = 0.0 if rows.totals is None else 0.5 * budget.left
        if most:
            budget.set_aside(min(most, _for_all_rows(rows, treatments, context, table.n_rows, self.n_jobs)))

        def keep_time(found: Found) -> None:
            if most:
                budget.set_aside(min(most, _for_the_bags(found.bags, len(rows), table.n_rows, self.n_jobs)))

        failures: list[str] = []
        with running(self.engine, self.n_jobs, rows, failures) as run:
            found = search(
                rows, treatments, context, folds, budget, trials=self.trials, run=run, told=told, tried=keep_time
            )  # fmt: skip
        budget.set_aside(0.0)
        told("choosing the decision")
        self._conclude(sample, encoders, rows, found, wish, context)
        self.notes_ += failures
        if rows.totals is not None:
            told("fitting the boosted models to all rows")
            refitted = self._fit_all_rows(table, rows, replace(context, threads=self.n_jobs), budget)
            self._match_prior(table, rows, refitted, derive_seed(seed, "prior"))
        self.fit_seconds_ = clock.monotonic() - budget.started
        self.table_ = table
        self.info_: dict[str, Any] = {"target": table.target, "data": table.name, "rows": table.n_rows}
        told.close()
        return self

    bags_: list[Bag]
    stack_: Stack
    encoders_: dict[str, Any]

    def _fit_all_rows(self, table: DataTable, rows: Rows, context: Context, budget: Budget) -> set[str]:
        """The boosted models of the recommended one again, on all rows instead of the sample; their names."""
        from equipoise.advisor.all_rows import AllRows, takes_all_rows

        self.notes_.append(
            f"Treatments were compared on {len(rows):,} of {table.n_rows:,} rows, all of the rare classes and a "
            "random part of the others. Every figure is corrected to the class shares of all rows."
        )
        bags: list[Bag] = self.bags_
        weight = dict(zip([bag.name for bag in bags], self.stack_.weights, strict=True))
        boosted = sorted([bag for bag in bags if takes_all_rows(bag)], key=lambda bag: -weight[bag.name])
        if not boosted:
            self.notes_.append(
                "The delivered model was fitted to these rows. Only LightGBM's models can be fitted to all rows of "
                "a large table, and it has none of them."
            )
            return set()
        everything = AllRows(table_blocks(table), self.encoders_["trees"], rows)
        if table.parts is not None:
            most = table.parts.memory // (3 * rows.views["trees"].shape[1])
            everything = replace(everything, most=most, engine=self.engine)
        fitted, note = everything.fit(boosted, context, budget.deadline())
        again = {bag.name: bag for bag in fitted}
        self.bags_ = [again.get(bag.name, bag) for bag in bags]
        self.notes_.append(note)
        if again and len(again) < len(bags):
            self.notes_.append("The other models of the ensemble were fitted to the rows that were compared.")
        return set(again)

    def _match_prior(self, table: DataTable, rows: Rows, refitted: set[str], seed: int) -> None:
        """Shift the stack so that the mean probabilities over all rows are the class shares.

        The stack was fitted to models of single folds on the sample; their mean, or a model of all rows, answers a
        little higher or lower. A model of all rows knows its mean on the rows that it saw. Models of the sample are
        judged by rows drawn from the whole table, and for classes of which the sample holds all rows by the
        held-out predictions.
        """
        members = zip(self.bags_, self.stack_.weights, strict=True)
        again = sum(weight for bag, weight in members if bag.name in refitted)
        drawn = (rows.stands_for > 1.5) | (again > 0.5 * self.stack_.weights.sum())
        held = ~drawn[self.truth_]
        proba, codes = [self.held_out_[held]], [self.truth_[held]]
        rng, blocks = np.random.default_rng(seed), table_blocks(table)
        for number in np.unique(np.linspace(0, len(blocks) - 1, _BLOCKS_DRAWN).astype(int)):
            y = blocks[number].y
            index = np.flatnonzero(drawn[y])
            index = np.sort(rng.choice(index, min(len(index), _ROWS_DRAWN // _BLOCKS_DRAWN), replace=False))
            found = blocks[number].read()
            taken = found.iloc[index] if isinstance(found, pd.DataFrame) else found[index]
            proba.append(self._stacked(taken))
            codes.append(y[index])
        self.stack_ = self.stack_.matched(np.concatenate(proba), np.concatenate(codes), self.data_prior_)

    def _conclude(
        self,
        table: DataTable,
        encoders: Mapping[str, Any],
        rows: Rows,
        found: Found,
        wish: Wish,
        context: Context,
    ) -> None:
        """Stack, judge and decide."""
        block = found.block(len(rows))
        judged = np.flatnonzero(block >= 0)
        y, block = rows.y[judged], block[judged]
        seen = np.bincount(y, minlength=rows.n_classes)
        weight = (table.counts / np.maximum(seen, 1))[y]
        costs = wish.row_costs(table.row_values, len(table))
        own = None if costs is None else (costs[0][judged], costs[1][judged])
        groups = None if table.groups is None else table.groups[judged]
        held = HeldOut(y, block, weight, table.prior, own, groups)
        bags = {bag.name: bag for bag in found.bags}
        members = np.stack([bag.held_out[judged] for bag in bags.values()])
        kept = keep_useful(list(bags), members, y, weight)
        predictions = {
            name: held_out_stack(members[i : i + 1], y, block, weight) for i, name in enumerate(bags)
        }
        chosen = [list(bags)[i] for i in kept]
        stack = fit_stack(members[kept], y, weight)
        share = dict(zip(chosen, stack.weights / max(stack.weights.sum(), 1e-12), strict=True))
        labels = {name: _label(bag) for name, bag in bags.items()}
        simplicity = {name: bag.treatment.simplicity + bag.repeats - 1 for name, bag in bags.items()}
        if len(kept) > 1:
            predictions[ENSEMBLE] = held_out_stack(members[kept], y, block, weight)
            labels[ENSEMBLE], simplicity[ENSEMBLE] = f"an ensemble of {len(kept)} models", 100
        prior = self._wanted_prior(table)
        seconds = {name: bag.seconds for name, bag in bags.items()}
        self.left_out_ = _left_out(found)
        missed = [f"Not tried: {', '.join(names)}, because {why}." for why, names in self.left_out_.items()]
        self.notes_ = [*table.notes, *missed]
        try:
            board, verdict = make_leaderboard(
                predictions, labels, simplicity, seconds, share, held, wish, prior
            )
        except UnmetWish as unmet:
            self.notes_.insert(0, f"The wish cannot be met: {unmet}")
            self.unmet_wish_ = str(unmet)
            warnings.warn(
                f"{unmet}; the decision is for balanced accuracy instead", UserWarning, stacklevel=4
            )
            wish = Wish()
            board, verdict = make_leaderboard(
                predictions, labels, simplicity, seconds, share, held, wish, prior
            )
        self.leaderboard_, self.verdict_ = board, verdict
        name = verdict.recommended
        names = chosen if name == ENSEMBLE else [name]
        self.bags_ = [bags[n] for n in names]
        self.stack_ = stack if name == ENSEMBLE else fit_stack(members[[list(bags).index(name)]], y, weight)
        self.judges_, self.compared_, self.judged_ = self.bags_, table, judged  # for reasons; not saved
        if table.time is not None:
            self.bags_ = [_refitted(bag, rows, context) for bag in self.bags_]
        self.encoders_, self.schema_ = dict(encoders), table.schema
        self.data_prior_ = table.prior
        self.held_out_, self.truth_, self.block_ = predictions[name], y, block
        self.row_costs_, self.groups_ = held.row_costs, held.groups
        self._decide(wish, prior)

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
            columns: Any = X if isinstance(X, pd.DataFrame) else {}
            costs = self.decision_.wish.row_costs(columns, len(proba))
        codes = self.decision_.codes(proba, costs)
        return self.classes_[np.argsort(self._order)[codes]]

    def _proba(self, X: Any) -> FloatArray:
        check_is_fitted(self, "stack_")
        typed = self.schema_.convert(X if isinstance(X, pd.DataFrame) else self._checked_array(X))
        return correct_prior(self._stacked(typed), self.data_prior_, self.decision_.prior)

    def _stacked(self, typed: Any) -> FloatArray:
        """Probabilities at the data's prior, of rows as the schema describes them."""
        wanted: set[str] = {bag.treatment.view for bag in self.bags_}
        blocks = []
        for start in range(0, max(len(typed), 1), ROWS_AT_ONCE):
            rows = typed[start : start + ROWS_AT_ONCE]
            views = {view: self.encoders_[view].transform(rows) for view in wanted}
            blocks.append(self.stack_.proba(np.stack([bag.log_proba(views) for bag in self.bags_])))
        return np.concatenate(blocks)

    def _set_classes(self, labels: Sequence[Any]) -> None:
        """The labels in scikit-learn's order, and the column of each among the inner ones."""
        if len({type(label) for label in labels}) == 1:
            self.classes_ = np.unique(np.array(labels))
        else:  # labels of several types have no order but that of their texts
            self.classes_ = np.array(sorted(labels, key=str), dtype=object)
        place = {label: code for code, label in enumerate(labels)}
        self._order = np.array([place[_plain(label)] for label in self.classes_], dtype=np.int64)

    def retuned(self, *, prior: Any = None, **wish: Any) -> Advisor:
        """The same model with another wish or prior; nothing is trained.

        Parameters
        ----------
        prior : float or array, optional
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
        made = Wish.make(**wish) if wish else self.decision_.wish
        if made.by_row and (self.row_costs_ is None or made != self.decision_.wish):
            raise ValueError("a cost by row needs the table: pass it to Advisor or to the report")
        other = copy.copy(self)
        wanted = self.decision_.prior if prior is None else self._read_prior(prior, len(self._labels))
        costs = self.row_costs_ if made.by_row else None
        other.row_costs_ = costs
        other._decide(made, wanted)
        return other

    def _decide(self, wish: Wish, prior: FloatArray | None) -> None:
        """Choose a decision on the held-out rows, and judge it."""
        known: Any = {"data_prior": self.data_prior_, "groups": self.groups_}
        self.decision_ = choose_decision(self.held_out_, self.truth_, wish, prior=prior, **known)
        self._judge()

    def _judge(self) -> None:
        self.operating_point_ = judge_decision(
            self.decision_, self.held_out_, self.truth_, data_prior=self.data_prior_, row_costs=self.row_costs_,
            groups=self.groups_,
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
        """
        check_is_fitted(self, "stack_")
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

    def _wish(self) -> Wish:
        return Wish.make(
            cost=self.cost, recall=self.recall, precision=self.precision, alerts=self.alerts, beta=self.beta,
            confidence=self.confidence,
        )  # fmt: skip

    def _wanted_prior(self, table: DataTable) -> FloatArray | None:
        return None if self.prior is None else self._read_prior(self.prior, table.n_classes)

    def _read_prior(self, prior: Any, n: int) -> FloatArray:
        shares = np.atleast_1d(np.asarray(prior, dtype=np.float64))
        if shares.size == 1 and n == 2:
            if not 0 < shares[0] < 1:
                hint = f": write {shares[0] / 100:g} for {shares[0]:g}%" if 1 < shares[0] <= 100 else ""
                raise ValueError(f"prior must lie between 0 and 1, got {shares[0]:g}{hint}")
            return np.array([1 - shares[0], shares[0]])
        if shares.size != n:
            raise ValueError(f"prior must be {n} shares, got {shares.size}")
        return check_distribution("prior", shares)

    def _validated(self, X: Any, y: Any) -> tuple[Any, Any]:
        from sklearn.utils.multiclass import check_classification_targets
        from sklearn.utils.validation import (
            _check_feature_names,
            _check_n_features,
            column_or_1d,
            validate_data,
        )

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
        if missing := int(np.sum(pd.isna(labels))):
            raise ValueError(f"y must have a label in every row, got {missing} missing: drop these rows")
        check_classification_targets(labels)
        return X, labels

    def _checked_array(self, X: Any) -> Any:
        from sklearn.utils.validation import validate_data

        return validate_data(
            self, X, reset=False, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
        )


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _label(bag: Bag) -> str:
    number = bag.name.partition("#")[2]
    return bag.treatment.summary + (f", variant {number}" if number else "")


def _left_out(found: Found) -> dict[str, list[str]]:
    """What was not tried, by the reason, with the names that people see."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in found.left_out.items():
        known = all_treatments().get(name)
        why = TOO_SHORT if reason.startswith(TOO_SHORT) else reason
        by_reason.setdefault(why, []).append(known.summary if known else name)
    return by_reason


def _with_copies_together(table: DataTable) -> DataTable:
    """Near-copies as groups where nothing else is given: a copy in both parts of a split flatters every figure."""
    if (
        table.groups is not None
        or table.time is not None
        or table.image_shape is not None
        or len(table) * len(table.kinds) > _MOST_VALUES_FOR_COPIES
    ):
        return table
    groups = find_near_copies(table)
    if groups is None:
        return table
    fewest = min(len(np.unique(groups[table.y == c])) for c in np.unique(table.y))
    told = describe_near_copies(table, groups)
    if fewest < _splits(table):
        return table.with_notes(told)
    return replace(table, groups=groups).with_notes(
        f"{told} Copies were kept on one side of every split, so that the figures are those of new rows."
    )


def _encoder(table: DataTable, view: str) -> Any:
    """What turns the columns into numbers: features of pictures, or the columns themselves."""
    if table.image_shape is not None:
        return ImageEncoder(table.image_shape, for_trees=view == "trees")
    return TableEncoder(table.kinds, for_trees=view == "trees")


def _splits(table: DataTable) -> int:
    """Five folds, fewer where the rarest class is too small to be in all of them."""
    return int(np.clip(table.counts[table.counts > 0].min(), 2, 5))


def _refitted(bag: Bag, rows: Rows, context: Context) -> Bag:
    """One model on all rows, past and present, in place of models of ever longer pasts."""
    settings = dict(bag.settings)
    used = [getattr(model.estimator, "rounds_", 0) for model in bag.models]
    if "rounds" in settings and used:
        settings["rounds"] = max(1, used[-1])
    every = np.arange(len(rows))
    model, _, seconds = fit_fold(bag.treatment, context, settings, rows, Fold(every, every[:0]), np.inf)
    return Bag(bag.name, bag.treatment, settings, [model], bag.held_out, bag.seconds + seconds)


def _most_compared(table: DataTable, budget: Budget) -> int:
    """All rows, or of a large table as many as the budget can compare treatments on."""
    if table.n_rows <= MOST_COMPARED:
        return len(table)
    return min(MOST_COMPARED, max(_LEAST_COMPARED, int(_COMPARED_A_SECOND * budget.seconds)))


def _for_all_rows(
    rows: Rows, treatments: Sequence[Treatment], context: Context, total: int, threads: int
) -> float:
    """Seconds that the search must leave for a boosted model on all rows, before one was fitted."""
    if not any(treatment.name.startswith("lightgbm") for treatment in treatments):
        return 0.0
    from equipoise.advisor.all_rows import expected_seconds

    return expected_seconds(rows, replace(context, threads=threads), total)


def _for_the_bags(bags: Sequence[Bag], sampled: int, total: int, threads: int) -> float:
    """The same, from what the boosted models took on the sample."""
    from equipoise.advisor.all_rows import SAFETY, boosting_seconds, takes_all_rows

    boosted = [bag for bag in bags if takes_all_rows(bag)]
    return SAFETY * sum(boosting_seconds(bag, sampled, total, threads) for bag in boosted)


class _Teller:
    """Says what is being done: one line that changes on a terminal, a line now and then elsewhere."""

    def __init__(self, verbose: bool | None, budget: Budget) -> None:
        self.terminal = sys.stderr.isatty()
        self.shown = self.terminal if verbose is None else verbose
        self.budget, self.last = budget, 0.0

    def __call__(self, what: str) -> None:
        now = clock.monotonic()
        if not self.shown or (not self.terminal and now - self.last < 10 and self.last):
            return
        self.last = now
        text = f"{now - self.budget.started:5.0f} s of {self.budget.seconds:.0f} s: {what}"
        print(f"\r{text:<100.100}" if self.terminal else text, end="" if self.terminal else "\n",
              file=sys.stderr, flush=True)  # fmt: skip

    def close(self) -> None:
        if self.shown and self.terminal:
            print(file=sys.stderr)
