"""The data: a mixture of isotropic Gaussian classes (Nicoletti et al., Eq 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import (
    FloatArray,
    IntArray,
    check_array,
    check_distribution,
    check_integer,
    check_positive,
    check_same_length,
)

_PSD_TOLERANCE = 1e-8
_ROUNDING = 1e-13  # a variance of less than this share of the mean square is none


def unit_scale(X: npt.ArrayLike) -> FloatArray:
    """The data in units of their overall standard deviation; their mean stays where it is.

    This is how the paper describes images (Section 4). Without their mean, two classes would always have
    opposite centroids, whose norms are in the inverse ratio of the class shares.

    Parameters
    ----------
    X : array-like of shape (n, …)
        Numbers.

    Returns
    -------
    array of the same shape
        The scaled numbers.

    Examples
    --------
    >>> unit_scale([[0.0, 0.0], [4.0, 4.0]]).tolist()
    [[0.0, 0.0], [2.0, 2.0]]
    """
    data = check_array("X", X)
    return np.asarray(data / (float(data.std()) or 1.0))


@dataclass(frozen=True, init=False)
class ClassMixture:
    """Class weights, variances and the geometry of the centroids: all that the theory needs of a data set.

    Parameters
    ----------
    weights : array-like of shape (C,)
        b_c, non-negative, summing to one.
    variances : array-like of shape (C,)
        σ_c² > 0, of each coordinate.
    centroid_gram : array-like of shape (C, C), optional
        r_cc' = m_c·m_c'/N (Eq 106), positive semi-definite; None for centered classes.
    classes : sequence, optional
        The names of the classes, for reports; 0 … C−1 by default.

    References
    ----------
    Nicoletti, Ma, Ventura, Saglietti, Sarao Mannelli, "The Interplay of Data Structure and Imbalance in the
    Learning Dynamics of Diffusion Models", Eqs 5 and 106.

    Examples
    --------
    >>> mix = ClassMixture(weights=[0.8, 0.2], variances=[0.5, 0.25])
    >>> mix.n_classes, mix.centered
    (2, True)
    >>> ClassMixture(weights=[0.8, 0.3], variances=[0.5, 0.25])
    Traceback (most recent call last):
    ...
    ValueError: weights must be a vector that sums to 1, got a sum of 1.1
    """

    weights: FloatArray
    variances: FloatArray
    centroid_gram: FloatArray
    classes: tuple[Any, ...]

    def __init__(
        self,
        weights: npt.ArrayLike,
        variances: npt.ArrayLike,
        centroid_gram: npt.ArrayLike | None = None,
        classes: npt.ArrayLike | None = None,
    ) -> None:
        b = check_distribution("weights", weights)
        v = np.atleast_1d(check_positive("variances", variances))
        names = tuple(range(b.size)) if classes is None else tuple(np.asarray(classes).tolist())
        check_same_length(weights=b, variances=v, classes=names)
        gram = np.zeros((b.size, b.size)) if centroid_gram is None else _check_gram(centroid_gram, b.size)
        for name, value in (("weights", b), ("variances", v), ("centroid_gram", gram), ("classes", names)):
            object.__setattr__(self, name, value)

    @property
    def n_classes(self) -> int:
        """The number of classes C."""
        return int(self.weights.size)

    @property
    def centered(self) -> bool:
        """Whether all centroids vanish on the scale √N, so that Eq 114 holds."""
        return not np.any(self.centroid_gram)

    @property
    def centroid_norms(self) -> FloatArray:
        """‖m_c‖/√N of each class."""
        return np.sqrt(np.diag(self.centroid_gram))

    @property
    def centroid_cosines(self) -> FloatArray:
        """Cosines between the centroids of all pairs of classes; nan where a centroid vanishes."""
        norms = np.where(self.centroid_norms > 0, self.centroid_norms, np.nan)
        return np.asarray(self.centroid_gram / np.outer(norms, norms))

    def centroid_factor(self) -> FloatArray:
        """L with L Lᵀ = r and as many columns as the centroids have dimensions: m_c = √N Σ_k L_ck e_k.

        Returns
        -------
        array of shape (C, k)
            L.
        """
        values, vectors = np.linalg.eigh(self.centroid_gram)
        keep = values > _PSD_TOLERANCE * max(float(values.max()), 1e-300)
        return np.asarray(vectors[:, keep] * np.sqrt(values[keep]))[:, ::-1]

    def with_weights(self, weights: npt.ArrayLike) -> ClassMixture:
        """The same classes, sampled otherwise.

        Parameters
        ----------
        weights : array-like of shape (C,)
            The new weights.

        Returns
        -------
        ClassMixture
            The mixture with them.
        """
        return ClassMixture(weights, self.variances, self.centroid_gram, self.classes)

    def subset(self, classes: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> ClassMixture:
        """Some of the classes (by name), with their relative weights or new ones.

        Parameters
        ----------
        classes : sequence
            The names of the classes to keep.
        weights : array-like, optional
            Their weights; by default the present ones, normalized.

        Returns
        -------
        ClassMixture
            The mixture of these classes.

        Raises
        ------
        ValueError
            If a class is not known.
        """
        wanted = np.asarray(classes).tolist()
        missing = [name for name in wanted if name not in self.classes]
        if missing:
            raise ValueError(f"classes: unknown {missing!r}; there are {list(self.classes)!r}")
        index = [self.classes.index(name) for name in wanted]
        b = self.weights[index] / self.weights[index].sum() if weights is None else weights
        return ClassMixture(
            b, self.variances[index], self.centroid_gram[np.ix_(index, index)], np.array(wanted, dtype=object)
        )

    @classmethod
    def from_data(
        cls,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        preprocess: Callable[[FloatArray], FloatArray] | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> ClassMixture:
        """Describe labeled data as the theory sees it: shares, mean coordinate variances, centroid gram.

        Parameters
        ----------
        X : array-like of shape (n, …)
            Numbers; everything after the first axis is flattened.
        y : array-like of shape (n,)
            The labels.
        preprocess : callable, optional
            What the model does to its input, so that the variances and centroids are those the model
            sees; for images :func:`unit_scale`.
        sample_weight : array-like of shape (n,), optional
            Non-negative counts, for weighted or resampled data.

        Returns
        -------
        ClassMixture
            The mixture; its classes are the sorted labels.

        Notes
        -----
        The centroid of a finite sample is longer than the true one by the variance over the count; the gram's
        diagonal is corrected for it (and kept positive semi-definite).

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(400, 50)) * np.repeat([1.0, 0.5], 200)[:, None]
        >>> ClassMixture.from_data(X, np.repeat(["wide", "narrow"], 200)).variances.round(1)
        array([0.2, 1. ])
        """
        data = check_array("X", X)
        if data.ndim < 2:
            raise ValueError(f"X must have samples and features, got shape {data.shape}")
        data = data.reshape(len(data), -1)
        if preprocess is not None:
            data = check_array("preprocess(X)", preprocess(data)).reshape(len(data), -1)
        labels = np.asarray(y)
        check_same_length(X=data, y=labels, sample_weight=sample_weight)
        counts = np.ones(len(data)) if sample_weight is None else check_array("sample_weight", sample_weight)
        return cls._from_moments(data, labels, counts)

    @classmethod
    def _from_moments(cls, data: FloatArray, labels: npt.NDArray[Any], counts: FloatArray) -> ClassMixture:
        names, codes = np.unique(labels, return_inverse=True)
        onehot = np.zeros((len(names), len(data)))
        onehot[codes, np.arange(len(data))] = counts
        mass = onehot.sum(axis=1)
        if (mass <= 1).any():
            raise ValueError(f"class {names.tolist()[mass.argmin()]!r} of y must have at least 2 samples")
        means = onehot @ data / mass[:, None]
        squares = onehot @ np.einsum("ij,ij->i", data, data) / mass
        n_features = data.shape[1]
        variances = (squares / n_features - (means**2).mean(axis=1)) * mass / (mass - 1)
        if (variances <= _ROUNDING * squares / n_features).any():
            raise ValueError(
                f"class {names.tolist()[variances.argmin()]!r} of y does not vary: its variance is 0"
            )
        gram = means @ means.T / n_features - np.diag(variances / mass)
        values, vectors = np.linalg.eigh(gram)
        gram = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return cls(mass / mass.sum(), variances, gram, names)

    def centroids(self, dimension: int) -> FloatArray:
        """Centroids of the wanted geometry in ``dimension`` coordinates, along the first axes.

        Parameters
        ----------
        dimension : int
            N.

        Returns
        -------
        array of shape (C, N)
            The centroids.
        """
        check_integer("dimension", dimension, low=1)
        factor = self.centroid_factor()
        if factor.shape[1] > dimension:
            raise ValueError(
                f"dimension must be at least {factor.shape[1]} to hold the centroids, got {dimension}"
            )
        m = np.zeros((self.n_classes, dimension))
        m[:, : factor.shape[1]] = np.sqrt(dimension) * factor
        return m

    def class_counts(self, n_samples: int) -> IntArray:
        """Sample counts as close to the weights as whole numbers can be (largest remainders).

        Parameters
        ----------
        n_samples : int
            The number of samples in all.

        Returns
        -------
        array of int of shape (C,)
            The counts.
        """
        wanted = self.weights * n_samples
        counts = np.floor(wanted).astype(np.int64)
        order = np.argsort(counts - wanted, kind="stable")
        counts[order[: n_samples - counts.sum()]] += 1
        return counts


def _check_gram(gram: npt.ArrayLike, n_classes: int) -> FloatArray:
    r = check_array("centroid_gram", gram)
    if r.shape != (n_classes, n_classes):
        raise ValueError(f"centroid_gram must have shape {(n_classes, n_classes)}, got {r.shape}")
    if not np.allclose(r, r.T, atol=1e-10):
        raise ValueError("centroid_gram must be symmetric")
    lowest = float(np.linalg.eigvalsh(r)[0])
    if lowest < -_PSD_TOLERANCE * max(1.0, float(np.abs(r).max())):
        raise ValueError(
            f"centroid_gram must be positive semi-definite, got a lowest eigenvalue of {lowest:g}"
        )
    return (r + r.T) / 2
