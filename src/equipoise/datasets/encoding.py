"""Columns of a table as numbers that a learner can take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder
from sklearn.utils.validation import check_is_fitted

from equipoise._core.checks import FloatArray, IntArray, check_members
from equipoise.datasets.schema import KINDS

MOST_CODED = 20  # a column with more categories than this is encoded by the class shares seen with each
_HASHED_WORDS = 1 << 14
_COLUMNS_AT_ONCE = 8  # of a large array, so that no line of memory is read twice
_ROWS_AT_ONCE = 1 << 14
_SECONDS_A_DAY = 86400.0
_PERIODS = {"month": 12.0, "weekday": 7.0, "hour": 24.0}
_DAYS_ROUND = {"month": 365.0, "weekday": 7.0, "hour": 1.0}  # until such a part comes round again


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn the columns of a table into floats, inside a pipeline and without seeing test rows.

    Parameters
    ----------
    kinds
        The kind of each column (``DataTable.kinds``): ``"number"``, ``"category"``, ``"text"`` or ``"date"``.
    for_trees
        For trees and boosting, numbers stay as they are (NaN included) and categories become codes, the commonest
        first. Otherwise (linear models, networks, neighbors) everything is brought to one scale: the median and
        an indicator stand for a missing number, and categories become one column each.
    random_state
        Seed of the folds that encode columns with many categories and of the text's projection.

    Attributes
    ----------
    n_features_in_
        Columns seen by ``fit``.
    n_features_out_
        Columns that ``transform`` returns.
    categorical_features_
        Which of the returned columns are codes of categories (``for_trees`` only).

    Notes
    -----
    Columns with more than 20 categories become the class shares seen with each category, in ``fit_transform``
    from other folds than the row's own. Prose becomes 30 components of its weighted words. A date becomes its
    year, month, weekday, hour and seconds, as far as they differ and have come round; where everything is on one
    scale, parts that come round again are points on a circle. A date outside the range seen in ``fit`` counts as
    the nearest one in it, so that a trend is not drawn on into a time that nobody has seen.

    Examples
    --------
    >>> rows = pd.DataFrame({"age": [30.0, np.nan, 41.0, 29.0], "town": ["Ulm", "Bonn", "Ulm", "Kiel"]})
    >>> encoder = TableEncoder(("number", "category"), for_trees=True).fit(rows, [0, 1, 0, 1])
    >>> encoder.transform(rows)[:2].tolist()
    [[30.0, 0.0], [nan, 1.0]]
    >>> TableEncoder(("number", "category"), for_trees=False).fit_transform(rows).shape
    (4, 3)
    """

    def __init__(self, kinds: Sequence[str], for_trees: bool = True, random_state: int = 0) -> None:
        self.kinds = kinds
        self.for_trees = for_trees
        self.random_state = random_state

    def fit(self, X: Any, y: npt.ArrayLike | None = None) -> TableEncoder:
        """Learn categories, medians, scales and words from ``X``."""
        self._prepare(X, y)
        if self.parts_ is not None:
            self.parts_.fit(self._columns_of(X), y)
        return self._finish(X)

    def fit_transform(self, X: Any, y: npt.ArrayLike | None = None, **params: Any) -> npt.NDArray[Any]:
        """Fit and encode the same rows; many categories are encoded from other folds than a row's own."""
        self._prepare(X, y)
        if self.parts_ is None:
            return self._finish(X).transform(X)
        encoded = self.parts_.fit_transform(self._columns_of(X), y)
        self._finish(X)
        return np.asarray(encoded, dtype=np.float64)

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Encode rows as a float array, with NaN only where ``for_trees``."""
        check_is_fitted(self, "n_features_in_")
        if self.parts_ is None:
            return np.asarray(X)
        return np.asarray(self.parts_.transform(self._columns_of(X)), dtype=np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names of the encoded columns."""
        check_is_fitted(self, "n_features_in_")
        if self.parts_ is None:
            return np.array(self.feature_names_in_, dtype=object)
        if isinstance(self.parts_, ScaledNumbers):
            return self.parts_.get_feature_names_out(self.feature_names_in_)
        return np.array(
            [name.split("__", 1)[1] for name in self.parts_.get_feature_names_out()], dtype=object
        )

    def _columns_of(self, X: Any) -> Any:
        if isinstance(X, pd.DataFrame) or isinstance(self.parts_, ScaledNumbers):
            return X
        return pd.DataFrame(X, columns=list(self.feature_names_in_))

    def _prepare(self, X: Any, y: npt.ArrayLike | None) -> None:
        kinds = tuple(self.kinds)
        check_members("kinds", set(kinds), KINDS)
        if X.shape[1] != len(kinds):
            raise ValueError(f"X must have {len(kinds)} columns, one for each of kinds, got {X.shape[1]}")
        named = isinstance(X, pd.DataFrame)
        names = [str(c) for c in X.columns] if named else [f"column {i}" for i in range(len(kinds))]
        self.feature_names_in_ = np.array(names, dtype=object)
        self.parts_: Any = None
        if not set(kinds) <= {"number"}:
            self.parts_ = self._build(self._columns_of(X), kinds, y)
        elif not self.for_trees:
            self.parts_ = ScaledNumbers()

    def _finish(self, X: Any) -> TableEncoder:
        self.n_features_in_ = int(X.shape[1])
        self.n_features_out_ = len(self.get_feature_names_out())
        places = getattr(self.parts_, "output_indices_", {})
        self.categorical_features_: IntArray = np.arange(self.n_features_out_)[places.get("code", slice(0))]
        return self

    def _build(self, X: pd.DataFrame, kinds: tuple[str, ...], y: npt.ArrayLike | None) -> ColumnTransformer:
        of_kind: dict[str, list[str]] = {kind: [] for kind in (*KINDS, "few")}
        for name, kind in zip(X.columns, kinds, strict=True):
            few = kind == "category" and (y is None or X[name].nunique() <= MOST_CODED)
            of_kind["few" if few else kind].append(name)
        trees, seed = self.for_trees, self.random_state
        dates = DateParts() if trees else make_pipeline(DateParts(circular=True), ScaledNumbers())
        coded = ("code", _codes(X[of_kind["few"]])) if trees else ("is", _one_column_each())
        parts: list[tuple[str, Any, list[str]]] = [
            ("number", "passthrough" if trees else ScaledNumbers(), of_kind["number"]),
            ("date", dates, of_kind["date"]),
            (*coded, of_kind["few"]),
            ("share", _class_shares(y, seed, trees), of_kind["category"]),
            ("text", TextParts(random_state=seed), of_kind["text"]),
        ]
        return ColumnTransformer([part for part in parts if part[2]], sparse_threshold=0.0)


