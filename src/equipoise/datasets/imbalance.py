"""Make balanced data imbalanced: how many of each class, and which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import (
    IntArray,
    check_choice,
    check_counts,
    check_distribution,
    check_in_range,
    check_integer,
    check_members,
    check_same_length,
)
from equipoise._core.random import RandomState, as_generator

Counts = Mapping[Any, int] | Sequence[int] | npt.NDArray[np.integer]

_ROUNDING = 1e-9  # 5000 * 100 ** -1 is 50.000000000000004 or 49.999999999999996: both mean 50


def exponential_counts(head: int, n_classes: int, ratio: float) -> IntArray:
    """The exponential (long-tail) profile: n_c = ⌊head · ratio^(−c/(C−1))⌋, c = 0 … C−1.

    The profile of the CIFAR-LT sets (Cui et al. 2019, section 4.1).

    Parameters
    ----------
    head : int
        The count of the largest class.
    n_classes : int
        The number of classes.
    ratio : float
        The largest count over the smallest, at least 1.

    Returns
    -------
    array of int
        The counts, from the largest class to the smallest.

    Examples
    --------
    >>> exponential_counts(5000, 10, 100)
    array([5000, 2997, 1796, 1077,  645,  387,  232,  139,   83,   50])
    """
    head = check_integer("head", head, low=1)
    n_classes = check_integer("n_classes", n_classes, low=2)
    ratio = float(check_in_range("ratio", ratio, 1))
    exponent = -np.arange(n_classes) / (n_classes - 1)
    return np.floor(head * ratio**exponent + _ROUNDING).astype(np.int64)


def step_counts(head: int, n_classes: int, ratio: float, *, minority_share: float = 0.5) -> IntArray:
    """The step profile: the last ``minority_share`` of the classes has ⌊head/ratio⌋ samples, the others head.

    Buda, Maki & Mazurowski (2018), section 2.1. At least one class is small and one is large.

    Parameters
    ----------
    head : int
        The count of the largest class.
    n_classes : int
        The number of classes.
    ratio : float
        The largest count over the smallest, at least 1.
    minority_share : float
        The share of the classes that are small.

    Returns
    -------
    array of int
        The counts, from the largest class to the smallest.

    Examples
    --------
    >>> step_counts(100, 5, 10)
    array([100, 100, 100,  10,  10])
    """
    head = check_integer("head", head, low=1)
    n_classes = check_integer("n_classes", n_classes, low=2)
    ratio = float(check_in_range("ratio", ratio, 1))
    share = float(check_in_range("minority_share", minority_share, 0, 1, closed="neither"))
    n_small = min(max(int(share * n_classes + _ROUNDING), 1), n_classes - 1)
    counts = np.full(n_classes, head, dtype=np.int64)
    counts[-n_small:] = int(head / ratio + _ROUNDING)
    return counts


def binary_counts(majority: int, beta: float) -> IntArray:
    """The two counts at imbalance ratio β = majority/minority (Lieberman et al., Table 12), rounded half up.

    Parameters
    ----------
    majority : int
        The count of the frequent class.
    beta : float
        The imbalance ratio, at least 1.

    Returns
    -------
    array of int
        The counts of the frequent and of the rare class.

    Examples
    --------
    >>> binary_counts(5000, 100)
    array([5000,   50])
    """
    majority = check_integer("majority", majority, low=1)
    beta = float(check_in_range("beta", beta, 1))
    return np.array([majority, max(int(majority / beta + 0.5), 1)], dtype=np.int64)


def apportion(total: int, weights: npt.ArrayLike) -> IntArray:
    """Whole numbers that sum to ``total`` and follow ``weights`` as closely as possible (largest remainder).

    Parameters
    ----------
    total : int
        The sum of the numbers.
    weights : array
        Their shares, which sum to 1.

    Returns
    -------
    array of int
        The numbers.

    Examples
    --------
    >>> apportion(10, [0.5, 0.25, 0.25])
    array([5, 3, 2])
    """
    total = check_integer("total", total, low=0)
    exact = total * check_distribution("weights", weights)
    counts = np.floor(exact + _ROUNDING).astype(np.int64)
    missing = total - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    return counts


def imbalanced_indices(
    y: npt.ArrayLike,
    *,
    counts: Counts | None = None,
    profile: Literal["exponential", "step"] | None = None,
    ratio: float | None = None,
    head: int | None = None,
    minority_share: float = 0.5,
    order: Sequence[Any] | None = None,
    random_state: RandomState = None,
) -> IntArray:
    """The rows that `make_imbalanced` keeps, in increasing order; the arguments are explained there.

    Parameters
    ----------
    y : array of shape (samples,)
        Labels of any kind.
    counts : mapping or sequence of int, optional
        The count of each class.
    profile : {"exponential", "step"}, optional
        The kind of profile, instead of ``counts``.
    ratio : float, optional
        The head count over the tail count, for a profile.
    head : int, optional
        The count of the largest class.
    minority_share : float
        The share of small classes in the step profile.
    order : sequence of labels, optional
        The labels from head to tail.
    random_state : int, generator or None
        Which samples are kept.

    Returns
    -------
    array of int
        The row numbers.

    Examples
    --------
    >>> imbalanced_indices([0, 0, 0, 1, 1], counts={0: 1}, random_state=0).size
    3
    """
    labels, codes, available = _labels(y)
    if (counts is None) == (profile is None):
        raise ValueError(
            f"give either counts or a profile with its ratio, got counts={counts!r} and profile={profile!r}"
        )
    if counts is not None:
        wanted = _wanted_from_counts(counts, labels, available)
    else:
        ranks = _ranks(order, labels)
        wanted = _wanted_from_profile(
            str(profile), ratio, head, minority_share, available[np.argsort(ranks)]
        )[ranks]
    _check_enough(wanted, available, labels)
    rng = as_generator(random_state)
    kept = [rng.permutation(np.flatnonzero(codes == code))[:count] for code, count in enumerate(wanted)]
    return np.sort(np.concatenate(kept))


def make_imbalanced(
    X: Any,
    y: npt.ArrayLike,
    *,
    counts: Counts | None = None,
    profile: Literal["exponential", "step"] | None = None,
    ratio: float | None = None,
    head: int | None = None,
    minority_share: float = 0.5,
    order: Sequence[Any] | None = None,
    random_state: RandomState = None,
    return_indices: bool = False,
) -> tuple[Any, ...]:
    """Subsample each class at random to given counts, or to a profile.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame
        One row per sample, tables and images alike.
    y : array of shape (samples,)
        Labels of any kind.
    counts : mapping or sequence of int, optional
        A mapping from label to count (labels left out keep all their samples), or one count per class in
        the order of the sorted labels. :func:`class_counts` has those of the papers by name.
    profile : {"exponential", "step"}, optional
        The kind of profile, instead of ``counts``; see :func:`exponential_counts` and
        :func:`step_counts`.
    ratio : float, optional
        The head count over the tail count, at least 1; a profile needs it.
    head : int, optional
        The count of the largest class; by default as many as every class's stock allows.
    minority_share : float
        The share of small classes in the step profile.
    order : sequence of labels, optional
        The labels from head to tail; by default sorted.
    random_state : int, generator or None
        Which samples are kept. With the same seed, fewer samples of a class are a subset of more.
    return_indices : bool
        Whether to return the kept row numbers, too.

    Returns
    -------
    X : array, sparse matrix or DataFrame
        The kept rows, in their old order.
    y : array
        Their labels.
    indices : array of int
        Their row numbers, if asked for.

    Raises
    ------
    ValueError
        If a class has fewer samples than it is asked for.

    Examples
    --------
    >>> X, y = np.arange(20).reshape(10, 2), np.array([0] * 5 + [1] * 5)
    >>> _, y_small = make_imbalanced(X, y, profile="step", ratio=5, random_state=0)
    >>> np.bincount(y_small)
    array([5, 1])
    >>> make_imbalanced(X, y, counts={1: 7})
    Traceback (most recent call last):
    ...
    ValueError: counts asks for 7 samples of class 1, which has 5
    """
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    labels = np.asarray(y)
    if len(X.shape) == 0:
        raise ValueError(f"X must have rows, got {X!r:.60}")
    if labels.ndim != 1:
        raise ValueError(f"y must be one-dimensional, got shape {labels.shape}")
    check_same_length(X=range(X.shape[0]), y=labels)
    indices = imbalanced_indices(
        labels,
        counts=counts,
        profile=profile,
        ratio=ratio,
        head=head,
        minority_share=minority_share,
        order=order,
        random_state=random_state,
    )
    kept_X = X.iloc[indices] if hasattr(X, "iloc") else X[indices]
    kept_y = y.iloc[indices] if hasattr(y, "iloc") else labels[indices]
    return (kept_X, kept_y, indices) if return_indices else (kept_X, kept_y)


def _labels(y: npt.ArrayLike) -> tuple[npt.NDArray[Any], IntArray, IntArray]:
    array = np.asarray(y)
    if array.ndim != 1:
        raise ValueError(f"y must be one-dimensional, got shape {array.shape}")
    if array.size == 0:
        raise ValueError("y must not be empty")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"y must be finite, got {array[~np.isfinite(array)][0]}")
    labels, codes, available = np.unique(array, return_inverse=True, return_counts=True)
    if len(labels) < 2:
        raise ValueError(f"y must have at least two classes, got only {labels[0]!r}")
    return labels, codes, available


def _wanted_from_counts(counts: Counts, labels: npt.NDArray[Any], available: IntArray) -> IntArray:
    if isinstance(counts, Mapping):
        check_members("counts", counts, labels.tolist())
        named = [counts.get(label, stock) for label, stock in zip(labels.tolist(), available, strict=True)]
        return check_counts("counts", named)
    wanted = check_counts("counts", counts)
    if wanted.shape != labels.shape:
        raise ValueError(f"counts must have one number a class ({len(labels)}), got {wanted.size}")
    return wanted


def _wanted_from_profile(
    profile: str, ratio: float | None, head: int | None, minority_share: float, available: IntArray
) -> IntArray:
    """Counts from head to tail, ``available`` in the same order."""
    check_choice("profile", profile, ["exponential", "step"])
    if ratio is None:
        raise ValueError(f"profile {profile!r} needs a ratio, got None")

    def counts_of(head: int) -> IntArray:
        if profile == "exponential":
            return exponential_counts(head, len(available), ratio)
        return step_counts(head, len(available), ratio, minority_share=minority_share)

    if head is not None:
        return counts_of(head)
    low, high = 1, int(available[0])  # the largest head that every class can follow, by bisection
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if (counts_of(middle) <= available).all() else (low, middle - 1)
    return counts_of(low)


def _ranks(order: Sequence[Any] | None, labels: npt.NDArray[Any]) -> IntArray:
    """Position of each sorted label on the way from head to tail."""
    if order is None:
        return np.arange(len(labels))
    wanted = list(order)
    check_members("order", wanted, labels.tolist())
    if len(wanted) != len(labels) or len(set(wanted)) != len(labels):
        raise ValueError(f"order must name each of the {len(labels)} classes once, got {wanted!r}")
    return np.array([wanted.index(label) for label in labels.tolist()])


def _check_enough(wanted: IntArray, available: IntArray, labels: npt.NDArray[Any]) -> None:
    short = np.flatnonzero(wanted > available)
    if short.size:
        first = short[0]
        raise ValueError(
            f"counts asks for {wanted[first]} samples of class {labels[first]}, which has {available[first]}"
        )
    if (wanted > 0).sum() < 2:
        raise ValueError(f"counts must leave samples in at least two classes, got {wanted.tolist()}")
