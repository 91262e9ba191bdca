"""What mixing points of one class does: to their labels, to the risk, to the Lipschitz constant.

Propositions 1, 2 and 4 of Mondal et al., AISTATS 2023 (proofs in their appendix A), as functions of numbers that
can be measured on a trained latent space. Proposition 2 holds for the loss of one mix and not for the risk, and
Proposition 3 is false (see :func:`risk_variance`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.optimize import linprog

from equipoise._core.checks import (
    FloatArray,
    check_array,
    check_counts,
    check_distribution,
    check_in_range,
    check_integer,
    check_number,
    check_positive,
    check_same_length,
)
from equipoise._core.random import RandomState, as_generator


def linearly_separable(first: npt.ArrayLike, second: npt.ArrayLike) -> bool:
    """Whether a hyperplane parts two sets of points: the premise of label preservation (Prop 1).

    If one does, every convex mix of a set stays on its side. See :func:`separable_classes`, which decides it.

    Parameters
    ----------
    first : array-like of shape (n, m)
        The points of one set.
    second : array-like of shape (k, m)
        The points of the other.

    Returns
    -------
    bool
        Whether there is such a plane.

    References
    ----------
    Mondal et al., AISTATS 2023, Proposition 1.

    Examples
    --------
    >>> linearly_separable([[0.0, 0], [1, 0]], [[0.0, 1], [1, 1]])
    True
    >>> linearly_separable([[0.0, 0], [1, 1]], [[0.0, 1], [1, 0]])
    False
    """
    a, b = check_array("first", first), check_array("second", second)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(f"both sets must be tables of as many columns, got {a.shape} and {b.shape}")
    return bool(separable_classes(np.concatenate([a, b]), np.repeat([0, 1], [len(a), len(b)]))[0])


def separable_classes(points: npt.ArrayLike, codes: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Which classes a hyperplane parts from all others, one answer a class in ``codes``.

    A class is parted by its plane of least squares, whose moments all classes share, or by a plane found for the
    points that lie nearest to the border; the points that such a plane leaves on the wrong side join them. Both
    answers are proved: "yes" by the plane itself, "no" by a convex mix of the class that is one of the others too.

    Parameters
    ----------
    points : array-like of shape (n, m)
        The points.
    codes : array-like of int of shape (n,)
        The class of each point.

    Returns
    -------
    array of bool
        In the order of the sorted codes.

    References
    ----------
    Mondal et al., AISTATS 2023, Proposition 1. Mangasarian (2002), A finite Newton method for classification, for
    the plane.

    Examples
    --------
    >>> separable_classes([[0.0], [1.0], [2.0]], [0, 1, 2])
    array([ True, False,  True])
    """
    z, (classes, y) = (
        check_array("points", points),
        np.unique(check_counts("codes", codes), return_inverse=True),
    )
    check_same_length(points=z, codes=y)
    spread = z.std(axis=0)
    rows = np.column_stack([(z - z.mean(axis=0)) / np.where(spread > 0, spread, 1.0), np.ones(len(z))])
    counts = np.bincount(y)
    sums = np.stack([rows[y == code].sum(axis=0) for code in range(len(classes))])
    moments = [rows[y == code].T @ rows[y == code] for code in range(len(classes))]
    whole, ridge = np.sum(moments, axis=0), 1e-9 * np.eye(rows.shape[1])
    parted = np.empty(len(classes), dtype=bool)
    for code, n in enumerate(counts):
        rest = max(len(z) - n, 1)
        moment = moments[code] / n + (whole - moments[code]) / rest + ridge
        plane = np.linalg.solve(moment, sums[code] / n - (sums.sum(axis=0) - sums[code]) / rest)
        heights, own = rows @ plane, y == code
        gap = heights[own].min() - heights[~own].max(initial=-np.inf)
        parted[code] = gap > 1e-9 or _is_parted(rows, np.where(own, 1.0, -1.0), heights)
    return parted


def _is_parted(rows: FloatArray, side: FloatArray, heights: FloatArray) -> bool:
    """Find a plane for the points that the last one had lowest, until it parts all or none parts these."""
    working = np.zeros(len(rows), dtype=bool)
    while True:
        room = 2 * rows.shape[1]
        lowest = np.argsort(side * heights + 1e300 * working, kind="stable")[:room]
        working[lowest] = True
        plane = _parting_plane(rows[working] * side[working, None])
        if plane is None:
            return False
        heights = rows @ plane
        if (side * heights).min() > 0 or working.all():
            return True


