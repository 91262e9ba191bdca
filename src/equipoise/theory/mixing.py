"""What mixing points of one class does: to their labels, to the variance of the risk, to the Lipschitz constant.

Propositions 1, 2 and 4 of Mondal et al., AISTATS 2023 (proofs in their appendix A), as functions of numbers that
can be measured on a trained latent space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from equipoise._core.checks import (
    FloatArray,
    check_array,
    check_counts,
    check_distribution,
    check_in_range,
    check_number,
    check_positive,
)


def linearly_separable(first: npt.ArrayLike, second: npt.ArrayLike) -> bool:
    """Whether a hyperplane parts two sets of points: the premise of label preservation (Prop 1).

    If one does, every convex mix of a set stays on its side. Decided exactly, by the linear program that asks for
    w, b with w·z + b ≥ 1 on one set and ≤ −1 on the other.

    >>> linearly_separable([[0.0, 0], [1, 0]], [[0.0, 1], [1, 1]])
    True
    >>> linearly_separable([[0.0, 0], [1, 1]], [[0.0, 1], [1, 0]])
    False
    """
    a, b = check_array("first", first), check_array("second", second)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(f"both sets must be tables of as many columns, got {a.shape} and {b.shape}")
    points = np.concatenate([a, b])
    spread = points.std(axis=0)
    points = (points - points.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    signs = np.repeat([1.0, -1.0], [len(a), len(b)])
    rows = -signs[:, None] * np.column_stack([points, np.ones(len(points))])
    answer = linprog(np.zeros(rows.shape[1]), rows, -np.ones(len(rows)), bounds=(None, None), method="highs")
    return bool(answer.status == 0)


@dataclass(frozen=True)
class RiskVariance:
    """Prop 2, corrected: mixing lowers the variance of the risk if ‖α‖² ≤ 1 − K/V.

    Attributes
    ----------
    variance : V, the variance of the loss itself (the proof as printed has an upper bound B of it here, with which
        the last step does not follow).
    gap : K = (E ℓ(z) − ℓ(E z))·(E ℓ(z) + ℓ(E z)), what Jensen's inequality costs.
    largest_norm : 1 − K/V, the largest ‖α‖² for which a lower variance is guaranteed. ‖α‖² is at least 1/t, so
        below 1/t the proposition promises nothing.
    """

    variance: float
    gap: float
    largest_norm: float

    def bound(self, weights: npt.ArrayLike) -> float:
        """‖α‖²·V + K, which the variance of the loss of a mix does not exceed (for a convex loss ≥ 0)."""
        alpha = check_distribution("weights", weights)
        return float((alpha**2).sum() * self.variance + self.gap)

    def promises_less(self, n_mixed: int) -> bool:
        """Whether some weights of ``n_mixed`` points satisfy the condition."""
        return self.largest_norm >= 1 / n_mixed


def risk_variance(losses: npt.ArrayLike, loss_at_mean: float) -> RiskVariance:
    """V, K and 1 − K/V from the losses of a class's points and the loss at their mean.

    >>> risk_variance([0.0, 2.0], 0.5).largest_norm  # V = 1, K = 0.5·1.5
    0.25
    """
    each = check_array("losses", losses)
    loss_at_mean = check_number("loss_at_mean", loss_at_mean)
    mean, variance = float(each.mean()), float(each.var())
    gap = (mean - loss_at_mean) * (mean + loss_at_mean)
    return RiskVariance(variance, gap, 1 - gap / variance if variance > 0 else -np.inf)


def smallest_eigenvalue(permutation: npt.ArrayLike) -> float:
    """k = λ_min(P + Pᵀ) of a permutation, from its cycles: a cycle of length L has 2·cos(2πj/L), j < L.

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
    n : rows; the labels are ±1.
    weight : α, of the row itself; 1 − α goes to its partner, and α = 1 is no mixing.
    k : λ_min(P + Pᵀ) of the partners.
    floor : a lower bound of λ_min(XXᵀ): the paper's ½ holds with high probability for n ≤ c·d rows on a sphere.

    Notes
    -----
    Since d(α) ≤ 1, the bound with mixing is never below the bound without. The paper's Corollary 1, which says
    otherwise, needs r = (k − 2)/4 > 0 while k ≤ 2: it holds for no permutation. What is returned is a bound and no
    promise of a smaller constant. The constant itself does not even change: partners share their label, so
    Xw = Y implies MXw = MY = Y, and where M is regular both systems have the same least-norm solution.

    >>> float(lipschitz_bound(8, 1.0, -2.0))
    4.0
    """
    check_positive("n", n)
    check_positive("floor", floor)
    with np.errstate(divide="ignore"):
        return np.asarray(np.sqrt(n / (floor * mixing_factor(weight, k))))
