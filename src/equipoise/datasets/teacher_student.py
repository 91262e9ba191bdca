"""Teacher–student data of the exactly solvable model of anomaly detection.

Pezzicoli, Ros, Landes & Baity-Jesi, "Class Imbalance in Anomaly Detection: Learning from an
Exactly Solvable Model".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr, ndtri_exp

from equipoise._core.checks import FloatArray, check_array, check_fraction, check_integer
from equipoise._core.random import RandomState, as_generator
from equipoise.datasets.dataset import Dataset

_TARGET_NAMES = ("normal", "anomaly")


@dataclass(frozen=True)
class TeacherStudent:
    """A teacher perceptron (w⁰, b₀) that labels Gaussian data: 1 (anomaly) where w⁰·S/√N + b₀ > 0, else 0.

    With b₀ < 0 anomalies are the rare class. Three fractions of anomalies are distinct: the intrinsic one
    that b₀ implies (ρ₀, Eq 5), that of the training set (ρ_train, Eq 4), that of the test set (ρ_test, Eq 6).

    Parameters
    ----------
    weights : array of shape (features,)
        w⁰; its length is set to √N.
    bias : float
        b₀.

    Examples
    --------
    >>> model = make_teacher_student(50, bias=-1.5, random_state=0)
    >>> round(model.intrinsic_fraction, 4)
    0.0668
    >>> model.sample_train(200, fraction=0.45, random_state=0).class_counts
    {0: 110, 1: 90}
    """

    weights: FloatArray
    bias: float

    def __post_init__(self) -> None:
        weights = check_array("weights", self.weights)
        norm = float(np.linalg.norm(weights))
        if weights.ndim != 1 or norm == 0:
            raise ValueError(f"weights must be a nonzero vector, got shape {weights.shape} and norm {norm:g}")
        object.__setattr__(self, "weights", weights * (np.sqrt(weights.size) / norm))
        object.__setattr__(self, "bias", float(check_array("bias", self.bias)))

    @property
    def n_features(self) -> int:
        """The number N of features."""
        return int(self.weights.size)

    @property
    def intrinsic_fraction(self) -> float:
        """ρ₀ = P(w⁰·S/√N + b₀ > 0) = ½ erfc(−b₀/√2) (Eq 5)."""
        return float(ndtr(self.bias))

    def sample_train(self, n_samples: int, fraction: float, random_state: RandomState = None) -> Dataset:
        """A training set with exactly round(fraction · n_samples) anomalies, rows shuffled (Eq 4).

        Parameters
        ----------
        n_samples : int
            The number of samples.
        fraction : float
            The share ρ_train of anomalies.
        random_state : int, generator or None
            The source of randomness.

        Returns
        -------
        Dataset
            The samples with their labels, 1 for an anomaly.
        """
        n_samples = check_integer("n_samples", n_samples, low=1)
        n_anomalies = round(float(check_fraction("fraction", fraction)) * n_samples)
        rng = as_generator(random_state)
        y = np.zeros(n_samples, dtype=np.int64)
        y[:n_anomalies] = 1
        return self._sample(rng.permutation(y), rng, "teacher-student train")

    def sample_test(
        self, n_samples: int, fraction: float | None = None, random_state: RandomState = None
    ) -> Dataset:
        """Independent samples, each an anomaly with probability ``fraction`` (Eq 6).

        ``None`` is the intrinsic fraction: the plain Gaussian population.

        Parameters
        ----------
        n_samples : int
            The number of samples.
        fraction : float, optional
            The share ρ_test of anomalies.
        random_state : int, generator or None
            The source of randomness.

        Returns
        -------
        Dataset
            The samples with their labels, 1 for an anomaly.
        """
        n_samples = check_integer("n_samples", n_samples, low=1)
        share = self.intrinsic_fraction if fraction is None else float(check_fraction("fraction", fraction))
        rng = as_generator(random_state)
        return self._sample((rng.random(n_samples) < share).astype(np.int64), rng, "teacher-student test")

    def label(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The teacher's labels (Eq 2), 1 for +1 and 0 for −1.

        Parameters
        ----------
        X : array of shape (samples, features)
            The samples.

        Returns
        -------
        array of int
            The labels.
        """
        return (self._projection(check_array("X", X)) + self.bias > 0).astype(np.int64)

    def _projection(self, X: FloatArray) -> FloatArray:
        return np.asarray(X @ self.weights / np.sqrt(self.n_features))

    def _sample(self, y: npt.NDArray[np.int64], rng: np.random.Generator, name: str) -> Dataset:
        """Exact, without rejection: S is standard normal but along w⁰, where it is truncated."""
        X = rng.standard_normal((len(y), self.n_features))
        sign = np.where(y == 1, 1.0, -1.0)
        along = _truncated_normal_below(sign * self.bias, rng) * -sign
        X += np.outer(along - self._projection(X), self.weights / np.sqrt(self.n_features))
        return Dataset(X, y, name=name, target_names=_TARGET_NAMES)


def make_teacher_student(n_features: int, *, bias: float, random_state: RandomState = None) -> TeacherStudent:
    """A teacher whose weights are uniform on the sphere of radius √N.

    Parameters
    ----------
    n_features : int
        The number N of features.
    bias : float
        b₀; negative where anomalies are rare.
    random_state : int, generator or None
        The source of randomness.

    Returns
    -------
    TeacherStudent
        The teacher.

    Examples
    --------
    >>> make_teacher_student(50, bias=-1.0, random_state=0).n_features
    50
    """
    n_features = check_integer("n_features", n_features, low=1)
    return TeacherStudent(as_generator(random_state).standard_normal(n_features), bias)


def _truncated_normal_below(upper: npt.ArrayLike, rng: np.random.Generator) -> FloatArray:
    """Standard normal draws conditioned to lie below ``upper``, by inversion in the log domain.

    Φ⁻¹(u·Φ(upper)) with u uniform on (0, 1]: exact however far in the tail ``upper`` is.

    >>> draws = _truncated_normal_below(np.full(1000, -30.0), np.random.default_rng(0))
    >>> bool((draws <= -30).all() and (draws > -31).all())
    True
    """
    limit = np.asarray(upper, dtype=np.float64)
    uniform = 1.0 - rng.random(limit.shape)
    return np.minimum(ndtri_exp(log_ndtr(limit) + np.log(uniform)), limit)