def _parting_plane(rows: FloatArray) -> FloatArray | None:
    """A plane w with rows·w > 0, or ``None`` if there is none.

    Newton's method on ½Σ max(0, 1 − rows·w)². Where it is least and not 0, the slacks are weights ≥ 0 with which
    the rows add up to 0: no plane has them all on one side.
    """
    plane = np.zeros(rows.shape[1])
    for _ in range(100):
        slack = 1 - rows @ plane
        if slack.max() < 1 - 1e-9:
            return plane
        weight = np.maximum(slack, 0)
        pull = weight @ rows
        if np.linalg.norm(pull) <= 1e-9 * weight.sum():
            return None
        active = rows[slack > 0]
        step = np.linalg.solve(active.T @ active + 1e-10 * np.eye(len(plane)), pull)
        change, length = rows @ step, 1.0
        while (np.maximum(slack - length * change, 0) ** 2).sum() > (
            weight**2
        ).sum() - 1e-4 * length * pull @ step:
            length /= 2
            if length < 1e-12:
                break
        plane = plane + length * step
    answer = linprog(np.zeros(len(plane)), -rows, -np.ones(len(rows)), bounds=(None, None), method="highs")
    return answer.x if answer.status == 0 else None


@dataclass(frozen=True)
class LossVariance:
    """Proposition 2 for what its proof shows: the variance of the loss of ONE mix, not that of the risk.

    Attributes
    ----------
    variance : float
        V, the variance of the loss itself (the proof as printed has an upper bound B of it here, with which the
        last step does not follow).
    gap : float
        K = (E ℓ(z) − ℓ(E z))·(E ℓ(z) + ℓ(E z)), what Jensen's inequality costs.
    largest_norm : float
        1 − K/V, the largest ‖α‖² for which the loss of one mix is known to vary less than the loss of one point.
        ‖α‖² is at least 1/t, so below 1/t nothing is known.
    """

    variance: float
    gap: float
    largest_norm: float

    def bound(self, weights: npt.ArrayLike) -> float:
        """‖α‖²·V + K, which the variance of the loss of a mix does not exceed (for a convex loss ≥ 0).

        Parameters
        ----------
        weights : array of shape (t,)
            α, the weights of a mix, which sum to 1.

        Returns
        -------
        float
            The bound.
        """
        alpha = check_distribution("weights", weights)
        return float((alpha**2).sum() * self.variance + self.gap)


def loss_variance(losses: npt.ArrayLike, loss_at_mean: float) -> LossVariance:
    """Compute V, K and 1 − K/V from the losses of a class's points and the loss at their mean.

    Parameters
    ----------
    losses : array-like of shape (n,)
        The losses at the points.
    loss_at_mean : float
        The loss at the mean of the points.

    Returns
    -------
    LossVariance
        V, K and the largest ‖α‖² for which the bound is below V.

    References
    ----------
    Mondal et al., AISTATS 2023, Proposition 2 and its proof.

    Examples
    --------
    >>> loss_variance([0.0, 2.0], 0.5).largest_norm  # V = 1, K = 0.5·1.5
    0.25
    """
    each = check_array("losses", losses)
    loss_at_mean = check_number("loss_at_mean", loss_at_mean)
    mean, variance = float(each.mean()), float(each.var())
    gap = (mean - loss_at_mean) * (mean + loss_at_mean)
    return LossVariance(variance, gap, 1 - gap / variance if variance > 0 else -np.inf)


