"""Which methods differ? Pairwise tests after Friedman's, corrected for their number."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from equipoise._core.checks import (
    FloatArray,
    check_choice,
    check_fraction,
    check_in_range,
    check_integer,
    check_type,
)
from equipoise._core.extras import optional
from equipoise.metrics.significance.ranks import average_ranks, check_scores

TESTS = ("ranks", "wilcoxon")
_MOST_METHODS = 500  # the work of Shaffer's correction grows with the fourth power
_CORRECTIONS = ("shaffer", "holm", "nemenyi", "none")


def _step_down(p_values: npt.ArrayLike, multipliers: npt.ArrayLike) -> FloatArray:
    """Adjusted p-values of a step-down procedure: sorted, multiplied, made monotone, capped at 1."""
    p = check_in_range("p_values", p_values, 0, 1)
    if p.ndim != 1:
        raise ValueError(f"p_values must be a vector, got shape {p.shape}")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.asarray(multipliers)), 1)
    return adjusted


def holm(p_values: npt.ArrayLike) -> FloatArray:
    """Holm's adjusted p-values: the i-th smallest of m times m − i + 1.

    Parameters
    ----------
    p_values : array of shape (tests,)
        The p-values of the tests.

    Returns
    -------
    array of shape (tests,)
        The adjusted p-values, in the order given.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = check_in_range("p_values", p_values, 0, 1)
    return _step_down(p, np.arange(p.size, 0, -1))


def true_hypotheses(n_methods: int) -> list[int]:
    """How many of the pairwise hypotheses among k methods can be true at once, S(k).

    Equality is transitive, so the true ones are the pairs within the groups of a partition:
    S(k) = ∪_j {C(j, 2) + x : x ∈ S(k − j)} (Shaffer 1986, section 4).

    >>> true_hypotheses(5)
    [0, 1, 2, 3, 4, 6, 10]
    """
    possible: list[set[int]] = [{0}]
    for k in range(1, n_methods + 1):
        possible.append({comb(j, 2) + x for j in range(1, k + 1) for x in possible[k - j]})
    return sorted(possible[n_methods])


def shaffer(p_values: npt.ArrayLike, n_methods: int) -> FloatArray:
    """Shaffer's static adjusted p-values of all pairwise comparisons among ``n_methods``.

    As Holm's, but the i-th smallest p of m is multiplied by the most hypotheses that can still be true
    when i − 1 are false, the largest element of S(k) that is at most m − i + 1.

    Parameters
    ----------
    p_values : array of shape (pairs,)
        The p-values of all pairs.
    n_methods : int
        The number of methods.

    Returns
    -------
    array of shape (pairs,)
        The adjusted p-values, in the order given.

    References
    ----------
    Shaffer (1986), procedure 1; García & Herrera (2008), section 2.2. Mondal et al., Table 2, use it.

    Examples
    --------
    >>> shaffer([0.01, 0.02, 0.03], n_methods=3).tolist()
    [0.03, 0.03, 0.03]
    """
    k = check_integer("n_methods", n_methods, low=2, high=_MOST_METHODS)
    m = comb(k, 2)
    p = check_in_range("p_values", p_values, 0, 1)
    if p.size != m:
        raise ValueError(f"p_values must be the {m} pairs of {k} methods, got {p.size}")
    possible = np.array(true_hypotheses(k))
    left = m - np.arange(m)
    return _step_down(p, possible[np.searchsorted(possible, left, side="right") - 1])


