"""Shares of rows: their exact intervals, and how much less rows count that belong together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy import stats

from equipoise._core.checks import FloatArray, IntArray, check_counts, check_same_length


def binomial_interval(
    hits: npt.ArrayLike, trials: npt.ArrayLike, confidence: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """The exact interval of a share (Clopper & Pearson 1934, Biometrika 26).

    Parameters
    ----------
    hits : array-like
        The number of successes.
    trials : array-like
        The number of trials.
    confidence : float
        The least probability that the interval covers the true share.

    Returns
    -------
    array
        The lower bounds.
    array
        The upper bounds.

    Examples
    --------
    >>> low, high = binomial_interval(29, 29)
    >>> round(float(low), 3), float(high)
    (0.881, 1.0)
    """
    k, n = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    tail = (1 - confidence) / 2
    low = np.where(k > 0, stats.beta.ppf(tail, np.maximum(k, 1e-300), n - k + 1), 0.0)
    high = np.where(k < n, stats.beta.ppf(1 - tail, k + 1, np.maximum(n - k, 1e-300)), 1.0)
    return low, high


def design_effects(
    truth: npt.ArrayLike, calls: npt.ArrayLike, groups: npt.ArrayLike, n_classes: int
) -> FloatArray:
    """By how much the rows of each class count less because rows of one group are alike.

    Eight rows of one patient say little more than one. For each class the variance of the shares of its calls,
    with groups in place of rows as what is drawn, is divided by that of independent rows; n rows are then worth
    n divided by this effect. Few groups tell little of that variance, so the quantile of Student's t replaces
    that of many rows (Korn & Graubard 1998, "Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data").

    Parameters
    ----------
    truth, calls : arrays of int
        The class codes of the rows, and what they are called.
    groups : array
        Rows with the same value belong together.
    n_classes : int
        The number of classes.

    Returns
    -------
    array of shape (classes,)
        At least 1, and at most the number of rows of the class.

    Examples
    --------
    >>> truth, groups = np.ones(40, dtype=int), np.repeat(np.arange(20), 2)
    >>> together, apart = np.repeat([0, 1], 20), np.tile([0, 1], 20)
    >>> design_effects(truth, together, groups, 2).round(1), design_effects(truth, apart, groups, 2).round(1)
    (array([1. , 2.3]), array([1., 1.]))
    """
    parts = _by_class(truth, calls, n_classes, groups=groups)
    return np.array([_design_effect(called, part, n_classes) for called, part in parts])


def fold_effects(
    truth: npt.ArrayLike,
    calls: npt.ArrayLike,
    folds: npt.ArrayLike,
    n_classes: int,
    alike: npt.ArrayLike = 1.0,
) -> FloatArray:
    """By how much the rows of each class count less because each fold was judged with models of its own.

    What is delivered is none of the models that were judged, so its shares differ from theirs. How far is seen
    from how far those of the folds differ beyond the luck of their rows (DerSimonian & Laird 1986): this variance,
    times 1/J + 1/(J − 1) for J folds that share training rows (Nadeau & Bengio 2003), is added to that of the rows.
    Where rows belong together, their luck is larger by their design effect.

    Parameters
    ----------
    truth, calls : arrays of int
        The class codes of the rows, and what they are called.
    folds : array of int
        The fold in which each row was held out.
    n_classes : int
        The number of classes.
    alike : array of shape (classes,) or float
        The :func:`design_effects` of rows that belong together; what is returned comes on top of them.

    Returns
    -------
    array of shape (classes,)
        At least 1, and at most the number of rows of the class.

    Examples
    --------
    >>> truth, folds = np.ones(40, dtype=int), np.repeat([0, 1], 20)
    >>> alike, apart = np.tile([0, 1], 20), np.repeat([0, 0, 0, 1, 0, 1, 1, 1], 5)
    >>> fold_effects(truth, alike, folds, 2).round(1), fold_effects(truth, apart, folds, 2).round(1)
    (array([1., 1.]), array([ 1., 28.]))
    """
    parts = _by_class(truth, calls, n_classes, folds=folds)
    less = np.broadcast_to(np.asarray(alike, dtype=np.float64), n_classes)
    return np.array([_fold_effect(*one, n_classes, e) for one, e in zip(parts, less, strict=True)])


def _by_class(
    truth: npt.ArrayLike, calls: npt.ArrayLike, n_classes: int, **named: npt.ArrayLike
) -> Iterator[tuple[IntArray, IntArray]]:
    """For each class what its rows are called, and what they are divided into: groups or folds."""
    y, called = check_counts("truth", truth), check_counts("calls", calls)
    check_same_length(truth=y, calls=called, **named)
    (parts,) = named.values()
    part = np.unique(np.asarray(parts), return_inverse=True)[1]
    return ((called[y == c], part[y == c]) for c in range(n_classes))


def _fold_effect(calls: IntArray, folds: IntArray, n_classes: int, less: float) -> float:
    rows = len(calls)
    place = np.unique(folds, return_inverse=True)[1]
    count = int(place.max(initial=-1)) + 1
    if count < 2:
        return 1.0
    by_fold = np.bincount(place * n_classes + calls, minlength=count * n_classes).reshape(count, n_classes)
    size = by_fold.sum(axis=1)
    share = by_fold.sum(axis=0) / rows
    luck = less * float((share * (1 - share)).sum())
    apart = float((size[:, None] * (by_fold / size[:, None] - share) ** 2).sum()) - (count - 1) * luck
    if luck == 0 or apart <= 0:
        return 1.0
    between = apart / (rows - float((size**2).sum()) / rows)
    return float(
        np.clip(1 + between * (1 / count + 1 / (count - 1)) * rows / luck, 1.0, max(rows / less, 1.0))
    )


def largest_effect(groups: npt.ArrayLike | None, chosen: npt.NDArray[np.bool_]) -> float:
    """By how much the chosen rows count less if rows of one group are all alike (Kish 1965)."""
    rows = int(chosen.sum())
    if groups is None or not rows:
        return 1.0
    sizes = np.unique(np.asarray(groups)[chosen], return_counts=True)[1]
    return float((sizes**2).sum()) / rows


def _design_effect(calls: IntArray, groups: IntArray, n_classes: int) -> float:
    rows = len(calls)
    place = np.unique(groups, return_inverse=True)[1]
    count = int(place.max(initial=-1)) + 1
    if count in (0, rows):
        return 1.0
    if count == 1:
        return float(rows)
    by_group = np.bincount(place * n_classes + calls, minlength=count * n_classes).reshape(count, n_classes)
    size = by_group.sum(axis=1)
    share = by_group.sum(axis=0) / rows
    independent = float((share * (1 - share)).sum()) / rows
    if independent > 0:
        off = by_group - size[:, None] * share
        effect = count / (count - 1) * float((off**2).sum()) / rows**2 / independent
    else:  # all rows are called alike, so nothing tells how alike they are: as alike as they can be
        effect = largest_effect(groups, np.ones(rows, dtype=bool))
    few = float(stats.t.ppf(0.975, count - 1) / stats.t.ppf(0.975, rows - 1)) ** 2
    return float(np.clip(effect * few, 1.0, rows))
