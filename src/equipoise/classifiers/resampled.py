"""An imbalanced-learn sampler before a classifier, with honest probabilities after."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import assert_all_finite, column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from equipoise._core.checks import FloatArray
from equipoise._core.priors import correct_prior, weighted_prior
from equipoise.classifiers.ledger import resolve_prior


def _has(name: str) -> Any:
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self._estimator()), name))


class ResampledClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Resample, fit, and correct the probabilities for the prior that the resampling changed.

    A classifier that was fitted on resampled data believes in the resampled class shares: its
    probabilities for the minority are too high. This one writes down the training prior and corrects by
    Bayes' rule, so that ``predict_proba`` speaks about the data as they are. ``predict`` is the
    classifier's own decision, which is what the resampling was for.

    Parameters
    ----------
    estimator : classifier, default=LogisticRegression()
        Fitted on the resampled data.
    sampler : object with ``fit_resample``, default=RandomOverSampler()
        Any sampler of imbalanced-learn or of Equipoise.
    random_state : int, RandomState or None
        Given to the default sampler only.

    Attributes
    ----------
    estimator_, sampler_ : estimators
        The fitted ones.
    classes_ : ndarray
        The labels, sorted.
    data_prior_ : ndarray
        Class shares of the data.
    training_prior_ : ndarray
        Class shares after resampling.

    References
    ----------
    Saerens, Latinne, Decaestecker: Adjusting the Outputs of a Classifier to New a Priori Probabilities,
    Neural Computation 14 (2002), Eq 2.4.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(2000, weights=[0.9], class_sep=0.5, random_state=0)
    >>> clf = ResampledClassifier(random_state=0).fit(X, y)
    >>> clf.training_prior_
    array([0.5, 0.5])
    >>> [float(clf.predict_proba(X, prior=prior)[:, 1].mean().round(1)) for prior in ("data", "train")]
    [0.1, 0.2]
    """

    def __init__(self, estimator: Any = None, sampler: Any = None, *, random_state: Any = None) -> None:
        self.estimator = estimator
        self.sampler = sampler
        self.random_state = random_state

    def _estimator(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> ResampledClassifier:
        """Resample and fit.

        Parameters
        ----------
        X : array-like of shape (n, …)
            The rows.
        y : array-like of shape (n,)
            Their labels.

        Returns
        -------
        ResampledClassifier
            The fitted classifier itself.
        """
        from imblearn.over_sampling import RandomOverSampler

        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        # The sampler and the estimator check values in their own ways; here only names are recorded.
        validate_data(self, X, y, skip_check_array=True)
        self.sampler_ = (
            RandomOverSampler(random_state=self.random_state) if self.sampler is None else clone(self.sampler)
        )
        if not hasattr(self.sampler_, "fit_resample"):
            raise TypeError(f"sampler must have fit_resample, got {self.sampler_!r}")
        X_new, y_new = self.sampler_.fit_resample(X, y)
        self.estimator_ = clone(self._estimator()).fit(X_new, y_new)
        self.classes_ = self.estimator_.classes_
        self.data_prior_ = self._shares(y)
        self.training_prior_ = self._shares(y_new)
        return self

    def _shares(self, y: npt.ArrayLike) -> FloatArray:
        codes = np.searchsorted(self.classes_, np.asarray(y).ravel())
        return weighted_prior(codes, len(self.classes_))

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The fitted classifier's decision.

        Parameters
        ----------
        X : array-like of shape (n, …)
            The rows.

        Returns
        -------
        array of shape (n,)
            The labels.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))

    @_has("predict_proba")
    def predict_proba(self, X: npt.ArrayLike, prior: Any = "data") -> FloatArray:
        """Class probabilities under a prior.

        Parameters
        ----------
        X : array-like of shape (n, …)
            The rows.
        prior : {"data", "train"} or array
            The data's class shares, the resampled ones (the classifier's own answer), or any others.

        Returns
        -------
        array of shape (n, classes)
            The probabilities.
        """
        check_is_fitted(self)
        wanted = resolve_prior(prior, data=self.data_prior_, trained=self.training_prior_)
        proba = np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)
        if np.array_equal(wanted, self.training_prior_):
            return proba
        return correct_prior(proba, self.training_prior_, wanted)

    @_has("decision_function")
    def decision_function(self, X: npt.ArrayLike) -> FloatArray:
        """The fitted classifier's scores.

        Parameters
        ----------
        X : array-like of shape (n, …)
            The rows.

        Returns
        -------
        array
            The scores of the fitted classifier.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.decision_function(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._estimator()).input_tags.sparse
        return tags