@dataclass(frozen=True)
class Comparison:
    """All pairs of methods, tested and corrected.

    Attributes
    ----------
    p_values : DataFrame
        The p-values of all pairs: a symmetric table, 1 on the diagonal.
    adjusted : DataFrame
        The same, adjusted for the number of tests.
    ranks : Series
        The mean rank of each method; 1 is best.
    n_datasets : int
        The number of data sets.
    test : str
        The test of a pair.
    correction : str
        How the p-values were adjusted.
    """

    p_values: pd.DataFrame
    adjusted: pd.DataFrame
    ranks: pd.Series[float]
    n_datasets: int
    test: str
    correction: str

    @property
    def pairs(self) -> pd.DataFrame:
        """A row per pair: ``first``, ``second``, their ranks' difference, p and adjusted p; smallest first."""
        names = list(self.ranks.index)
        rows = [
            (a, b, self.ranks[a] - self.ranks[b], self.p_values.loc[a, b], self.adjusted.loc[a, b])
            for a, b in combinations(names, 2)
        ]
        columns = ["first", "second", "rank_difference", "p_value", "adjusted"]
        return pd.DataFrame(rows, columns=columns).sort_values("p_value", ignore_index=True)


def _rank_p(ranks: FloatArray, n_datasets: int, pairs: list[tuple[int, int]]) -> FloatArray:
    """Two-sided p of z = (R_a − R_b)/√(k(k+1)/6N), Demšar (2006), section 3.2.2."""
    k = ranks.size
    gaps = np.array([ranks[a] - ranks[b] for a, b in pairs])
    return 2 * stats.norm.sf(np.abs(gaps) / np.sqrt(k * (k + 1) / (6 * n_datasets)))


def _p_values(
    test: str, table: pd.DataFrame, ranks: pd.Series[float], pairs: list[tuple[int, int]]
) -> FloatArray:
    if test == "ranks":
        return _rank_p(np.asarray(ranks, dtype=np.float64), len(table), pairs)
    scores = table.to_numpy()
    gaps = [scores[:, a] - scores[:, b] for a, b in pairs]
    return np.array([float(stats.wilcoxon(gap).pvalue) if gap.any() else 1.0 for gap in gaps])


def _square(values: FloatArray, pairs: list[tuple[int, int]], names: pd.Index[Any]) -> pd.DataFrame:
    out = np.eye(len(names))
    for (a, b), value in zip(pairs, values, strict=True):
        out[a, b] = out[b, a] = value
    return pd.DataFrame(out, index=names, columns=names)


def _nemenyi(table: pd.DataFrame, pairs: list[tuple[int, int]]) -> FloatArray:
    library = optional("scikit_posthocs", "Nemenyi's test needs scikit-posthocs")
    found = library.posthoc_nemenyi_friedman(table.to_numpy()).to_numpy()
    return np.array([found[a, b] for a, b in pairs])


def pairwise(
    scores: npt.ArrayLike | pd.DataFrame,
    *,
    correction: str = "shaffer",
    test: str = "ranks",
    greater_is_better: bool = True,
) -> Comparison:
    """Compare all pairs of methods over data sets.

    Parameters
    ----------
    scores : DataFrame or array
        A row per data set, a column per method.
    correction : {"shaffer", "holm", "nemenyi", "none"}
        ``"shaffer"`` (static), ``"holm"``, ``"nemenyi"`` (of the ranks, by scikit-posthocs) or ``"none"``.
    test : {"ranks", "wilcoxon"}
        ``"ranks"``: the difference of mean ranks, as post-hoc to Friedman's test; ``"wilcoxon"``: signed
        ranks of each pair alone, which does not depend on which other methods take part.
    greater_is_better : bool
        Whether larger scores are better.

    Returns
    -------
    Comparison
        The p-values of all pairs, the adjusted ones and the mean ranks.

    References
    ----------
    Demšar (2006), Statistical comparisons of classifiers over multiple data sets, section 3.2.2;
    García & Herrera (2008).

    Examples
    --------
    >>> result = pairwise([[3, 2, 1], [3, 2, 1], [3, 1, 2], [3, 2, 1]], correction="holm")
    >>> result.pairs.loc[0, "second"], round(result.pairs.loc[0, "adjusted"], 3)
    (np.int64(2), np.float64(0.04))
    """
    check_choice("correction", correction, _CORRECTIONS)
    check_choice("test", test, TESTS)
    if correction == "nemenyi" and test != "ranks":
        raise ValueError(f"correction 'nemenyi' goes with the test 'ranks', got {test!r}")
    table = check_scores(scores)
    n, k = table.shape
    pairs = list(combinations(range(k), 2))
    ranks = average_ranks(table, greater_is_better=greater_is_better)
    raw = _p_values(test, table, ranks, pairs)
    adjust: dict[str, Callable[[], FloatArray]] = {
        "shaffer": lambda: shaffer(raw, k),
        "holm": lambda: holm(raw),
        "nemenyi": lambda: _nemenyi(table, pairs),
        "none": lambda: raw,
    }
    adjusted = _square(adjust[correction](), pairs, table.columns)
    return Comparison(_square(raw, pairs, table.columns), adjusted, ranks, n, test, correction)


