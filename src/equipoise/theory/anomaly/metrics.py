"""What a test set sees of a student: recall and specificity in closed form, and all that follows from them.

Pezzicoli et al., Eqs 5, 8-14, 23-24, 98-105. The fields of student and teacher on a fresh sample are standard
Gaussians with correlation R, so recall and specificity are bivariate-normal orthants, which Owen's T function
gives in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr, ndtri, owens_t

from equipoise._core.checks import FloatArray, check_array, check_fraction, check_in_range


def intrinsic_fraction(teacher_bias: npt.ArrayLike) -> FloatArray:
    """ρ0 = Φ(b0), the share of positives in the population (Eq 5).

    Parameters
    ----------
    teacher_bias : array-like
        b0.

    Returns
    -------
    array
        ρ0.

    Examples
    --------
    >>> float(intrinsic_fraction(-0.6).round(4))
    0.2743
    """
    return np.asarray(ndtr(check_array("teacher_bias", teacher_bias)))


def teacher_bias(intrinsic_fraction: npt.ArrayLike) -> FloatArray:
    """b0 = Φ⁻¹(ρ0), the inverse of :func:`intrinsic_fraction`.

    Parameters
    ----------
    intrinsic_fraction : array-like
        ρ0, between 0 and 1.

    Returns
    -------
    array
        b0.

    Examples
    --------
    >>> float(teacher_bias(0.5))
    0.0
    """
    return np.asarray(ndtri(check_fraction("intrinsic_fraction", intrinsic_fraction)))


def boundary_densities(teacher_bias: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Density at the teacher's hyperplane of the positive and the negative class (Eqs 23-24).

    φ(b0)/Φ(b0) and φ(b0)/Φ(-b0): the rare class crowds the boundary, and so informs more about it.

    Parameters
    ----------
    teacher_bias : array-like
        b0.

    Returns
    -------
    array
        The density of the positive class.
    array
        The density of the negative class.

    Examples
    --------
    >>> positive, negative = boundary_densities(-2.0)
    >>> bool(positive > negative)
    True
    """
    b0 = check_array("teacher_bias", teacher_bias)
    log_density = -0.5 * b0**2 - 0.5 * np.log(2 * np.pi)
    return np.exp(log_density - log_ndtr(b0)), np.exp(log_density - log_ndtr(-b0))


def both_positive(correlation: npt.ArrayLike, a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    """P(x > -a, y > -b) for standard Gaussians of correlation r in (-1, 1), in closed form.

    With h = min(a, b), k = max(a, b), s = √(1-r²) and w = (h - rk)/s, Owen's formula and his reflection
    T(k, w/k) + T(w, k/w) = ½Φ(k) + ½Φ(w) - Φ(k)Φ(w) - ½[kw < 0] combine to

        ½Φ(h) - T(h, (k - rh)/(hs)) + Φ(w)(Φ(k) - ½) + T(w, k/w) + ½[h ≥ 0 and w < 0] - ½[h < 0 and w > 0].

    For r ≥ 0 and h < 0 every term is of the order of the answer: no digits cancel however rare the orthant.

    >>> float(both_positive(0.5, 0.0, 0.0).round(6))
    0.333333
    """
    r, a, b = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (correlation, a, b)))
    h, k = np.minimum(a, b) + 0.0, np.maximum(a, b)  # no negative zero: h's sign is that of an infinite slope
    root = np.sqrt((1.0 - r) * (1.0 + r))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        w = (h - r * k) / root
        first = 0.5 * ndtr(h) - owens_t(h, (k - r * h) / (h * root))
        second = owens_t(w, k / w) + 0.5 * ((h >= 0) & (w < 0)) - 0.5 * ((h < 0) & (w > 0))
    second = np.where(w == 0, np.where(h >= 0, 0.25, -0.25), second)
    value = first + ndtr(w) * (ndtr(k) - 0.5) + second
    value = np.where(np.maximum(-h, k) < 1e-100, 0.25 + np.arcsin(r) / (2 * np.pi), value)
    value = np.where(np.isposinf(k), ndtr(h), value)
    return np.clip(np.where(np.isneginf(h), 0.0, value), 0.0, ndtr(h))


