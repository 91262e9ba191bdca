"""A comparison in one call."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import pandas as pd

from equipoise.advisor._advisor import Advisor


def compare(
    X: npt.ArrayLike | pd.DataFrame,
    y: npt.ArrayLike,
    *,
    groups: npt.ArrayLike | None = None,
    time: npt.ArrayLike | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Compare treatments on the same held-out rows.

    Parameters
    ----------
    X, y : array or DataFrame, and labels
        Text columns, dates and missing values are fine.
    groups, time : arrays, optional
        As in :meth:`Advisor.fit`.
    **options : Any
        Parameters of `Advisor`, such as ``treatments`` (names or scikit-learn classifiers), ``cost``, ``budget``.
        By default each treatment is fitted once, at its defaults (``trials=0``).

    Returns
    -------
    DataFrame
        One row a treatment, the best first: figures on held-out rows, their standard errors, seconds and the
        weight in the ensemble.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(300, weights=[0.9], random_state=0)
    >>> sorted(compare(X, y, treatments=["logistic", GaussianNB()]).index)
    ['GaussianNB', 'always-positive', 'ensemble', 'logistic', 'never-positive']
    """
    return Advisor(**{"trials": 0, **options}).fit(X, y, groups=groups, time=time).leaderboard_
