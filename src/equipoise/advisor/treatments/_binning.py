"""Bins before weighted gradient boosting.

scikit-learn 1.8 and 1.9 look for weighted bins one percentile at a time, which takes twenty times as long as the
boosting itself (scikit-learn issue 34304). Columns that arrive with at most 255 values need no such search.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from equipoise._core.checks import FloatArray

MOST = 255


class QuantileBins(TransformerMixin, BaseEstimator):
    """Replace a column with more than 255 values by the numbers of its bins, equally filled; nan stays nan.

    The bins are those that histogram boosting makes of samples without weights.

    Examples
    --------
    >>> X = np.column_stack([np.linspace(0, 1, 1000), np.arange(1000) % 3])
    >>> binned = QuantileBins().fit_transform(X)
    >>> [len(np.unique(column)) for column in binned.T]
    [255, 3]
    """

    def fit(self, X: Any, y: Any = None) -> QuantileBins:
        table = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        self.edges_ = [_edges(column[~np.isnan(column)]) for column in table.T]
        return self

    def transform(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        table = validate_data(
            self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False, copy=True
        )
        for column, edges in enumerate(self.edges_):
            if edges is not None:
                missing = np.isnan(table[:, column])
                table[:, column] = np.searchsorted(edges, table[:, column])
                table[missing, column] = np.nan
        return np.asarray(table)


def _edges(values: FloatArray) -> FloatArray | None:
    if len(np.unique(values)) <= MOST:
        return None
    ranks = np.linspace(0, 100, MOST + 1)[1:-1]
    return np.unique(np.percentile(values, ranks, method="averaged_inverted_cdf"))


def boosting(class_weight: str | None = None, **settings: Any) -> Any:
    """scikit-learn's histogram boosting; with class weights, behind :class:`QuantileBins`."""
    model = HistGradientBoostingClassifier(class_weight=class_weight, **settings)
    return model if class_weight is None else Pipeline([("bins", QuantileBins()), ("model", model)])
