"""Training sets of the teacher-student model (Eqs 4 and 30), for the simulations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from equipoise._core.checks import FloatArray, check_fraction, check_integer, check_type


class TrainingSet(NamedTuple):
    """Inputs (samples, dims) and labels ±1; the teacher's direction is the first axis.

    Attributes
    ----------
    inputs : array of shape (samples, dims)
        The inputs.
    labels : array of shape (samples,)
        The labels, 1 and −1.
    """

    inputs: npt.NDArray[Any]
    labels: FloatArray


def sample_training_set(
    dim: int,
    count: int,
    teacher_bias: float,
    train_fraction: float,
    generator: np.random.Generator,
    dtype: type[np.floating[Any]] = np.float64,
) -> TrainingSet:
    """``round(ρ·count)`` positives and the rest negatives, Gaussian given the side of the teacher's plane.

    The Gaussian is isotropic, so the teacher may as well be the first axis: his field is drawn from a truncated
    Gaussian by inversion and the other coordinates are free. Nothing is rejected, however rare the positives.

    Parameters
    ----------
    dim : int
        N.
    count : int
        The number of samples.
    teacher_bias : float
        b0.
    train_fraction : float
        ρ.
    generator : numpy.random.Generator
        The source of randomness.
    dtype : type
        The type of the inputs.

    Returns
    -------
    TrainingSet
        The samples; the positives come first.

    Examples
    --------
    >>> made = sample_training_set(5, 10, -1.0, 0.3, np.random.default_rng(0))
    >>> int((made.labels > 0).sum())
    3
    """
    check_integer("dim", dim, low=1)
    check_integer("count", count, low=2)
    check_type("generator", generator, np.random.Generator)
    train_fraction = float(check_fraction("train_fraction", train_fraction))
    positives = min(max(round(train_fraction * count), 1), count - 1)
    labels = np.where(np.arange(count) < positives, 1.0, -1.0)
    inputs = generator.standard_normal((count, dim), dtype=dtype)
    uniform = 1.0 - generator.random(count)
    inputs[:, 0] = np.where(
        labels > 0, -ndtri(uniform * ndtr(teacher_bias)), ndtri(uniform * ndtr(-teacher_bias))
    )
    return TrainingSet(inputs, labels)
