"""How large is a difference? Effect sizes, and wins, ties and losses."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import permutations

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from equipoise._core.checks import check_in_range
from equipoise.metrics.significance.ranks import check_pair, check_scores


def vargha_delaney(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Vargha & Delaney's A: the chance that a score of the first exceeds one of the second, ties one half.

    Parameters
    ----------
    first : array
        The scores of the first method.
    second : array
        The scores of the second method; their number may differ.

    Returns
    -------
    float
        The chance, from 0 to 1.

    Examples
    --------
    >>> vargha_delaney([3, 4, 5], [1, 2, 3])
    0.944...
    """
    a, b = check_pair(first, second, paired=False)
    ranks = stats.rankdata(np.concatenate([a, b]))[: a.size].sum()
    return float((ranks - a.size * (a.size + 1) / 2) / (a.size * b.size))


def cliffs_delta(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Cliff's delta: the chance that the first exceeds the second less that of the reverse, 2A − 1.

    Parameters
    ----------
    first : array
        The scores of the first method.
    second : array
        The scores of the second method; their number may differ.

    Returns
    -------
    float
        The effect size; positive where the first method scores higher.

    Examples
    --------
    >>> cliffs_delta([1, 2], [1, 2])
    0.0
    """
    return 2 * vargha_delaney(first, second) - 1


def cohens_d(first: npt.ArrayLike, second: npt.ArrayLike, *, paired: bool = True) -> float:
    """Cohen's d: the mean difference in standard deviations, of the differences (``paired``) or pooled.

    Infinite if the mean differs and nothing varies; 0 if nothing differs.

    Parameters
    ----------
    first : array of shape (n,)
        The scores of the first method.
    second : array of shape (n,)
        The scores of the second method.
    paired : bool
        Whether the scores come in pairs; then the deviation is that of the differences, otherwise the
        pooled one.

    Returns
    -------
    float
        The effect size; positive where the first method scores higher.

    Examples
    --------
    >>> cohens_d([2, 4, 6], [1, 2, 3])
    2.0
    """
    a, b = check_pair(first, second, paired=paired)
    for name, values in (("first", a), ("second", b)):
        if values.size < 2:
            raise ValueError(f"{name} must have at least 2 scores, got {values.size}")
    gap = float(a.mean() - b.mean())
    if paired:
        spread = float((a - b).std(ddof=1))
    else:
        squares = ((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum()
        spread = float(np.sqrt(squares / (a.size + b.size - 2)))
    if spread > 1e-12 * max(1.0, abs(gap)):
        return gap / spread
    return float(np.sign(gap) * np.inf) if gap else 0.0


def rank_biserial(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Matched-pairs rank-biserial correlation: (W₊ − W₋)/(W₊ + W₋) of Wilcoxon's signed ranks without zeros.

    Parameters
    ----------
    first : array of shape (n,)
        The scores of the first method.
    second : array of shape (n,)
        The scores of the second method.

    Returns
    -------
    float
        The effect size; positive where the first method scores higher.

    Examples
    --------
    >>> rank_biserial([3, 5, 2], [1, 1, 3])
    0.666...
    """
    a, b = check_pair(first, second)
    gap = (a - b)[a != b]
    if gap.size == 0:
        return 0.0
    ranks = stats.rankdata(np.abs(gap))
    return float((np.sign(gap) * ranks).sum() / ranks.sum())


def effect_sizes(first: npt.ArrayLike, second: npt.ArrayLike) -> dict[str, float]:
    """All of them for two methods scored on the same data sets or folds.

    Parameters
    ----------
    first : array of shape (n,)
        The scores of the first method.
    second : array of shape (n,)
        The scores of the second method.

    Returns
    -------
    dict of str to float
        The mean difference and the effect sizes of this module, by name.

    Examples
    --------
    >>> sorted(effect_sizes([3, 5, 2], [1, 1, 3]))
    ['cliffs_delta', 'cohens_d', 'mean_difference', 'rank_biserial', 'vargha_delaney']
    """
    a, b = check_pair(first, second)
    return {
        "mean_difference": float((a - b).mean()),
        "cohens_d": cohens_d(a, b),
        "rank_biserial": rank_biserial(a, b),
        "cliffs_delta": cliffs_delta(a, b),
        "vargha_delaney": vargha_delaney(a, b),
    }


def win_tie_loss(
    scores: npt.ArrayLike | pd.DataFrame,
    *,
    tolerance: float = 0.0,
    greater_is_better: bool = True,
    control: Hashable | None = None,
) -> pd.DataFrame:
    """On how many data sets each method beats, ties with or loses to each other one (or to ``control``).

    Scores within ``tolerance`` tie.

    Parameters
    ----------
    scores : DataFrame or array
        A row for each data set, a column for each method.
    tolerance : float
        Scores that differ by no more than this tie.
    greater_is_better : bool
        Whether larger scores are better.
    control : label, optional
        A column; only comparisons against it are counted.

    Returns
    -------
    DataFrame
        The numbers of wins, ties and losses, a row for each pair of methods.

    Examples
    --------
    >>> win_tie_loss([[1, 2], [3, 2], [2, 2]]).loc[(0, 1)].tolist()
    [1, 1, 1]
    """
    table = check_scores(scores)
    tolerance = float(check_in_range("tolerance", tolerance, 0))
    names = list(table.columns)
    if control is not None and control not in names:
        raise ValueError(f"control must be one of {names}, got {control!r}")
    sign = 1 if greater_is_better else -1
    rows = {}
    for a, b in permutations(names, 2):
        if control is None or b == control:
            gap = sign * (table[a] - table[b]).to_numpy()
            rows[a, b] = (
                int((gap > tolerance).sum()),
                int((abs(gap) <= tolerance).sum()),
                int((gap < -tolerance).sum()),
            )
    index = pd.MultiIndex.from_tuples(list(rows), names=["method", "against"])
    return pd.DataFrame(list(rows.values()), index=index, columns=["win", "tie", "loss"])