@dataclass(frozen=True)
class RiskVariance:
    """What mixing does to the empirical risk of one class: its variance and its bias, by resampling.

    Attributes
    ----------
    risk : float
        R, the mean loss of all points.
    plain : array of shape (n_resamples,)
        R̂ of each resample (Eq 8).
    mixed : array of shape (n_resamples,)
        R̂_α of the same resamples (Eq 9), whose mixes share parents as they do in training.
    """

    risk: float
    plain: FloatArray
    mixed: FloatArray

    @property
    def ratio(self) -> float:
        """The variance of the risk with mixing, as a multiple of the variance without."""
        variance = float(self.plain.var())
        return float(self.mixed.var()) / variance if variance > 0 else np.nan

    @property
    def bias(self) -> float:
        """E R̂_α − R: what a mixed risk is off by, however many points there are."""
        return float(self.mixed.mean()) - self.risk

    @property
    def error_ratio(self) -> float:
        """The mean squared error of R̂_α as an estimate of R, as a multiple of that of R̂."""
        plain = float(((self.plain - self.risk) ** 2).mean())
        return float(((self.mixed - self.risk) ** 2).mean()) / plain if plain > 0 else np.nan

    def ratio_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Interval of the ratio of two paired variances (Pitman and Morgan; the risks are nearly normal).

        Parameters
        ----------
        level : float
            The confidence of the interval.

        Returns
        -------
        float
            The lower end.
        float
            The upper end.
        """
        if not self.ratio > 0:
            return np.nan, np.nan
        free = len(self.plain) - 2
        unshared = 1 - float(np.corrcoef(self.plain, self.mixed)[0, 1]) ** 2
        k = 1 + 2 * unshared * float(stats.t.ppf((1 + level) / 2, free)) ** 2 / free
        wide = k + np.sqrt(max(k**2 - 1, 0.0))
        return self.ratio / wide, self.ratio * wide


def risk_variance(
    loss: Callable[[FloatArray], FloatArray],
    points: npt.ArrayLike,
    weights: Callable[[FloatArray], FloatArray],
    *,
    n_mixed: int = 2,
    n_rows: int | None = None,
    n_resamples: int = 200,
    random_state: RandomState = None,
) -> RiskVariance:
    """Measure the variance and the bias of the empirical risk, with mixing and without.

    Proposition 2 speaks of the risk, and its proof treats the mixes as independent. In training every point is a
    parent of several mixes: a resample is put into groups of ``n_mixed`` points, and each group is mixed in all
    its cyclic orders, each with weights of its own.

    Parameters
    ----------
    loss : callable
        The loss of each row of an array of shape (n, m).
    points : array-like of shape (n, m)
        The latents of one class.
    weights : callable
        The mixing weights, of shape (n, t), of groups of shape (n, t, m).
    n_mixed : int
        t, the number of points in a mix.
    n_rows : int, optional
        Points in a resample, rounded up to whole groups; as many as there are by default.
    n_resamples : int
        The number of resamples, at least 3.
    random_state : int, generator or None
        The source of the resamples.

    Returns
    -------
    RiskVariance
        The risks of all resamples, with mixing and without.

    Notes
    -----
    Two of the paper's claims fail here. Where Proposition 2 promises less variance, the risk may vary more: for a
    loss that is linear the ratio is 7/6 with two parents and uniform weights. Proposition 3 bounds the true risk R
    by R̂_α and terms that vanish with N, but R̂_α tends to R_α, which a convex loss makes smaller than R: for the
    loss |z|, z = ±1 and α = ½ it tends to ½ while R = 1.

    References
    ----------
    Mondal et al., AISTATS 2023, Eqs 8–11.

    Examples
    --------
    >>> halves = lambda groups: np.full(groups.shape[:2], 0.5)
    >>> points = [[-1.0], [1.0]] * 50
    >>> found = risk_variance(lambda z: np.abs(z[:, 0]), points, halves, random_state=0)
    >>> found.risk, round(found.bias, 1)
    (1.0, -0.5)
    """
    z = check_array("points", points)
    if z.ndim != 2:
        raise ValueError(f"points must be a table, got the shape {z.shape}")
    for name, function in (("loss", loss), ("weights", weights)):
        if not callable(function):
            raise TypeError(f"{name} must be a function, got {function!r}")
    t = check_integer("n_mixed", n_mixed, low=2)
    wanted = check_integer("n_rows", len(z) if n_rows is None else n_rows, low=1)
    groups = -(-wanted // t)
    rng = as_generator(random_state)
    plain, mixed = np.empty((2, check_integer("n_resamples", n_resamples, low=3)))
    turns = (np.arange(t)[:, None] + np.arange(t)) % t
    for at in range(len(plain)):
        drawn = z[rng.integers(len(z), size=(groups, t))]
        turned = drawn[:, turns].reshape(groups * t, t, z.shape[1])
        plain[at] = loss(drawn.reshape(-1, z.shape[1])).mean()
        mixed[at] = loss(np.einsum("ij,ijk->ik", weights(turned), turned)).mean()
    return RiskVariance(float(loss(z).mean()), plain, mixed)


@dataclass(frozen=True)
class Scatter:
    """How far the points of a class lie from their mean, and the means of the classes from each other.

    Attributes
    ----------
    within : array of shape (n_classes,)
        The mean squared distance of a class's points from their mean.
    between : float
        The mean squared distance of the class means from the mean of these means.
    """

    within: FloatArray
    between: float

    @property
    def ratio(self) -> float:
        """Within over between, the classes equally weighted: 0 where each class has collapsed to a point."""
        return float(self.within.mean()) / self.between if self.between > 0 else np.inf


def scatter(points: npt.ArrayLike, codes: npt.ArrayLike) -> Scatter:
    """Measure the scatter within and between the classes of a latent space.

    Parameters
    ----------
    points : array-like of shape (n, m)
        The latents.
    codes : array-like of shape (n,)
        The classes; the result has them in sorted order.

    Returns
    -------
    Scatter
        The scatter within each class and that of the class means.

    Examples
    --------
    >>> scatter([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1]).ratio  # 1 / 25
    0.04
    """
    z, labels = check_array("points", points), np.asarray(codes)
    check_same_length(points=z, codes=labels)
    own = [z[labels == code] for code in np.unique(labels)]
    within = np.array([((rows - rows.mean(axis=0)) ** 2).sum(axis=1).mean() for rows in own])
    means = np.array([rows.mean(axis=0) for rows in own])
    return Scatter(within, float(((means - means.mean(axis=0)) ** 2).sum(axis=1).mean()))


def smallest_eigenvalue(permutation: npt.ArrayLike) -> float:
    """k = λ_min(P + Pᵀ) of a permutation, from its cycles: a cycle of length L has 2·cos(2πj/L), j < L.

    Parameters
    ----------
    permutation : array of int of shape (n,)
        The partner of each row.

    Returns
    -------
    float
        k, from −2 to 2.

    Examples
    --------
    >>> smallest_eigenvalue([0, 1, 2]), smallest_eigenvalue([1, 0])
    (2.0, -2.0)
    """
    image = check_counts("permutation", permutation)
    if image.ndim != 1 or not np.array_equal(np.sort(image), np.arange(len(image))):
        raise ValueError("permutation must list 0 … n − 1 once each")
    seen, lengths = np.zeros(len(image), dtype=bool), set()
    for start in range(len(image)):
        at, length = start, 0
        while not seen[at]:
            seen[at], at, length = True, image[at], length + 1
        if length:
            lengths.add(length)
    return min(float(2 * np.cos(2 * np.pi * (length // 2) / length)) for length in lengths)


def mixing_factor(weight: npt.ArrayLike, k: float) -> FloatArray:
    """d(α) = α² + (1 − α)² + k·α(1 − α), at most 1, for k = λ_min(P + Pᵀ) ≤ 2.

    The mixed rows are (αI + (1 − α)P)X = MX, and MMᵀ = (α² + (1 − α)²)I + α(1 − α)(P + Pᵀ) ⪰ d(α)·I.

    Parameters
    ----------
    weight : array-like
        α, from 0 to 1.
    k : float
        λ_min(P + Pᵀ).

    Returns
    -------
    array
        d(α).

    Examples
    --------
    >>> float(mixing_factor(0.5, 2.0)), float(mixing_factor(0.5, -2.0))
    (1.0, 0.0)
    """
    alpha = check_in_range("weight", weight, 0, 1)
    check_in_range("k", k, -2, 2)
    return np.asarray(alpha**2 + (1 - alpha) ** 2 + k * alpha * (1 - alpha))


def lipschitz_bound(n: float, weight: npt.ArrayLike, k: float, floor: float = 0.5) -> FloatArray:
    """√(n/(floor·d(α))), an upper bound of ‖w_α‖, the least-norm linear classifier of n mixed rows (Prop 4).

    Parameters
    ----------
    n : float
        The number of rows; the labels are ±1.
    weight : array-like
        α, the weight of the row itself; 1 − α goes to its partner, and α = 1 is no mixing.
    k : float
        λ_min(P + Pᵀ) of the partners.
    floor : float
        A lower bound of λ_min(XXᵀ): the paper's ½ holds with high probability for n ≤ c·d rows on a
        sphere.

    Returns
    -------
    array
        The bound.

    Notes
    -----
    Since d(α) ≤ 1, the bound with mixing is never below the bound without. The paper's Corollary 1, which says
    otherwise, needs r = (k − 2)/4 > 0 while k ≤ 2: it holds for no permutation. What is returned is a bound and no
    promise of a smaller constant. The constant itself does not even change: partners share their label, so
    Xw = Y implies MXw = MY = Y, and where M is regular both systems have the same least-norm solution.

    Examples
    --------
    >>> float(lipschitz_bound(8, 1.0, -2.0))
    4.0
    """
    check_positive("n", n)
    check_positive("floor", floor)
    with np.errstate(divide="ignore"):
        return np.asarray(np.sqrt(n / (floor * mixing_factor(weight, k))))
