"""When a class becomes visible in backward diffusion (Nicoletti et al., Section 3.1, Result 1, Fig 1).

At large diffusion time the feature covariance is a Wishart matrix whose population has one spike per direction of
the centroids (Eq 10):

    U = γ²/N · W (1 + e^{-2t} Σ_c b_c m_c m_cᵀ) Wᵀ + (β̃ − γ²)·1.

With κ_k the eigenvalues of the matrix √b_c r_cc' √b_c' the spikes are e^{-2t} N κ_k. A spike leaves the bulk
where it exceeds √(N/P) (Baik, Ben Arous, Péché), so direction k speciates at

    t_k = ½ log N + ½ log(κ_k √χ_p),

which is Result 1 with its constant: κ ~ b_c m_c², so weak imbalance leaves ½ log N, and b_c ~ N^{-a} or
‖m_c‖² ~ N^{1-a} give (1 − a)/2 · log N. Past the transition the overlap of the projected direction with its
eigenvector follows from the resolvent of the spikeless matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator, eigsh

from equipoise._core.checks import FloatArray, check_in_range, check_integer, check_positive, check_type
from equipoise._core.random import RandomState, as_generator, derive_seed, draw_seed
from equipoise.theory.diffusion.coefficients import Activation
from equipoise.theory.diffusion.instances import draw, equivalent_factor
from equipoise.theory.diffusion.mixture import ClassMixture

_SEPARATING = 0.1  # share of the squared distance of two centroids by which a direction tells them apart


def leading_speciation_time(
    dimension: int, weight_exponent: npt.ArrayLike = 0.0, norm_exponent: npt.ArrayLike = 0.0
) -> FloatArray:
    """Result 1 to leading order: (1 − a)/2 · log N (Eqs 12–13).

    Parameters
    ----------
    dimension : int
        N.
    weight_exponent : array-like
        a_c with b_c ~ N^{-a_c}; 0 is weak imbalance.
    norm_exponent : array-like
        a_c with ‖m_c‖² ~ N^{1−a_c}; 0 is an extensive centroid.

    Returns
    -------
    array
        The diffusion time of each class.

    Examples
    --------
    >>> leading_speciation_time(1000, weight_exponent=[0, 0.5]).round(3)
    array([3.454, 1.727])
    """
    check_integer("dimension", dimension, low=2)
    a = check_in_range("weight_exponent", weight_exponent, 0, 1)
    a = a + check_in_range("norm_exponent", norm_exponent, 0, 1)
    return np.asarray(np.maximum(1 - a, 0.0) / 2 * np.log(dimension))


def _spikes(mixture: ClassMixture) -> tuple[FloatArray, FloatArray]:
    """κ_k, descending, and each class's centroid along the directions of the spikes, (C, k)."""
    factor = check_type("mixture", mixture, ClassMixture).centroid_factor()
    kappa, rotation = np.linalg.eigh(factor.T @ (mixture.weights[:, None] * factor))
    kappa, rotation = kappa[::-1], rotation[:, ::-1]
    return kappa, factor @ rotation


@dataclass(frozen=True)
class SpeciationTimes:
    """Diffusion times at which each class can be seen, and told from the others.

    Attributes
    ----------
    appearance : when the direction that carries most of the class's centroid leaves the bulk. For centroids with a
        large common part this is when their common mean appears, which says nothing of the class
    separation : when the class can be told from every other class: for each other class, the first direction that
        carries at least a tenth of the squared distance of the two centroids; the latest of these
    """

    appearance: FloatArray
    separation: FloatArray


def speciation_time(mixture: ClassMixture, dimension: int, features_per_dim: float) -> SpeciationTimes:
    """The diffusion times at which each class appears and separates, with their constants (Result 1).

    Parameters
    ----------
    mixture : ClassMixture
        The classes.
    dimension : int
        N.
    features_per_dim : float
        χ_p.

    Returns
    -------
    SpeciationTimes
        A class without a centroid never appears, and two classes with the same centroid never separate: −inf. A
        time below zero means that the direction does not leave the bulk at any diffusion time.

    References
    ----------
    Nicoletti et al., Eqs 10–13 and Result 1.

    Examples
    --------
    >>> rare = ClassMixture([1 - 1e-3, 1e-3], [0.5, 0.5], np.eye(2))
    >>> speciation_time(rare, 1000, 2.0).appearance.round(2)
    array([3.63, 0.17])
    >>> near = ClassMixture([0.5, 0.5], [0.5, 0.5], [[1, 0.9], [0.9, 1]])  # centroids at cosine 0.9
    >>> found = speciation_time(near, 1000, 2.0)
    >>> found.appearance.round(2), found.separation.round(2)
    (array([3.6, 3.6]), array([2.13, 2.13]))
    """
    check_integer("dimension", dimension, low=2)
    p = float(check_positive("features_per_dim", features_per_dim))
    kappa, along = _spikes(mixture)
    c = mixture.n_classes
    times = np.append(0.5 * np.log(dimension * np.maximum(kappa, 1e-300) * np.sqrt(p)), -np.inf)
    never = len(kappa)
    seen = [int(np.argmax(own)) if own.any() else never for own in along**2]
    apart = np.full((c, c), np.inf)
    for i, j in permutations(range(c), 2):
        share = (along[i] - along[j]) ** 2
        carried = np.flatnonzero(share >= _SEPARATING * share.sum()) if share.any() else [never]
        apart[i, j] = times[carried[0]]
    return SpeciationTimes(times[seen], apart.min(axis=1))