def area_under_curve(overlap: npt.ArrayLike, teacher_bias: npt.ArrayLike) -> FloatArray:
    """The ROC area of the student's field: it knows the overlap and not the bias.

    P(x₊ > x₋) for fields with densities φ(x)Φ(±(b0 + Rx)/√(1-R²))/c±, by the trapezoid rule, which is exact to
    rounding for such integrands.

    Parameters
    ----------
    overlap : array-like
        R, between −1 and 1.
    teacher_bias : array-like
        b0.

    Returns
    -------
    array
        The area.

    Examples
    --------
    >>> float(area_under_curve(0.0, -1.0).round(6))
    0.5
    """
    r = check_in_range("overlap", overlap, -1.0, 1.0, closed="neither")
    r, b0 = np.broadcast_arrays(r, check_array("teacher_bias", teacher_bias))
    x = np.linspace(-12.0, 12.0, 6001)
    side = (b0[..., None] + r[..., None] * x) / np.sqrt((1 - r) * (1 + r))[..., None]
    density = np.exp(-0.5 * x * x)
    positive, negative = density * ndtr(side), density * ndtr(-side)
    below = np.cumsum(negative, axis=-1) - 0.5 * negative
    return (positive * below).sum(axis=-1) / (positive.sum(axis=-1) * negative.sum(axis=-1))


@dataclass(frozen=True)
class Metrics:
    """The scores of Eqs 8-14 and 104-105, each an array; nan where a score is 0/0.

    ``macro_f1`` is the mean of both classes' F1. Section 4 of the paper calls its F1 macro-averaged; its Eq
    13 is the positives' alone.

    Attributes
    ----------
    recall : array
        The share of positives that is found (Eq 8).
    specificity : array
        The share of negatives that is left alone.
    accuracy : array
        The share of right answers on the test set.
    balanced_accuracy : array
        The mean of recall and specificity.
    precision : array
        The share of what is called positive that is.
    f1 : array
        The harmonic mean of precision and recall.
    negative_precision : array
        The share of what is called negative that is.
    negative_f1 : array
        F1 of the negative class.
    macro_f1 : array
        The mean of both classes' F1.
    error : array
        The share of wrong answers on the test set (Eq 14).
    """

    recall: FloatArray
    specificity: FloatArray
    accuracy: FloatArray
    balanced_accuracy: FloatArray
    precision: FloatArray
    f1: FloatArray
    negative_precision: FloatArray
    negative_f1: FloatArray
    macro_f1: FloatArray
    error: FloatArray


def classification_metrics(
    overlap: npt.ArrayLike,
    bias: npt.ArrayLike,
    teacher_bias: npt.ArrayLike,
    test_fraction: npt.ArrayLike = 0.5,
) -> Metrics:
    """Scores of a student with this overlap and bias on a test set with this share of positives.

    Precision and F1 are written in shares of the test set, which equals Eqs 12-13 and 104-105 and stays
    defined where a rate vanishes. The error counts a mistake once (Eq 14).

    Parameters
    ----------
    overlap : array-like
        R, between −1 and 1.
    bias : array-like
        b, the student's bias.
    teacher_bias : array-like
        b0.
    test_fraction : array-like
        ρ_test, the share of positives in the test set.

    Returns
    -------
    Metrics
        The scores.

    Examples
    --------
    >>> m = classification_metrics(overlap=0.9, bias=-1.0, teacher_bias=-1.5, test_fraction=0.5)
    >>> float(m.accuracy.round(4)), float(m.recall.round(4)), float(m.specificity.round(4))
    (0.9078, 0.9198, 0.8958)
    """
    share = check_fraction("test_fraction", test_fraction)
    r = check_in_range("overlap", overlap, -1.0, 1.0, closed="neither")
    b0 = check_array("teacher_bias", teacher_bias)
    b = np.asarray(bias, dtype=np.float64)
    if np.isnan(b).any():
        raise ValueError("bias must be a number, got nan")
    share, r, b, b0 = np.broadcast_arrays(share, r, b, b0)
    positives, negatives, hits = ndtr(b0), ndtr(-b0), both_positive(r, b, b0)
    recall = hits / positives
    false_positive = np.clip((ndtr(b) - hits) / negatives, 0.0, 1.0)
    false_negative = np.clip((positives - hits) / positives, 0.0, 1.0)
    specificity = 1.0 - false_positive
    tp, fn = share * recall, share * false_negative
    tn, fp = (1 - share) * specificity, (1 - share) * false_positive
    with np.errstate(invalid="ignore"):
        precision, negative_precision = tp / (tp + fp), tn / (tn + fn)
    f1, negative_f1 = 2 * tp / (2 * tp + fp + fn), 2 * tn / (2 * tn + fp + fn)
    return Metrics(
        recall=recall,
        specificity=specificity,
        accuracy=tp + tn,
        balanced_accuracy=0.5 * (recall + specificity),
        precision=precision,
        f1=f1,
        negative_precision=negative_precision,
        negative_f1=negative_f1,
        macro_f1=0.5 * (f1 + negative_f1),
        error=fp + fn,
    )
