"""Which samples are copies? The nearest-neighbor test, per class, with intervals and crossing times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from equipoise._core.checks import (
    FloatArray,
    IntArray,
    check_array,
    check_counts,
    check_fraction,
    check_in_range,
    check_integer,
)
from equipoise._core.random import RandomState, as_generator

_BLOCK = 2**24  # distances held at once
_FEW = 8  # images a sample whose distances are measured again


@dataclass(frozen=True)
class Neighbors:
    """The two nearest training images of each sample."""

    index: IntArray
    distance: FloatArray

    @property
    def ratio(self) -> FloatArray:
        """d(nn1)/d(nn2), the criterion; 0 for an exact copy, 1 where both are as far (or both are copies)."""
        first, second = self.distance[:, 0], self.distance[:, 1]
        return np.divide(first, second, out=np.ones_like(first), where=second > 0)

    def memorized(self, threshold: float = 1 / 3) -> npt.NDArray[np.bool_]:
        return np.asarray(self.ratio < float(check_fraction("threshold", threshold)))


def nearest_two(
    samples: npt.ArrayLike,
    training: npt.ArrayLike,
    *,
    sample_labels: npt.ArrayLike | None = None,
    training_labels: npt.ArrayLike | None = None,
    skip: npt.ArrayLike | None = None,
) -> Neighbors:
    """The two nearest training images by ℓ2, exact, in bounded memory.

    A matrix product gives all distances of a block up to rounding; the few nearest are measured again exactly.
    With both labels given, the second neighbor is the second nearest *of the sample's class*. ``skip`` names one
    training image for each sample that does not count, such as the sample itself.

    Parameters
    ----------
    samples : array of shape (n, …)
        The samples; images are flattened.
    training : array of shape (m, …)
        The training images.
    sample_labels : array of shape (n,), optional
        The class of each sample.
    training_labels : array of shape (m,), optional
        The class of each training image.
    skip : array of int of shape (n,), optional
        The row of one training image for each sample that does not count.

    Returns
    -------
    Neighbors
        The rows of the two nearest images, their distances and the ratio of the distances.

    Examples
    --------
    >>> found = nearest_two([[0.1]], [[0.0], [1.0], [5.0]])
    >>> found.index.tolist(), found.ratio.round(3).tolist()
    ([[0, 1]], [0.111])
    """
    a = _flat("samples", samples)
    b = _flat("training", training)
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"samples and training images must have one size, got {a.shape[1]} and {b.shape[1]} pixels"
        )
    if len(b) < 2:
        raise ValueError(f"training must have at least two images, got {len(b)}")
    same = None
    if sample_labels is not None and training_labels is not None:
        same = (np.asarray(sample_labels), np.asarray(training_labels))
        for label in np.unique(same[0]):
            if (same[1] == label).sum() < 2:
                raise ValueError(f"class {label!r} has fewer than two training images")
    index = np.empty((len(a), 2), dtype=np.int64)
    distance = np.empty((len(a), 2))
    squares = np.einsum("ij,ij->i", b, b)
    rounding = _rounding(a, squares)
    rows = max(1, _BLOCK // len(b))
    for start in range(0, len(a), rows):
        part = slice(start, start + rows)
        rough = (-2 * a[part]) @ b.T
        rough += squares  # up to ‖a‖², the same for all candidates of a row
        if skip is not None:
            rough[np.arange(len(rough)), check_counts("skip", skip)[part]] = np.inf
        index[part], distance[part] = _two_of(
            rough, a[part], b, None if same is None else (same[0][part], same[1]), rounding[part]
        )
    return Neighbors(index, distance)


def _flat(name: str, images: npt.ArrayLike) -> npt.NDArray[np.float32]:
    array = np.asarray(images, dtype=np.float32)
    if not (array.size and np.isfinite(array).all()):
        check_array(name, array)  # which says what is wrong
    return np.ascontiguousarray(array.reshape(len(array), -1))


def _rounding(a: npt.NDArray[np.float32], squares: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """How far two rough distances of a sample may be off together: twice the bound of sums of d products."""
    largest = np.sqrt(squares.max())
    length = np.sqrt(np.einsum("ij,ij->i", a, a))
    unit = np.finfo(np.float32).eps * (a.shape[1] + 2)
    return np.asarray(2 * unit * largest * (2 * length + largest), dtype=np.float32)


def _two_of(
    rough: npt.NDArray[np.float32],
    a: npt.NDArray[np.float32],
    b: npt.NDArray[np.float32],
    same: Any,
    rounding: npt.NDArray[np.float32],
) -> tuple[IntArray, FloatArray]:
    index = np.empty((len(a), 2), dtype=np.int64)
    distance = np.empty((len(a), 2))
    index[:, 0], distance[:, 0] = _nearest(rough, a, b, rounding)
    if same is not None:
        rough = np.where(same[0][:, None] == same[1][None, :], rough, np.inf)
    rough[np.arange(len(a)), index[:, 0]] = np.inf
    index[:, 1], distance[:, 1] = _nearest(rough, a, b, rounding)
    return index, distance


def _nearest(
    rough: npt.NDArray[np.float32],
    a: npt.NDArray[np.float32],
    b: npt.NDArray[np.float32],
    rounding: npt.NDArray[np.float32],
) -> tuple[IntArray, FloatArray]:
    """The exact winner among those, at most eight, that rounding cannot tell apart from the best."""
    close = np.flatnonzero(rough <= (rough.min(axis=1) + rounding)[:, None])
    row, near = np.divmod(close[np.lexsort((rough.flat[close], close // rough.shape[1]))], rough.shape[1])
    first = np.searchsorted(row, np.arange(len(a)))
    few = np.arange(len(row)) - first[row] < _FEW
    row, near = row[few], near[few]
    exact = np.sqrt(((b[near].astype(np.float64) - a[row]) ** 2).sum(axis=1))
    exact[np.isinf(rough[row, near])] = np.inf
    best = np.lexsort((near, exact, row))[np.searchsorted(row, np.arange(len(a)))]
    return near[best], exact[best]


def memorized_fraction(
    memorized: npt.ArrayLike,
    labels: npt.ArrayLike,
    classes: npt.ArrayLike | None = None,
    *,
    n_bootstrap: int = 1000,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """The share of memorized samples of each class with a bootstrap interval; NaN for a class nobody drew.

    Parameters
    ----------
    memorized : array of bool of shape (n,)
        Whether each sample is a copy.
    labels : array of shape (n,)
        The class of each sample.
    classes : array, optional
        The classes to tell about; by default those that occur.
    n_bootstrap : int
        The number of resamples.
    confidence : float
        Of the intervals.
    random_state : int, generator or None
        The source of the resamples.

    Returns
    -------
    DataFrame
        A line for each class: its fraction with bounds, and the number of its samples.

    Examples
    --------
    >>> memorized_fraction([True, False, True, True], ["a", "a", "b", "b"])["fraction"].tolist()
    [0.5, 1.0]
    """
    flags, labels = check_in_range("memorized", memorized, 0, 1), np.asarray(labels)
    if flags.ndim != 1 or flags.shape != labels.shape:
        raise ValueError(
            f"memorized and labels must be vectors of one length, got shapes {flags.shape} and {labels.shape}"
        )
    check_integer("n_bootstrap", n_bootstrap, low=1)
    tail = (1 - float(check_fraction("confidence", confidence))) / 2
    rng = as_generator(random_state)
    rows = []
    for label in np.unique(labels) if classes is None else np.asarray(classes):
        own = flags[labels == label]
        nan = float("nan")
        share, low, high = nan, nan, nan
        if len(own):
            share = float(own.mean())
            draws = rng.binomial(len(own), share, n_bootstrap) / len(own)
            low, high = (float(q) for q in np.quantile(draws, [tail, 1 - tail]))
        rows.append({"label": label, "n": len(own), "fraction": share, "low": low, "high": high})
    return pd.DataFrame(rows)


def crossing_time(steps: npt.ArrayLike, fractions: npt.ArrayLike, threshold: float = 1 / 3) -> float:
    """The first time that a fraction reaches the threshold, interpolated in log steps; ∞ if it never does.

    Parameters
    ----------
    steps : array
        Positive, increasing steps.
    fractions : array
        The fraction at each step; NaN where it is not known.
    threshold : float
        The fraction to reach.

    Returns
    -------
    float
        The step.

    Examples
    --------
    >>> round(crossing_time([1, 10, 100], [0.0, 0.0, 1.0], 0.5), 3)
    31.623
    """
    t, f = check_array("steps", steps), np.asarray(fractions, dtype=np.float64)
    if len(t) != len(f) or (np.diff(t) <= 0).any() or (t <= 0).any():
        raise ValueError("steps must be positive, increasing and as many as fractions")
    known = np.isfinite(f)
    t, f = t[known], f[known]
    above = np.flatnonzero(f >= threshold)
    if not len(above):
        return float("inf")
    at = int(above[0])
    if at == 0:
        return float(t[0])
    share = (threshold - f[at - 1]) / (f[at] - f[at - 1])
    return float(np.exp(np.log(t[at - 1]) + share * (np.log(t[at]) - np.log(t[at - 1]))))
