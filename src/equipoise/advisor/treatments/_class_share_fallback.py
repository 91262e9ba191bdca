"""A classifier that answers with the class shares where another one cannot be fitted."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier


class ClassShareFallback(ClassifierMixin, BaseEstimator):
    """Fit ``estimator``; if it raises a ValueError, warn and answer with the shares of the classes.

    RUSBoost refuses data on which its first tree is worse than chance, and a threshold cannot be tuned on constant
    scores. Such data are hard for everybody: a failed cell would take them out of the comparison of all methods.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> with warnings.catch_warnings(action="ignore"):
    ...     model = ClassShareFallback(LogisticRegression(C=-1)).fit([[0], [1], [2], [3]], [0, 0, 0, 1])
    >>> model.predict_proba([[3]])
    array([[0.75, 0.25]])
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> ClassShareFallback:
        try:
            self.fitted_ = clone(self.estimator).fit(X, y)
        except ValueError as error:
            text = f"{type(self.estimator).__name__} could not be fitted and answers with the class shares: {error}"
            warnings.warn(text, UserWarning, stacklevel=2)
            self.fitted_ = DummyClassifier(strategy="prior").fit(X, y)
        self.classes_ = self.fitted_.classes_
        return self

    def predict(self, X: Any) -> Any:
        return self.fitted_.predict(X)

    def predict_proba(self, X: Any) -> Any:
        return self.fitted_.predict_proba(X)
