"""The random-features model as a model: trained on any data in closed form, evaluated, and sampled backwards.

    s(x | A, W) = A φ(W x/√N)                                                        (Eq 4)

at one diffusion time, trained by gradient flow for a training time τ from A = 0 (Eq 6), with the diffusion
noise averaged exactly. Beside it stands the true score of a Gaussian mixture (Eq 141) with the domains of
its classes (Eqs 142–144).

Eq 2 prints −(x + s) for the backward drift. For the forward process of Eq 1, whose noise is √2 dB, it is
−(x + 2s). For the same reason the bound of Eq 139 has N where N/2 is printed: by Girsanov's theorem the
divergence of the two backward processes is ½∫ E‖2(s − s*)‖²/2 dt = N ∫ E_score dt, and that of their ends
is not larger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from equipoise._core.checks import FloatArray, check_array, check_integer, check_positive, check_same_length
from equipoise._core.random import RandomState, as_generator
from equipoise.theory.diffusion.coefficients import Activation, noise_variance, spread
from equipoise.theory.diffusion.curves import response
from equipoise.theory.diffusion.instances import decompose_data
from equipoise.theory.diffusion.mixture import ClassMixture

Score = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class RandomFeaturesScore:
    """A trained random-features score at one diffusion time.

    Attributes
    ----------
    projections : array of shape (P, N)
        W.
    readout : array of shape (N, P)
        A.
    diffusion_time : float
        t > 0.
    activation : callable
        φ.
    """

    projections: FloatArray
    readout: FloatArray
    diffusion_time: float
    activation: Activation = np.tanh

    def __call__(self, x: npt.ArrayLike) -> FloatArray:
        """The score at each row of x, (n, N)."""
        rows = np.atleast_2d(check_array("x", x))
        features = self.activation(rows @ self.projections.T / np.sqrt(rows.shape[1]))
        return np.asarray(features @ self.readout.T)

    @classmethod
    def train(
        cls,
        X: npt.ArrayLike,
        *,
        diffusion_time: float,
        training_time: float,
        features_per_dim: float = 60.0,
        sample_weight: npt.ArrayLike | None = None,
        activation: Activation = np.tanh,
        random_state: RandomState = None,
    ) -> RandomFeaturesScore:
        """Train on the rows of X by the closed form of gradient flow.

        Parameters
        ----------
        X : array-like of shape (M, N)
            The data.
        diffusion_time : float
            t > 0.
        training_time : float
            τ; a large one memorizes.
        features_per_dim : float
            P/N, above one.
        sample_weight : array-like of shape (M,), optional
            How often each sample is drawn.
        activation : callable
            φ, vectorized.
        random_state : int, generator or None
            The seed of the projections.

        Returns
        -------
        RandomFeaturesScore
            The trained score.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(300, 8))
        >>> score = RandomFeaturesScore.train(X, diffusion_time=0.5, training_time=50, random_state=0)
        >>> x = np.ones((1, 8))
        >>> bool(np.abs(score(x) + x).mean() < 0.3)  # the score of a standard normal is −x
        True
        """
        rows = np.atleast_2d(check_array("X", X))
        t, tau = (
            float(check_positive(*pair))
            for pair in (("diffusion_time", diffusion_time), ("training_time", training_time))
        )
        if check_positive("features_per_dim", features_per_dim) <= 1:
            raise ValueError(f"features_per_dim must exceed 1 (P > N), got {features_per_dim:g}")
        weights = np.ones(len(rows)) if sample_weight is None else check_array("sample_weight", sample_weight)
        check_same_length(X=rows, sample_weight=weights)
        n = rows.shape[1]
        w = as_generator(random_state).standard_normal((round(features_per_dim * n), n))
        modes = decompose_data(w, rows.T, weights / weights.sum(), t, activation)
        reached = response(modes.eigenvalues, np.array([tau]), None)[:, 0]
        readout = -((modes.target * reached) @ modes.vectors.T) / np.sqrt(noise_variance(t))
        return cls(w, readout, t, activation)


@dataclass(frozen=True)
class MixtureScore:
    """The true score of a Gaussian mixture whose centroids are given as vectors.

    Parameters
    ----------
    weights : array of shape (C,)
        b_c.
    variances : array of shape (C,)
        σ_c².
    centroids : array of shape (C, N)
        m_c.

    References
    ----------
    Nicoletti et al., Eqs 141–144.

    Examples
    --------
    >>> centroids = np.array([[3.0, 3.0], [-3.0, -3.0]])
    >>> score = MixtureScore(np.array([0.5, 0.5]), np.array([0.1, 0.1]), centroids)
    >>> np.abs(score([[3.0, 3.0]], 1e-6)).round(3).tolist()
    [[0.0, 0.0]]
    >>> score.responsibilities([[3.0, 3.0]], 0.1).round(3).tolist()
    [[1.0, 0.0]]
    """

    weights: FloatArray
    variances: FloatArray
    centroids: FloatArray

    @classmethod
    def of(cls, mixture: ClassMixture, dimension: int) -> MixtureScore:
        """The score of a mixture in ``dimension`` coordinates, its centroids along the first axes.

        Parameters
        ----------
        mixture : ClassMixture
            The mixture.
        dimension : int
            N.

        Returns
        -------
        MixtureScore
            Its score.
        """
        return cls(mixture.weights, mixture.variances, mixture.centroids(dimension))

    def responsibilities(self, x: npt.ArrayLike, diffusion_time: float) -> FloatArray:
        """b_c ζ_c(x): the probability of each class at each row, (n, C).

        Parameters
        ----------
        x : array-like of shape (n, N)
            The points.
        diffusion_time : float
            t > 0.

        Returns
        -------
        array of shape (n, C)
            The probabilities.
        """
        rows = np.atleast_2d(check_array("x", x))
        width = spread(self.variances, diffusion_time) ** 2
        away = rows[:, None] - np.exp(-diffusion_time) * self.centroids
        log_density = -0.5 * (away**2).sum(axis=2) / width - 0.5 * rows.shape[1] * np.log(width)
        joint = np.log(self.weights) + log_density
        return np.asarray(np.exp(joint - logsumexp(joint, axis=1, keepdims=True)))

    def __call__(self, x: npt.ArrayLike, diffusion_time: float) -> FloatArray:
        """The score at each row, (n, N)."""
        rows = np.atleast_2d(check_array("x", x))
        share = self.responsibilities(rows, diffusion_time)
        width = spread(self.variances, diffusion_time) ** 2
        pull = (share / width) @ (np.exp(-diffusion_time) * self.centroids)
        return np.asarray(pull - (share / width).sum(axis=1, keepdims=True) * rows)

    def at(self, diffusion_time: float) -> Score:
        """The score as a function of x alone.

        Parameters
        ----------
        diffusion_time : float
            t > 0.

        Returns
        -------
        callable
            The score at that time.
        """
        return lambda x: self(x, diffusion_time)

    def separation(self, diffusion_time: float, n: int = 1000, random_state: RandomState = 0) -> FloatArray:
        """Mean probability of their own class for samples of each class; 1 is well separated (Eqs 142–143).

        Parameters
        ----------
        diffusion_time : float
            t > 0.
        n : int
            Samples of each class.
        random_state : int, generator or None
            The source of the samples.

        Returns
        -------
        array of shape (C,)
            The mean probabilities.
        """
        rng = as_generator(random_state)
        width = spread(self.variances, diffusion_time)
        found = []
        for c, center in enumerate(np.exp(-diffusion_time) * self.centroids):
            x = center + width[c] * rng.standard_normal((n, len(center)))
            found.append(self.responsibilities(x, diffusion_time)[:, c].mean())
        return np.array(found)


def sample_backwards(
    scores: Mapping[float, Score], n: int, dimension: int, random_state: RandomState = None
) -> FloatArray:
    """Draw samples by the backward diffusion, from noise at the largest time to the smallest.

    Parameters
    ----------
    scores : mapping of float to callable
        A score for each diffusion time of the grid, such as a trained :class:`RandomFeaturesScore` each.
    n : int
        Samples to draw.
    dimension : int
        N.
    random_state : int, generator or None
        The seed.

    Returns
    -------
    array of shape (n, N)
        The samples, still with the noise of the smallest time.

    Notes
    -----
    Over a step h the score is held fixed and the rest is integrated exactly: x ← e^h x + 2(e^h − 1) s(x) +
    √(e^{2h} − 1) z.

    Examples
    --------
    >>> true = MixtureScore(np.ones(1), np.array([0.25]), np.array([[2.0, -1.0]]))
    >>> grid = np.geomspace(1e-3, 4, 100)
    >>> drawn = sample_backwards({t: true.at(t) for t in grid}, 2000, 2, random_state=0)
    >>> drawn.mean(axis=0).round(1), drawn.std(axis=0).round(1)
    (array([ 2., -1.]), array([0.5, 0.5]))
    """
    check_integer("n", n, low=1)
    check_integer("dimension", dimension, low=1)
    times = sorted(scores, reverse=True)
    check_positive("diffusion times", times)
    rng = as_generator(random_state)
    x = rng.standard_normal((n, dimension))
    for now, then in pairwise(times):
        h = now - then
        x = (
            np.exp(h) * x
            + 2 * np.expm1(h) * scores[now](x)
            + np.sqrt(np.expm1(2 * h)) * rng.standard_normal(x.shape)
        )
    return np.asarray(x)


def divergence_bound(diffusion_times: npt.ArrayLike, score_errors: npt.ArrayLike, dimension: int) -> float:
    """An upper bound of the divergence of samples from data, N ∫ E_score(t) dt (Eqs 139–140, factor mended).

    Parameters
    ----------
    diffusion_times : array-like
        The times, increasing.
    score_errors : array-like
        The mean squared error of the score by coordinate at each of them (Eq 138).
    dimension : int
        N.

    Returns
    -------
    float
        The integral over the given times, by the trapezoid rule.

    Examples
    --------
    >>> divergence_bound([0.0, 1.0, 2.0], [0.1, 0.1, 0.1], dimension=10)
    2.0
    """
    t, errors = check_array("diffusion_times", diffusion_times), check_array("score_errors", score_errors)
    check_same_length(diffusion_times=t, score_errors=errors)
    return float(dimension * np.trapezoid(errors, t))
