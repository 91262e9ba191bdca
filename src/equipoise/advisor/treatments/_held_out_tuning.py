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
    random_state : int
        Which quarter of every class only the choice of λ and threshold, for balanced accuracy, sees.
    """

    def __init__(self, classifier: ConditionalClassifier, random_state: int = 0) -> None:
        self.classifier = classifier
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> HeldOutTuning:
        X_fit, X_tune, y_fit, y_tune = train_test_split(
            X, y, test_size=0.25, stratify=y, random_state=self.random_state
        )
        self.classifier_ = clone(self.classifier).fit(X_fit, y_fit)
        self.classes_ = self.classifier_.classes_
        self.classifier_.tune(X_tune, y_tune, "balanced_accuracy")
        return self

    def predict(self, X: Any) -> Any:
        return self.classifier_.predict(X)

    def predict_proba(self, X: Any) -> Any:
        return self.classifier_.predict_proba(X)
