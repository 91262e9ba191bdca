"""Ranks of methods over data sets, and Friedman's test of whether they differ at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from equipoise._core.checks import FloatArray, check_array, check_same_length


def check_scores(scores: npt.ArrayLike | pd.DataFrame, fewest_methods: int = 2) -> pd.DataFrame:
    """A finite table with at least two rows (data sets) and so many columns (methods)."""
    values = check_array("scores", scores)
    if values.ndim != 2:
        raise ValueError(f"scores must be a table of data sets by methods, got shape {values.shape}")
    table = scores if isinstance(scores, pd.DataFrame) else pd.DataFrame(values)
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise ValueError(f"scores must have a column a method, got twice {twice!r}")
    if len(table) < 2:
        raise ValueError(f"scores must have at least 2 rows (data sets), got {len(table)}")
    if table.shape[1] < fewest_methods:
        raise ValueError(
            f"scores must have at least {fewest_methods} columns (methods), got {table.shape[1]}"
        )
    return pd.DataFrame(values, index=table.index, columns=table.columns)


def check_pair(
    first: npt.ArrayLike, second: npt.ArrayLike, *, paired: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Two vectors of scores."""
    a, b = check_array("first", first), check_array("second", second)
    for name, values in (("first", a), ("second", b)):
        if values.ndim != 1:
            raise ValueError(f"{name} must be a vector of scores, got the shape {values.shape}")
    if paired:
        check_same_length(first=a, second=b)
    return a, b


def average_ranks(
    scores: npt.ArrayLike | pd.DataFrame, *, greater_is_better: bool = True
) -> pd.Series[float]:
    """Mean rank of each method over the data sets; 1 is best, ties share.

    Parameters
    ----------
    scores : DataFrame or array
        A row for each data set, a column for each method.
    greater_is_better : bool
        Whether larger scores are better.

    Returns
    -------
    Series
        The mean rank of each method.

    Examples
    --------
    >>> average_ranks([[0.9, 0.8, 0.8], [0.7, 0.9, 0.6]]).tolist()
    [1.5, 1.75, 2.75]
    """
    table = check_scores(scores)
    return table.rank(axis=1, ascending=not greater_is_better).mean()


@dataclass(frozen=True)
class Friedman:
    """Friedman's χ² and Iman & Davenport's less conservative F.

    Attributes
    ----------
    statistic : float
        χ² with k − 1 degrees of freedom.
    p_value : float
        The p-value of χ².
    f_statistic : float
        (N − 1)χ²/(N(k − 1) − χ²), F with k − 1 and (k − 1)(N − 1) degrees of freedom.
    f_p_value : float
        The p-value of F.
    ranks : Series
        The mean rank of each of the k methods over the N data sets.
    n_datasets : int
        The number N of data sets.
    """

    statistic: float
    p_value: float
    f_statistic: float
    f_p_value: float
    ranks: pd.Series[float]
    n_datasets: int


def friedman(
    scores: npt.ArrayLike | pd.DataFrame, *, greater_is_better: bool = True, correct_ties: bool = True
) -> Friedman:
    """Friedman's test that all methods rank the same, with Iman & Davenport's F.

    Parameters
    ----------
    scores : DataFrame or array
        A row per data set, a column per method, at least three.
    greater_is_better : bool
        Whether larger scores are better.
    correct_ties : bool
        Correct χ² for ties, as scipy does. Demšar (2006) does not.

    Returns
    -------
    Friedman
        Both statistics, their p-values and the mean ranks.

    References
    ----------
    Friedman (1937); Iman & Davenport (1980); Demšar (2006), section 3.2.2.

    Examples
    --------
    >>> result = friedman([[3, 2, 1], [3, 2, 1], [3, 1, 2], [3, 2, 1]])
    >>> result.statistic, round(result.p_value, 4)
    (6.5, 0.0388)
    """
    table = check_scores(scores, fewest_methods=3)
    n, k = table.shape
    ranks = average_ranks(table, greater_is_better=greater_is_better)
    if bool(table.eq(table.iloc[:, 0], axis=0).to_numpy().all()):
        statistic = 0.0  # all tied everywhere: the correction would divide zero by zero
    elif correct_ties:
        statistic = float(stats.friedmanchisquare(*table.to_numpy().T).statistic)
    else:
        statistic = float(12 * n / (k * (k + 1)) * ((ranks**2).sum() - k * (k + 1) ** 2 / 4))
    rest = n * (k - 1) - statistic
    f = (n - 1) * statistic / rest if rest > 1e-12 * n * k else np.inf
    return Friedman(
        statistic,
        float(stats.chi2.sf(statistic, k - 1)),
        float(f),
        float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))),
        ranks,
        n,
    )
