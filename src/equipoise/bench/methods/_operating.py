"""A conditional classifier that chooses its operating point on a part of its training data."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import train_test_split

from equipoise.classifiers import ConditionalClassifier


class HeldOutTuning(ClassifierMixin, BaseEstimator):
    """Fit on most rows, then :meth:`~equipoise.classifiers.ConditionalClassifier.tune` on the others.

    Parameters
    ----------
    classifier : ConditionalClassifier
    metric : str
        What λ and the threshold are chosen for.
    held_out : float
        The share of rows, of every class, that only the choice sees.
    random_state : int
    """

    def __init__(
        self,
        classifier: ConditionalClassifier,
        metric: str = "balanced_accuracy",
        held_out: float = 0.25,
        random_state: int = 0,
    ) -> None:
        self.classifier = classifier
        self.metric = metric
        self.held_out = held_out
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> HeldOutTuning:
        X_fit, X_tune, y_fit, y_tune = train_test_split(
            X, y, test_size=self.held_out, stratify=y, random_state=self.random_state
        )
        self.classifier_ = clone(self.classifier).fit(X_fit, y_fit)
        self.classes_ = self.classifier_.classes_
        self.classifier_.tune(X_tune, y_tune, self.metric)
        return self

    def predict(self, X: Any) -> Any:
        return self.classifier_.predict(X)

    def predict_proba(self, X: Any) -> Any:
        return self.classifier_.predict_proba(X)
