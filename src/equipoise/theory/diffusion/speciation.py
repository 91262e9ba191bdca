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
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator, eigsh

from equipoise._core.checks import FloatArray, check_in_range, check_integer, check_positive, check_type
from equipoise._core.random import RandomState, as_generator, derive_seed, draw_seed
from equipoise.theory.diffusion.coefficients import Activation
from equipoise.theory.diffusion.instances import draw, equivalent_factor
from equipoise.theory.diffusion.mixture import GaussianMixture


def leading_speciation_time(
    dimension: int, weight_exponent: npt.ArrayLike = 0.0, norm_exponent: npt.ArrayLike = 0.0
) -> FloatArray:
    """Result 1 to leading order: (1 − a)/2 · log N (Eqs 12–13).

    Parameters
    ----------
    dimension : N
    weight_exponent : a_c with b_c ~ N^{-a_c}; 0 is weak imbalance
    norm_exponent : a_c with ‖m_c‖² ~ N^{1−a_c}; 0 is an extensive centroid

    Examples
    --------
    >>> leading_speciation_time(1000, weight_exponent=[0, 0.5]).round(3)
    array([3.454, 1.727])
    """
    check_integer("dimension", dimension, low=2)
    a = check_in_range("weight_exponent", weight_exponent, 0, 1)
    a = a + check_in_range("norm_exponent", norm_exponent, 0, 1)
    return np.asarray(np.maximum(1 - a, 0.0) / 2 * np.log(dimension))


def _spikes(mixture: GaussianMixture) -> tuple[FloatArray, FloatArray]:
    """κ_k, descending, and the share of each class's centroid along each spike's direction, (C, k)."""
    factor = check_type("mixture", mixture, GaussianMixture).centroid_factor()
    kappa, rotation = np.linalg.eigh(factor.T @ (mixture.weights[:, None] * factor))
    kappa, rotation = kappa[::-1], rotation[:, ::-1]
    along = factor @ rotation
    norm = (along**2).sum(axis=1, keepdims=True)
    return kappa, np.divide(along**2, norm, out=np.zeros_like(along), where=norm > 0)


def speciation_time(mixture: GaussianMixture, dimension: int, features_per_dim: float) -> FloatArray:
    """The diffusion time at which each class becomes inferable, with its constant.

    A class speciates with the direction that carries most of its centroid. Centered classes never do: −inf.
    A time below zero means that the class does not leave the bulk at any diffusion time.

    Examples
    --------
    >>> weak = GaussianMixture([0.7, 0.3], [0.5, 0.5], np.eye(2))
    >>> strong = GaussianMixture([1 - 1e-3, 1e-3], [0.5, 0.5], np.eye(2))
    >>> speciation_time(weak, 1000, 2.0).round(2), speciation_time(strong, 1000, 2.0).round(2)
    (array([3.45, 3.03]), array([3.63, 0.17]))
    """
    check_integer("dimension", dimension, low=2)
    p = float(check_positive("features_per_dim", features_per_dim))
    kappa, share = _spikes(mixture)
    times = np.full(mixture.n_classes, -np.inf)
    if kappa.size:
        direction = 0.5 * np.log(dimension * np.maximum(kappa, 1e-300) * np.sqrt(p))
        present = share.sum(axis=1) > 0
        times[present] = direction[share.argmax(axis=1)][present]
    return times


def spike_overlap(spike: npt.ArrayLike, features_per_dim: float) -> FloatArray:
    """Squared overlap of a projected direction W e/‖W e‖ with its eigenvector, for a spike θ on W(1 + θeeᵀ)Wᵀ/N.

    For θ > χ_p^{-1/2} the outlier is at λ = (1 + θ)(χ_p + 1/θ). The vector w = W e perturbs a Marchenko–Pastur
    matrix of resolvent G by rank one, (1 + θ)χ_p G(λ) = 1, and its overlap is G²/(−G') = 1 − 1/(χ_p θ²).

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
    """Root-mean-square overlaps of the projected centroids with the top eigenvectors, (n_times, C)."""

    times: FloatArray
    theory: FloatArray
    simulation: FloatArray | None = None
    simulation_spread: FloatArray | None = None


def centroid_overlaps(
    mixture: GaussianMixture,
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
    mixture, dimension, features_per_dim : the model
    times : diffusion times t
    samples_per_dim, n_instances : with n_instances > 0 the equivalent matrix of Eq 50 is drawn that often for
        each t and its top eigenvectors, one per direction of the centroids, are computed
    activation, random_state : for the simulation
    """
    t = np.atleast_1d(check_positive("times", times))
    kappa, share = _spikes(mixture)
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
    mixture: GaussianMixture,
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