class ScaledNumbers(TransformerMixin, BaseEstimator):
    """Numbers with mean 0 and deviation 1, the median for a missing one, and an indicator beside it.

    Examples
    --------
    >>> rows = np.array([[1.0, 5.0], [3.0, np.nan], [5.0, 7.0]])
    >>> ScaledNumbers().fit_transform(rows).round(2).tolist()
    [[-1.22, -1.22, 0.0], [0.0, 0.0, 1.0], [1.22, 1.22, 0.0]]
    """

    def fit(self, X: Any, y: npt.ArrayLike | None = None) -> ScaledNumbers:
        """Learn the median, the mean and the deviation of each column."""
        rows = np.asarray(X)
        self.n_features_in_ = rows.shape[1]
        self.medians_, self.means_, self.deviations_ = np.zeros((3, rows.shape[1]))
        gaps = np.zeros(rows.shape[1], dtype=bool)
        for start in range(0, rows.shape[1], _COLUMNS_AT_ONCE):
            columns = np.array(rows[:, start : start + _COLUMNS_AT_ONCE].T, dtype=np.float64, order="C")
            for i, column in enumerate(columns, start):
                missing = np.isnan(column)
                gaps[i] = missing.any()
                if not missing.all():
                    self.medians_[i] = np.median(column[~missing] if gaps[i] else column)
                column[missing] = self.medians_[i]
                self.means_[i], self.deviations_[i] = column.mean(), column.std()
        self.deviations_[self.deviations_ == 0] = 1.0
        self.with_gaps_ = np.flatnonzero(gaps)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Scaled columns, then one column of 0 and 1 for each that had missing values in ``fit``."""
        check_is_fitted(self, "medians_")
        rows, width = np.asarray(X), self.n_features_in_
        scaled = np.empty((len(rows), width + len(self.with_gaps_)))
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            part = rows[some].astype(np.float64)
            missing = np.isnan(part)
            np.copyto(part, self.medians_, where=missing)
            scaled[some, :width] = (part - self.means_) / self.deviations_
            scaled[some, width:] = missing[:, self.with_gaps_]
        return scaled

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """The names of the columns, then names such as ``income is missing``."""
        check_is_fitted(self, "medians_")
        given = _given_names(input_features, self.n_features_in_)
        return np.array([*given, *(f"{given[i]} is missing" for i in self.with_gaps_)], dtype=object)


class DateParts(TransformerMixin, BaseEstimator):
    """Year, month, weekday, hour and seconds of dates given as seconds since 1970 (UTC).

    Parameters
    ----------
    circular
        Give parts that come round again as points on a circle (sine and cosine), for models that need distances.

    Examples
    --------
    >>> seconds = np.array([[0.0], [86400.0 * 366 + 3600]])
    >>> encoder = DateParts().fit(seconds)
    >>> encoder.get_feature_names_out(["seen"]).tolist()
    ['seen year', 'seen weekday', 'seen hour', 'seen seconds']
    >>> encoder.transform(seconds)[1].tolist()
    [1971.0, 5.0, 1.0, 31626000.0]
    """

    def __init__(self, circular: bool = False) -> None:
        self.circular = circular

    def fit(self, X: Any, y: npt.ArrayLike | None = None) -> DateParts:
        """Find the range of the dates, and the parts that differ between the rows and have come round."""
        seconds = np.asarray(X, dtype=np.float64)
        self.n_features_in_ = seconds.shape[1]
        self.parts_: list[list[str]] = []
        self.ranges_: list[tuple[float, float]] = []
        for column in seconds.T:
            known = column[np.isfinite(column)]
            low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
            days = (high - low) / _SECONDS_A_DAY
            differing = [
                name
                for name, values in _date_parts(known).items()
                if len(values) and np.ptp(values) > 0 and days >= _DAYS_ROUND.get(name, 0)
            ]
            self.parts_.append(differing or ["seconds"])
            self.ranges_.append((low, high))
        return self

    def transform(self, X: Any) -> FloatArray:
        """The parts of all columns, NaN where a date is missing."""
        check_is_fitted(self, "parts_")
        columns: list[FloatArray] = []
        dates = np.asarray(X, dtype=np.float64).T
        ranges = getattr(self, "ranges_", [(-np.inf, np.inf)] * len(dates))  # models saved earlier have none
        for seconds, names, seen in zip(dates, self.parts_, ranges, strict=True):
            near = _date_parts(np.clip(seconds, *seen))
            parts = {**_date_parts(seconds), "year": near["year"], "seconds": near["seconds"]}
            for name in names:
                columns += self._on_circle(name, parts[name])
        return np.column_stack(columns)

    def _on_circle(self, name: str, values: FloatArray) -> list[FloatArray]:
        if not self.circular or name not in _PERIODS:
            return [values]
        angle = 2 * np.pi * values / _PERIODS[name]
        return [np.sin(angle), np.cos(angle)]

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names such as ``sold weekday``."""
        check_is_fitted(self, "parts_")
        given = _given_names(input_features, self.n_features_in_)
        names = []
        for column, parts in zip(given, self.parts_, strict=True):
            for part in parts:
                ends = (" sine", " cosine") if self.circular and part in _PERIODS else ("",)
                names += [f"{column} {part}{end}" for end in ends]
        return np.array(names, dtype=object)


