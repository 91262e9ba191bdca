"""What one more sample is worth: effective numbers of random covering, class weights and data scatter.

Wu & Li, "Revisiting the Effective Number Theory for Imbalanced Learning" (equation numbers refer to it),
after Cui, Jia, Lin, Song & Belongie, "Class-Balanced Loss Based on Effective Number of Samples", CVPR 2019.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, chdtri, ndtr

from equipoise._core.checks import (
    FloatArray,
    check_array,
    check_counts,
    check_in_range,
    check_integer,
)
from equipoise._core.random import RandomState, as_generator


def effective_number(n: npt.ArrayLike, beta: npt.ArrayLike, offset: npt.ArrayLike = 0.0) -> FloatArray:
    """Expected volume that ``n`` random unit samples cover (Eqs 3 and 13).

    A new sample falls on its own class with probability p₁ = E/V (V = 1/(1−β) is the class volume), on
    another class with probability (1−p₁)·p₂ and is lost there (``offset`` p₂), and otherwise adds one unit
    (Assumption 5). The recursion E_n = β'·E_{n−1} + 1 − p₂ with β' = β + (1−β)·p₂ has the solution

    E_n = (1 − p₂)(1 − β'ⁿ)/(1 − β') = (1 − β'ⁿ)/(1 − β),

    since 1 − β' = (1−β)(1−p₂). The second form is computed, through ``expm1``: it has no 0/0 at p₂ = 1 and
    keeps its digits for β → 1, where E_n → n·(1 − p₂).

    Parameters
    ----------
    n : array-like
        The number of samples.
    beta : array-like
        β in [0, 1]; 1/(1 − β) is the volume of the class.
    offset : array-like
        p₂ in [0, 1], the probability that a new sample is lost to another class.

    Returns
    -------
    array
        E_n.

    Examples
    --------
    >>> effective_number([1, 10, 1000], 0.9).round(4)
    array([ 1.    ,  6.5132, 10.    ])
    >>> effective_number(10, 0.9, offset=1.0)
    array(0.)
    """
    counts = check_in_range("n", n, 0)
    beta = check_in_range("beta", beta, 0, 1)
    offset = check_in_range("offset", offset, 0, 1)
    free, novel = 1 - beta, 1 - offset
    with np.errstate(divide="ignore", invalid="ignore"):
        covered = -np.expm1(np.where(counts > 0, counts * np.log1p(-free * novel), 0.0)) / free
    return np.asarray(np.where(free > 0, covered, counts * novel))


def effective_number_path(offsets: npt.ArrayLike, beta: float, *, enlarged: bool = False) -> FloatArray:
    """E_1 … E_n by the recursion of Eq 12, with an offset p₂(x) of its own for each sample.

    E_i = E_{i−1} + (1 − p₁)(1 − p₂(x_i))·v_i with p₁ = (1−β)·E_{i−1} and unit volume v_i = 1. With ``enlarged``,
    v_i = 1/(1 − p₂(x_i)) = 1/p(y|x_i) (Eq 14), and the offsets cancel: that is Lemma 1, the reason for
    the weight 1/p in Eq 17.

    Parameters
    ----------
    offsets : array of shape (n,)
        p₂ of each sample, in [0, 1).
    beta : float
        β in [0, 1]; 1/(1 − β) is the volume of the class.
    enlarged : bool
        Whether a sample's volume is 1/(1 − p₂) instead of 1.

    Returns
    -------
    array of shape (n,)
        E_1 … E_n.

    Examples
    --------
    >>> effective_number_path([0.0, 0.0], beta=0.9)
    array([1. , 1.9])
    >>> effective_number_path([0.3, 0.7], beta=0.9, enlarged=True)
    array([1. , 1.9])
    """
    novel = 1 - check_in_range("offsets", offsets, 0, 1, closed="left")
    free = 1 - float(check_in_range("beta", beta, 0, 1))
    path, covered = np.empty(novel.size), 0.0
    for i, share in enumerate(novel):
        volume = 1 / share if enlarged else 1.0
        covered += (1 - free * covered) * share * volume
        path[i] = covered
    return path


def effective_number_weights(
    class_counts: npt.ArrayLike, beta: float = 0.9999, *, normalize: bool = True
) -> FloatArray:
    """Class weights (1−β)/(1−β^n), inverse to the effective number (Eqs 1 and 4).

    β = 0 weighs all classes alike and β = 1 by 1/n (Eq 5). ``normalize`` makes the weights sum to the number
    of classes.

    Parameters
    ----------
    class_counts : array of shape (C,)
        The samples of each class.
    beta : float
        β in [0, 1]; 1/(1 − β) is the volume of the class.
    normalize : bool
        Whether the weights sum to the number of classes.

    Returns
    -------
    array of shape (C,)
        The weights.

    References
    ----------
    Cui et al.: Class-balanced loss based on effective number of samples, CVPR 2019.

    Examples
    --------
    >>> effective_number_weights([100, 10, 1], beta=1.0).round(3)
    array([0.027, 0.27 , 2.703])
    """
    counts = check_counts("class_counts", class_counts, minimum=1)
    weights = 1 / effective_number(counts, beta)
    return weights * weights.size / weights.sum() if normalize else weights


def simulate_covering(
    n: int,
    volume: float,
    offset: npt.ArrayLike = 0.0,
    *,
    enlarged: bool = False,
    repeats: int = 1000,
    random_state: RandomState = None,
) -> FloatArray:
    """Covered volumes after each of ``n`` draws, for ``repeats`` independent runs: shape (repeats, n).

    A draw falls on the covered part with the probability covered/volume and adds nothing; elsewhere it is lost
    to another class with the probability ``offset``, or else adds its own volume: the walk whose mean
    :func:`effective_number` and :func:`effective_number_path` give with β = 1 − 1/volume.

    Parameters
    ----------
    n : int
        Draws.
    volume : float
        The volume of the class, in units of a sample's.
    offset : float or array of shape (n,)
        p₂, one for all draws or one for each (Eq 14).
    enlarged : bool
        Whether a draw adds 1/(1 − p₂) instead of 1, as in Lemma 1.
    repeats : int
        The number of independent runs.
    random_state : int, generator or None
        The source of randomness.

    Returns
    -------
    array of shape (repeats, n)
        The covered volume after each draw.

    Examples
    --------
    >>> simulate_covering(3, volume=1, repeats=1, random_state=0)
    array([[1., 1., 1.]])
    """
    n, repeats = check_integer("n", n, low=1), check_integer("repeats", repeats, low=1)
    volume = float(check_in_range("volume", volume, 1))
    lost = check_in_range("offset", offset, 0, 1, closed="left" if enlarged else "both")
    if lost.ndim > 1 or lost.size not in (1, n):
        raise ValueError(f"offset must be a number or have {n} values, got shape {lost.shape}")
    lost = np.broadcast_to(lost, n)
    gain = 1 / (1 - lost) if enlarged else np.ones(n)
    rng = as_generator(random_state)
    covered, path = np.zeros(repeats), np.empty((repeats, n))
    for draw in range(n):
        new = rng.random(repeats) * volume >= covered
        kept = rng.random(repeats) >= lost[draw]
        covered = covered + gain[draw] * (new & kept)
        path[:, draw] = covered
    return path


def data_scatter(direction: npt.ArrayLike, covariance: npt.ArrayLike) -> float:
    """Variance of a class along a boundary's normal, wᵀΣw/wᵀw (Eq 15).

    Parameters
    ----------
    direction : array of shape (d,)
        w, the normal of the boundary.
    covariance : array of shape (d, d)
        Σ of the class.

    Returns
    -------
    float
        The variance.

    Examples
    --------
    >>> data_scatter([2.0, 0.0], [[3.0, 0.0], [0.0, 1.0]])
    3.0
    """
    w, sigma = check_array("direction", direction), check_array("covariance", covariance)
    return float(w @ sigma @ w / (w @ w))


@dataclass
class ScatterStatistics:
    """Running mean and spread of ν_y − ν_z over each class y: all of Eq 16 without a covariance matrix.

    (ω_y−ω_z)ᵀΣ_y(ω_y−ω_z) is the variance of the logit difference ν_y − ν_z over class y, because the bias
    drops out of a variance. So DS_yz = Var_y(ν_y − ν_z)/‖ω_y − ω_z‖² costs O(n·C) for all pairs. Batches and
    processes merge exactly (Chan, Golub & LeVeque 1983).

    Attributes
    ----------
    count : array of shape (C,)
        The samples of each class so far.
    mean : array of shape (C, C)
        The mean of ν_y − ν_z over class y.
    spread : array of shape (C, C)
        The sum of its squared deviations.

    Examples
    --------
    >>> stats = ScatterStatistics.empty(2)
    >>> stats.update([[1.0, 0.0], [3.0, 0.0], [0.0, 5.0]], [0, 0, 1])
    >>> stats.variances()
    array([[0., 1.],
           [0., 0.]])
    """

    count: FloatArray
    mean: FloatArray
    spread: FloatArray  # sum of squared deviations

    @classmethod
    def empty(cls, n_classes: int) -> ScatterStatistics:
        """Statistics of no samples.

        Parameters
        ----------
        n_classes : int
            The number of classes C.

        Returns
        -------
        ScatterStatistics
            The statistics.
        """
        n_classes = check_integer("n_classes", n_classes, low=1)
        return cls(np.zeros(n_classes), np.zeros((n_classes, n_classes)), np.zeros((n_classes, n_classes)))

    def update(self, logits: npt.ArrayLike, target: npt.ArrayLike) -> None:
        """Take in a batch of logits (n, C) with their classes (n,).

        Parameters
        ----------
        logits : array of shape (n, C)
            The logits ν.
        target : array of int of shape (n,)
            The classes.
        """
        z = check_array("logits", logits)
        y = check_counts("target", target)
        n_classes = self.count.size
        if z.ndim != 2 or z.shape[1] != n_classes:
            raise ValueError(f"logits must have {n_classes} columns, got shape {z.shape}")
        if y.shape != z.shape[:1] or y.max() >= n_classes:
            raise ValueError(f"target must hold {z.shape[0]} classes below {n_classes}, got up to {y.max()}")
        difference = np.take_along_axis(z, y[:, None], axis=1) - z
        batch = ScatterStatistics.empty(n_classes)
        batch.count = np.bincount(y, minlength=n_classes).astype(np.float64)
        np.add.at(batch.mean, y, difference)
        batch.mean /= np.maximum(batch.count, 1)[:, None]
        np.add.at(batch.spread, y, (difference - batch.mean[y]) ** 2)
        self.merge(batch)

    def merge(self, other: ScatterStatistics) -> None:
        """Take in the statistics of another batch or process.

        Parameters
        ----------
        other : ScatterStatistics
            The statistics of the same classes over other samples.
        """
        if other.count.size != self.count.size:
            raise ValueError(f"statistics of {other.count.size} and {self.count.size} classes cannot merge")
        total = self.count + other.count
        share = np.divide(other.count, total, out=np.zeros_like(total), where=total > 0)[:, None]
        shift = other.mean - self.mean
        self.spread = self.spread + other.spread + shift**2 * share * self.count[:, None]
        self.mean = self.mean + shift * share
        self.count = total

    def variances(self) -> FloatArray:
        """Var_y(ν_y − ν_z), the numerator of Eq 16; zero for a class without samples.

        Returns
        -------
        array of shape (C, C)
            The variances.
        """
        return self.spread / np.maximum(self.count, 1)[:, None]

    def scatter(self, head_weight: npt.ArrayLike, *, eps: float = 1e-12) -> FloatArray:
        """DS_yz (Eq 16) for a linear head with rows ω_c; the diagonal is zero.

        Parameters
        ----------
        head_weight : array of shape (C, d)
            ω, the weights of the linear head.
        eps : float
            Added to ‖ω_y − ω_z‖².

        Returns
        -------
        array of shape (C, C)
            DS_yz.
        """
        w = check_array("head_weight", head_weight)
        if w.ndim != 2 or w.shape[0] != self.count.size:
            raise ValueError(f"head_weight must have {self.count.size} rows, got shape {w.shape}")
        squares = (w**2).sum(axis=1)
        distance = np.maximum(squares[:, None] + squares - 2 * w @ w.T, 0)
        scatter = self.variances() / (distance + eps)
        np.fill_diagonal(scatter, 0.0)
        return scatter

    def mean_scatter(self, head_weight: npt.ArrayLike, *, eps: float = 1e-12) -> FloatArray:
        """The average of DS_yz over the C − 1 other classes (under Eq 17).

        Parameters
        ----------
        head_weight : array of shape (C, d)
            ω, the weights of the linear head.
        eps : float
            Added to ‖ω_y − ω_z‖².

        Returns
        -------
        array of shape (C,)
            The mean scatter of each class.
        """
        return self.scatter(head_weight, eps=eps).sum(axis=1) / max(self.count.size - 1, 1)


def class_factor(mean_scatter: npt.ArrayLike, weights: npt.ArrayLike) -> FloatArray:
    """The class part of Eq 18, scatter times weight, normalized to sum to the number of classes.

    A class whose scatter is not known (zero, fewer than two samples) takes the mean of the others.

    Parameters
    ----------
    mean_scatter : array of shape (C,)
        DS̄ of each class.
    weights : array of shape (C,)
        The class weights.

    Returns
    -------
    array of shape (C,)
        The factors.

    Examples
    --------
    >>> class_factor([1.0, 3.0], [1.0, 1.0])
    array([0.5, 1.5])
    """
    scatter = check_in_range("mean_scatter", mean_scatter, 0)
    weights = check_in_range("weights", weights, 0)
    if scatter.ndim != 1 or scatter.shape != weights.shape:
        raise ValueError(
            f"mean_scatter and weights must be vectors of one length, got shapes {scatter.shape} and "
            f"{weights.shape}"
        )
    if not weights.any():
        raise ValueError("weights must not all be zero")
    known = scatter > 0
    fill = scatter[known].mean() if known.any() else 1.0
    factor = np.where(known, scatter, fill) * weights
    return np.asarray(factor * factor.size / factor.sum())


@dataclass(frozen=True)
class LinearSplit:
    """The best linear boundary between class −1 and class +1 along the line of their centers.

    ``threshold`` is measured from the midpoint, in units of the smaller class's radius or deviation.

    Attributes
    ----------
    threshold : float
        Where the boundary crosses the line of the centers.
    accuracy_negative : float
        The share of class −1 that is classified right.
    accuracy_positive : float
        The share of class +1 that is classified right.
    """

    threshold: float
    accuracy_negative: float
    accuracy_positive: float

    @property
    def gap(self) -> float:
        """How much better the compact class −1 is classified than class +1."""
        return self.accuracy_negative - self.accuracy_positive


def disc_split(radius_ratio: float, prior_ratio: float) -> LinearSplit:
    """The best linear classifier of Eq 6: uniform discs of radius K and 1 around ±(1, 1), with p₊ : p₋ =
    ``prior_ratio``.

    Theorem 1: at p₊ : p₋ = K² : 1 (equal densities) class +1 is classified better. Theorem 2: at 1 : 1
    class −1 is. Both hold for every K > 2√2 − 1 ≈ 1.83, where the discs overlap; below that nothing is
    misclassified. (The printed proofs call the larger disc r₋.)

    The error's slope is the difference of the chords' weighted lengths, whose square is a quadratic in the
    threshold; its roots and the discs' edges are all the candidates for the minimum.

    Parameters
    ----------
    radius_ratio : float
        K > 1, the radius of class +1 over that of class −1.
    prior_ratio : float
        p₊ : p₋.

    Returns
    -------
    LinearSplit
        The boundary and both accuracies.

    Examples
    --------
    >>> disc_split(2.0, 4.0).gap < 0 < disc_split(2.0, 1.0).gap
    True
    """
    K = float(check_in_range("radius_ratio", radius_ratio, 1, 1e6, closed="neither"))
    odds = float(check_in_range("prior_ratio", prior_ratio, 1e-12, 1e12))
    center = np.sqrt(2)
    a = (odds / K**2) ** 2
    roots = np.roots([1 - a, 2 * center * (1 + a), 2 - 1 - a * (2 - K**2)])
    edges = [center - K, center + K, -center - 1, 1 - center]
    candidates = np.array([*roots[np.abs(roots.imag) < 1e-12].real, *edges])
    negative = 1 - _disc_beyond(candidates + center)
    positive = 1 - _disc_beyond((center - candidates) / K)
    best = int(np.argmin(-(odds * positive + negative)))
    return LinearSplit(float(candidates[best]), float(negative[best]), float(positive[best]))


def _disc_beyond(height: FloatArray) -> FloatArray:
    """The part of the unit disc's area beyond a chord at this signed distance from its center."""
    h = np.clip(height, -1, 1)
    return np.asarray((np.arccos(h) - h * np.sqrt(1 - h**2)) / np.pi)


def gaussian_split(deviation_ratio: float, separation: float) -> LinearSplit:
    """The best linear classifier of Eq 8: N(±θ, σ²I) with σ₊ : σ₋ = K : 1, equal priors, s = ‖θ‖/σ₋ = √d·η/σ₋.

    Equal densities on the line of centers give the threshold t with t + s = KR − B, so the accuracies are
    Φ(KR − B) and Φ(KB − R), B = 2s/(K²−1), R = √(B² + 2 log K/(K²−1)). The gap is P{B − KR ≤ N(0,1) ≤ R − KB} > 0:
    Eq 9 with its bounds the right way round.

    Parameters
    ----------
    deviation_ratio : float
        K > 1, the deviation of class +1 over that of class −1.
    separation : float
        s = ‖θ‖/σ₋.

    Returns
    -------
    LinearSplit
        The boundary and both accuracies.

    Examples
    --------
    >>> round(gaussian_split(2.0, 1.0).gap, 4)
    0.2436
    """
    K = float(check_in_range("deviation_ratio", deviation_ratio, 1, 1e6, closed="neither"))
    s = float(check_in_range("separation", separation, 0))
    B = 2 * s / (K**2 - 1)
    R = np.sqrt(B**2 + 2 * np.log(K) / (K**2 - 1))
    return LinearSplit(float(K * R - B - s), float(ndtr(K * R - B)), float(ndtr(K * B - R)))


@dataclass(frozen=True)
class BoundedSplit:
    """Two Gaussians cut off at a bound and still split by the same boundary (Eqs 10 and 11).

    Attributes
    ----------
    bound : float
        ρ, in units of σ₋: both classes lie within ρ of their centers, so that they have equal volumes.
    split : LinearSplit
        The best boundary, which moving what lay outside leaves as it was.
    moved_negative, moved_positive : float
        Which parts of the classes lay outside their bounds.
    """

    bound: float
    split: LinearSplit
    moved_negative: float
    moved_positive: float

    @property
    def least_gap(self) -> float:
        """The gap if all that was moved counts against it: at least (1 − 2·tolerance) of the split's (Eq 11)."""
        return self.split.gap - self.moved_negative - self.moved_positive


def bounded_gaussian_split(
    deviation_ratio: float,
    separation: float,
    dimension: int = 2,
    *,
    tolerance: float = 0.01,
    bounds: tuple[float, float] = (1.0, 1.0),
) -> BoundedSplit:
    """Classes of equal, bounded volume in which the compact one is still classified better (section 3.2.2).

    ρ is the least bound beyond which no class of :func:`gaussian_split` has more than ``tolerance`` times the
    gap; what lies there is moved within the class's bound, in such a way that the best boundary stays
    (supplement, section 2).

    Parameters
    ----------
    deviation_ratio, separation : float
        K = σ₊/σ₋ and ‖θ‖/σ₋ = √d·η/σ₋, as for :func:`gaussian_split`.
    dimension : int
        d.
    tolerance : float
        The paper's 1/100.
    bounds : tuple of float
        What ρ is multiplied by for classes −1 and +1; (1.5, 2) and (3, 2) are the paper's unequal volumes.

    Returns
    -------
    BoundedSplit
        The bound ρ, the split, and the mass of each class that was moved.

    Examples
    --------
    >>> made = bounded_gaussian_split(2.0, 2**0.5)  # K = 2, d = 2, η = σ₋ = 1
    >>> round(made.split.gap, 4), round(made.bound, 2), made.least_gap > 0.98 * made.split.gap
    (0.1512, 7.21, True)
    """
    split = gaussian_split(deviation_ratio, separation)
    check_in_range("tolerance", tolerance, 0, 0.5, closed="neither")
    d = check_integer("dimension", dimension, low=1)
    factors = check_in_range("bounds", bounds, 1)
    bound = deviation_ratio * float(np.sqrt(chdtri(d, tolerance * split.gap)))
    radii = bound * factors / np.array([1.0, deviation_ratio])
    negative, positive = chdtrc(d, radii**2).tolist()
    return BoundedSplit(bound, split, negative, positive)
