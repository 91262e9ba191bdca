"""Gaussian mixtures with a given geometry of centroids.

Nicoletti, Ma, Ventura, Saglietti & Sarao Mannelli, "The Interplay of Data Structure and Imbalance in the
Learning Dynamics of Diffusion Models", Eq 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import (
    FloatArray,
    check_array,
    check_distribution,
    check_in_range,
    check_integer,
    check_positive,
    check_same_length,
)
from equipoise._core.random import RandomState, as_generator
from equipoise.datasets.dataset import Dataset
from equipoise.datasets.imbalance import apportion


@dataclass(frozen=True)
class GaussianMixture:
    """P(x) = Σ_c b_c N(x; m_c, σ_c² I) (Eq 5): isotropic classes, one component per class.

    Parameters
    ----------
    centroids : array of shape (classes, features)
        m_c, one row per class.
    variances : array of shape (classes,)
        σ_c², one a class.
    weights : array of shape (classes,)
        b_c, which sum to 1.

    Examples
    --------
    >>> mixture = make_gaussian_mixture(100, variances=[0.5, 0.25], weights=[0.9, 0.1], random_state=0)
    >>> mixture.gram.round(12)
    array([[1., 0.],
           [0., 1.]])
    >>> mixture.sample(50, random_state=1).class_counts
    {0: 45, 1: 5}
    """

    centroids: FloatArray
    variances: FloatArray
    weights: FloatArray

    def __post_init__(self) -> None:
        centroids = check_array("centroids", self.centroids)
        if centroids.ndim != 2:
            raise ValueError(f"centroids must have one row a class, got shape {centroids.shape}")
        variances = np.atleast_1d(check_positive("variances", self.variances))
        weights = check_distribution("weights", self.weights)
        check_same_length(centroids=centroids, variances=variances, weights=weights)
        for name, value in (("centroids", centroids), ("variances", variances), ("weights", weights)):
            object.__setattr__(self, name, value)

    @property
    def n_features(self) -> int:
        """The number N of features."""
        return int(self.centroids.shape[1])

    @property
    def gram(self) -> FloatArray:
        """m_c·m_d/N: entries of order one for extensive centroids."""
        return self.centroids @ self.centroids.T / self.n_features

    def sample(self, n_samples: int, *, exact: bool = True, random_state: RandomState = None) -> Dataset:
        """Draw samples, rows shuffled; ``exact`` fixes the class counts at b_c·n, else labels are drawn.

        Parameters
        ----------
        n_samples : int
            The number of samples.
        exact : bool
            Whether the class counts are fixed at the shares; otherwise each label is drawn.
        random_state : int, generator or None
            The source of randomness.

        Returns
        -------
        Dataset
            The samples and their classes.
        """
        n_samples = check_integer("n_samples", n_samples, low=1)
        rng = as_generator(random_state)
        n_classes = len(self.weights)
        if exact:
            y = rng.permutation(np.repeat(np.arange(n_classes), apportion(n_samples, self.weights)))
        else:
            y = rng.choice(n_classes, size=n_samples, p=self.weights)
        noise = rng.standard_normal((n_samples, self.n_features))
        X = self.centroids[y] + np.sqrt(self.variances)[y, None] * noise
        return Dataset(X, y.astype(np.int64), name="gaussian mixture")


def make_gaussian_mixture(
    n_features: int,
    *,
    variances: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    gram: npt.ArrayLike | None = None,
    random_state: RandomState = None,
) -> GaussianMixture:
    """A mixture whose centroids have the inner products m_c·m_d = N·gram[c, d], turned at random.

    ``gram`` is the identity by default: orthogonal centroids of length √N, the paper's baseline. Use
    `gram_matrix` to write it in norms and cosines; a gram matrix of zeros puts all classes at the origin.
    ``weights`` are equal by default.

    Parameters
    ----------
    n_features : int
        The number N of features.
    variances : array of shape (classes,)
        σ_c², one a class.
    weights : array of shape (classes,), optional
        The class shares b_c; equal by default.
    gram : array of shape (classes, classes), optional
        The inner products of the centroids over N; the identity by default.
    random_state : int, generator or None
        The source of randomness.

    Returns
    -------
    GaussianMixture
        The mixture.

    Examples
    --------
    >>> make_gaussian_mixture(10, variances=[0.5, 0.25], random_state=0).centroids.shape
    (2, 10)
    """
    n_features = check_integer("n_features", n_features, low=1)
    variances = np.atleast_1d(check_positive("variances", variances))
    n_classes = len(variances)
    matrix = np.eye(n_classes) if gram is None else check_array("gram", gram)
    centroids = centroids_from_gram(n_features * matrix, n_features, random_state=random_state)
    check_same_length(variances=variances, gram=matrix)
    shares = np.full(n_classes, 1 / n_classes) if weights is None else np.asarray(weights, dtype=np.float64)
    return GaussianMixture(centroids, variances, shares)


def mixture_like(
    X: npt.ArrayLike, y: npt.ArrayLike, *, n_features: int | None = None, random_state: RandomState = None
) -> GaussianMixture:
    """The mixture with the class shares, mean variances, centroid norms and cosines of given data.

    What the comparison of random features with trained networks needs (Result 4, Fig 6). Inner products are
    kept per dimension, so ``n_features`` may differ from that of ``X``; class c is the c-th sorted label.

    Parameters
    ----------
    X : array of shape (samples, …)
        The data; images are flattened.
    y : array of shape (samples,)
        One label per sample.
    n_features : int, optional
        The number of features of the mixture; by default that of the data.
    random_state : int, generator or None
        The source of randomness.

    Returns
    -------
    GaussianMixture
        The mixture.

    Examples
    --------
    >>> data = make_gaussian_mixture(400, variances=[0.5, 0.1], random_state=0).sample(2000, random_state=0)
    >>> mixture_like(data.X, data.y, n_features=50, random_state=0).variances.round(2)
    array([0.5, 0.1])
    """
    table = check_array("X", X)
    table = table.reshape(len(table), -1)
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must be one label a row, got shape {labels.shape}")
    check_same_length(X=table, y=labels)
    groups = [table[labels == label] for label in np.unique(labels)]
    means = np.stack([group.mean(axis=0) for group in groups])
    variances = np.array([group.var(axis=0).mean() for group in groups])
    weights = np.array([len(group) / len(table) for group in groups])
    size = table.shape[1] if n_features is None else n_features
    gram = means @ means.T / table.shape[1]
    return make_gaussian_mixture(
        size, variances=variances, weights=weights, gram=gram, random_state=random_state
    )


def centroids_from_gram(
    gram: npt.ArrayLike, n_features: int, *, random_state: RandomState = None
) -> FloatArray:
    """Vectors with the given inner products, in a uniformly random orientation.

    With G = V diag(λ) Vᵀ and a random orthonormal frame Q, the rows of V diag(√λ) Qᵀ have Gram matrix G.

    Parameters
    ----------
    gram : array of shape (classes, classes)
        The inner products: symmetric, with no negative eigenvalue.
    n_features : int
        The length of the vectors.
    random_state : int, generator or None
        The source of randomness.

    Returns
    -------
    array of shape (classes, features)
        The vectors.

    Examples
    --------
    >>> m = centroids_from_gram([[4, 1], [1, 1]], 30, random_state=0)
    >>> (m @ m.T).round(12)
    array([[4., 1.],
           [1., 1.]])
    """
    matrix = check_array("gram", gram)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"gram must be square, got shape {matrix.shape}")
    if not np.allclose(matrix, matrix.T):
        raise ValueError("gram must be symmetric")
    values, vectors = np.linalg.eigh(matrix)
    scale = max(float(np.abs(values).max()), np.finfo(float).tiny)
    if values.min() < -1e-10 * scale:
        raise ValueError(f"gram must be positive semidefinite, got the eigenvalue {values.min():g}")
    kept = values > 1e-14 * scale
    rank = int(kept.sum())
    if rank > n_features:
        raise ValueError(f"gram of rank {rank} needs at least as many features, got {n_features}")
    frame, triangle = np.linalg.qr(as_generator(random_state).standard_normal((n_features, rank)))
    frame = frame * np.sign(np.diag(triangle))  # makes the frame uniform (Haar)
    return np.asarray((vectors[:, kept] * np.sqrt(values[kept])) @ frame.T)


def gram_matrix(norms: npt.ArrayLike, cosines: npt.ArrayLike = 0.0) -> FloatArray:
    """Inner products from norms and cosines: one cosine for all pairs, or a matrix of them.

    Parameters
    ----------
    norms : array of shape (classes,)
        The lengths.
    cosines : float or array of shape (classes, classes)
        The cosines between them; the diagonal is taken as 1.

    Returns
    -------
    array of shape (classes, classes)
        The inner products.

    Examples
    --------
    >>> gram_matrix([1, 2], 0.5)
    array([[1., 1.],
           [1., 4.]])
    """
    lengths = np.atleast_1d(check_in_range("norms", norms, 0))
    angles = np.array(
        np.broadcast_to(check_in_range("cosines", cosines, -1, 1), (lengths.size, lengths.size))
    )
    np.fill_diagonal(angles, 1.0)
    return np.asarray(np.outer(lengths, lengths) * angles)