def versus_control(
    scores: npt.ArrayLike | pd.DataFrame,
    control: Hashable,
    *,
    test: str = "ranks",
    greater_is_better: bool = True,
) -> pd.DataFrame:
    """Compare every other method with ``control``, corrected by Holm for their k − 1 comparisons.

    Parameters
    ----------
    scores : DataFrame or array
        A row for each data set, a column for each method.
    control : label
        The column that all others are compared with.
    test : {"ranks", "wilcoxon"}
        As in :func:`pairwise`.
    greater_is_better : bool
        Whether larger scores are better.

    Returns
    -------
    DataFrame
        A row for each other method: the difference of mean ranks, p and adjusted p, smallest p first.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"new": [3, 3, 3, 3], "old": [2, 2, 1, 2], "plain": [1, 1, 2, 1]})
    >>> versus_control(table, "new").index.tolist()
    ['plain', 'old']
    """
    check_choice("test", test, TESTS)
    table = check_scores(scores)
    names: list[Any] = list(table.columns)
    at = names.index(check_choice("control", control, names))
    pairs = [(at, other) for other in range(len(names)) if other != at]
    ranks = average_ranks(table, greater_is_better=greater_is_better)
    p = _p_values(test, table, ranks, pairs)
    others = [names[b] for _, b in pairs]
    columns = {
        "rank_difference": [ranks.iloc[at] - ranks.iloc[b] for _, b in pairs],
        "p_value": p,
        "adjusted": holm(p),
    }
    return pd.DataFrame(columns, index=pd.Index(others, name="method")).sort_values("p_value")


def critical_difference(n_methods: int, n_datasets: int, *, alpha: float = 0.05) -> float:
    """Nemenyi's critical difference of mean ranks, q_α·√(k(k+1)/6N).

    q_α is the quantile of the studentized range over √2 (Demšar 2006, section 3.2.2 and Table 5).

    Parameters
    ----------
    n_methods : int
        The number of methods.
    n_datasets : int
        The number of data sets.
    alpha : float
        The level of significance.

    Returns
    -------
    float
        The least difference of mean ranks that is significant.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    k, n = check_integer("n_methods", n_methods, low=2), check_integer("n_datasets", n_datasets, low=2)
    level = float(check_fraction("alpha", alpha))
    quantile = float(stats.studentized_range.ppf(1 - level, k, np.inf)) / np.sqrt(2)
    return float(quantile * np.sqrt(k * (k + 1) / (6 * n)))


def rank_groups(comparison: Comparison, *, alpha: float = 0.05) -> list[tuple[Any, ...]]:
    """The bars of a critical-difference diagram: largest runs of methods, by rank, of which no pair differs.

    Parameters
    ----------
    comparison : Comparison
        What :func:`pairwise` returned.
    alpha : float
        The level of significance.

    Returns
    -------
    list of tuple
        The methods of each bar, the best first.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(40, 3)) + [2.0, 0.0, 0.1]
    >>> rank_groups(pairwise(scores))
    [(2, 1)]
    """
    level = float(check_fraction("alpha", alpha))
    order = check_type("comparison", comparison, Comparison).ranks.sort_values(kind="stable").index
    same = comparison.adjusted.loc[order, order].to_numpy() >= level
    groups: list[tuple[int, int]] = []
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and same[start:stop, stop].all():
            stop += 1
        if stop - start > 1 and (not groups or stop > groups[-1][1]):
            groups.append((start, stop))
    return [tuple(order[start:stop]) for start, stop in groups]
