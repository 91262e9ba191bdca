"""Bayes' rule for a changed class prior, the arithmetic of the prior ledger."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray, check_array, check_distribution


def weighted_prior(
    codes: npt.NDArray[np.integer], n_classes: int, sample_weight: npt.ArrayLike | None = None
) -> FloatArray:
    """The class shares that a learner sees: counts, or sums of sample weights."""
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    mass = np.bincount(codes, weights=weights, minlength=n_classes).astype(np.float64)
    total = mass.sum()
    if total <= 0:
        raise ValueError(f"sample_weight must have a positive sum, got {total:g}")
    return mass / total


def correct_prior(proba: npt.ArrayLike, trained: npt.ArrayLike, wanted: npt.ArrayLike) -> FloatArray:
    """Turn posteriors under the ``trained`` prior into posteriors under the ``wanted`` one.

    p'(c|x) ∝ p(c|x)·wanted_c/trained_c (Saerens, Latinne & Decaestecker 2002, Eq 2.4). A class with no
    training mass keeps probability zero.

    >>> correct_prior([[0.5, 0.5]], [0.5, 0.5], [0.9, 0.1])
    array([[0.9, 0.1]])
    """
    p = check_array("proba", proba, allow_empty=True)
    trained = check_distribution("trained prior", trained)
    wanted = check_distribution("wanted prior", wanted)
    if not p.shape[-1] == trained.size == wanted.size:
        sizes = f"{p.shape[-1]}, {trained.size} and {wanted.size}"
        raise ValueError(f"proba and the priors must have as many classes, got {sizes}")
    if np.array_equal(trained, wanted):
        return p
    ratio = np.divide(wanted, trained, out=np.zeros_like(wanted), where=trained > 0)
    scaled = p * ratio
    total = scaled.sum(axis=-1, keepdims=True)
    return np.divide(scaled, total, out=np.broadcast_to(wanted, p.shape).copy(), where=total > 0)