class TextParts(TransformerMixin, BaseEstimator):
    """Components of the weighted words and word pairs of each text.

    Parameters
    ----------
    n_components
        Components of each column, at most.
    random_state
        Seed of the projection.

    Examples
    --------
    >>> texts = np.array([["lost card abroad"], ["card stolen"], ["new address"]], dtype=object)
    >>> TextParts(2).fit_transform(texts).shape
    (3, 2)
    """

    def __init__(self, n_components: int = 30, random_state: int = 0) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: npt.ArrayLike | None = None) -> TextParts:
        """Learn which words are rare and which occur together."""
        columns = np.asarray(X, dtype=object)
        self.n_features_in_ = columns.shape[1]
        size = min(self.n_components, max(len(columns) - 1, 1))
        self.projections_: list[Pipeline] = [
            make_pipeline(
                HashingVectorizer(n_features=_HASHED_WORDS, alternate_sign=False, ngram_range=(1, 2)),
                TfidfTransformer(sublinear_tf=True),
                TruncatedSVD(size, random_state=self.random_state),
            ).fit(texts)
            for texts in columns.T
        ]
        return self

    def transform(self, X: Any) -> FloatArray:
        """The components of all columns."""
        check_is_fitted(self, "projections_")
        columns = np.asarray(X, dtype=object).T
        return np.column_stack(
            [p.transform(texts) for p, texts in zip(self.projections_, columns, strict=True)]
        )

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names such as ``reason text 3``."""
        check_is_fitted(self, "projections_")
        sizes = [len(projection[-1].components_) for projection in self.projections_]
        given = _given_names(input_features, len(sizes))
        names = [f"{name} text {i + 1}" for name, size in zip(given, sizes, strict=True) for i in range(size)]
        return np.array(names, dtype=object)


def _given_names(input_features: Any, count: int) -> Any:
    return [f"x{i}" for i in range(count)] if input_features is None else input_features


def _date_parts(seconds: FloatArray) -> dict[str, FloatArray]:
    days = np.floor(seconds / _SECONDS_A_DAY)
    known = np.isfinite(days)
    months = np.full(len(days), np.nan)
    months[known] = days[known].astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    years = np.floor(months / 12)
    return {
        "year": years + 1970,
        "month": months - 12 * years + 1,
        "weekday": (days + 3) % 7,  # 1970 began on a Thursday; Monday is 0
        "hour": np.floor((seconds - days * _SECONDS_A_DAY) / 3600),
        "seconds": seconds,
    }


def _codes(X: pd.DataFrame) -> OrdinalEncoder:
    """Codes by frequency; a category that was not seen is missing."""
    by_frequency = [X[name].value_counts().index.to_numpy(dtype=object) for name in X.columns]
    return OrdinalEncoder(
        categories=by_frequency, handle_unknown="use_encoded_value", unknown_value=np.nan, dtype=np.float64
    )


def _one_column_each() -> OneHotEncoder:
    return OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=5, max_categories=100, sparse_output=False
    )


def _class_shares(y: npt.ArrayLike | None, seed: int, for_trees: bool) -> Any:
    counts = [1] if y is None else np.unique(np.asarray(y), return_counts=True)[1]
    smallest = int(np.min(counts))
    if smallest < 2:
        folds: Any = KFold(2, shuffle=True, random_state=seed)
    else:
        folds = StratifiedKFold(min(5, smallest), shuffle=True, random_state=seed)
    major, minor = (int(part) for part in sklearn.__version__.split(".")[:2])
    encoder = TargetEncoder(cv=folds) if (major, minor) >= (1, 9) else TargetEncoder(random_state=seed)
    return encoder if for_trees else make_pipeline(encoder, ScaledNumbers())