def spike_overlap(spike: npt.ArrayLike, features_per_dim: float) -> FloatArray:
    """Squared overlap of a projected direction W e/‖W e‖ with its eigenvector, for a spike θ on W(1 + θeeᵀ)Wᵀ/N.

    For θ > χ_p^{-1/2} the outlier is at λ = (1 + θ)(χ_p + 1/θ). The vector w = W e perturbs a Marchenko–Pastur
    matrix of resolvent G by rank one, (1 + θ)χ_p G(λ) = 1, and its overlap is G²/(−G') = 1 − 1/(χ_p θ²).

    Parameters
    ----------
    spike : array-like
        θ.
    features_per_dim : float
        χ_p.

    Returns
    -------
    array
        The squared overlap; 0 below the transition.

    Examples
    --------
    >>> spike_overlap([0.5, 1.0, 10.0], features_per_dim=2.0).round(3)
    array([0.   , 0.5  , 0.995])
    """
    theta = check_in_range("spike", spike, 0, np.inf)
    p = float(check_positive("features_per_dim", features_per_dim))
    out = theta > 1 / np.sqrt(p)
    safe = np.where(out, theta, 1.0)
    return np.where(out, 1 - 1 / (p * safe**2), 0.0)


@dataclass(frozen=True)
class Overlaps:
    """Root-mean-square overlaps of the projected centroids with the top eigenvectors, (n_times, C).

    Attributes
    ----------
    times : array of shape (n_times,)
        The diffusion times.
    theory : array of shape (n_times, C)
        The overlaps for N → ∞.
    simulation : array of shape (n_times, C), optional
        Their means over instances.
    simulation_spread : array of shape (n_times, C), optional
        Their standard deviations over instances.
    """

    times: FloatArray
    theory: FloatArray
    simulation: FloatArray | None = None
    simulation_spread: FloatArray | None = None


def centroid_overlaps(
    mixture: ClassMixture,
    times: npt.ArrayLike,
    dimension: int,
    features_per_dim: float,
    *,
    samples_per_dim: float | None = None,
    n_instances: int = 0,
    activation: Activation = np.tanh,
    random_state: RandomState = None,
) -> Overlaps:
    """Overlaps of the projected centroids with the top eigenvectors of U against diffusion time (Fig 1).

    Parameters
    ----------
    mixture : ClassMixture
        The classes.
    times : array-like
        The diffusion times t.
    dimension : int
        N.
    features_per_dim : float
        χ_p.
    samples_per_dim : float, optional
        χ_m, for the simulation.
    n_instances : int
        How often the equivalent matrix of Eq 50 is drawn for each t, to compute its top eigenvectors, one
        per direction of the centroids; 0 for the theory alone.
    activation : callable
        φ, for the simulation.
    random_state : int, generator or None
        The seed of the simulation.

    Returns
    -------
    Overlaps
        The overlaps of theory and, if asked for, of simulation.

    Examples
    --------
    >>> mix = ClassMixture([0.5, 0.5], [0.5, 0.5], np.eye(2))
    >>> centroid_overlaps(mix, [0.1, 5.0], dimension=200, features_per_dim=2.0).theory.shape
    (2, 2)
    """
    t = np.atleast_1d(check_positive("times", times))
    kappa, along = _spikes(mixture)
    norm = (along**2).sum(axis=1, keepdims=True)
    share = np.divide(along**2, norm, out=np.zeros_like(along), where=norm > 0)
    theta = np.exp(-2 * t)[:, None] * dimension * kappa
    theory = np.sqrt(spike_overlap(theta, features_per_dim) @ share.T)
    if not n_instances:
        return Overlaps(t, theory)
    m = float(check_positive("samples_per_dim", 1.0 if samples_per_dim is None else samples_per_dim))
    seed = draw_seed(random_state)
    squares = np.array(
        [
            [
                _simulated(mixture, tk, dimension, features_per_dim, m, activation, derive_seed(seed, i))
                for tk in t
            ]
            for i in range(n_instances)
        ]
    )
    spread = np.sqrt(squares).std(axis=0) if n_instances > 1 else np.full(theory.shape, np.nan)
    return Overlaps(t, theory, np.sqrt(squares.mean(axis=0)), spread)


def _simulated(
    mixture: ClassMixture,
    t: float,
    dimension: int,
    features_per_dim: float,
    samples_per_dim: float,
    activation: Activation,
    seed: int,
) -> FloatArray:
    """Σ_i (μ_c·ψ_i)²/‖μ_c‖² over the top eigenvectors of an instance of Eq 50, for each class."""
    from equipoise.theory.diffusion.model import RandomFeatures

    model = RandomFeatures(mixture, float(t), features_per_dim, samples_per_dim, activation)
    instance = draw(model, dimension, seed)
    x, floor, _ = equivalent_factor(model, instance)

    def apply(v: FloatArray) -> FloatArray:
        return np.asarray(x @ (x.T @ v) + floor * np.ravel(v))

    n = x.shape[0]
    count = max(1, mixture.centroid_factor().shape[1])
    start = as_generator(derive_seed(seed, "start")).standard_normal(n)
    operator: Any = LinearOperator((n, n), matvec=apply, dtype=np.float64)
    top: Any = eigsh  # its stubs know no typed operator
    vectors = top(operator, k=count, v0=start, tol=1e-6)[1]
    mu = instance.projections @ mixture.centroids(dimension).T
    return np.asarray(((vectors.T @ mu) ** 2).sum(axis=0) / np.maximum((mu**2).sum(axis=0), 1e-300))
