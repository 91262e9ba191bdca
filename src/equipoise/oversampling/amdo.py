"""AMDO: new points on the Mahalanobis ellipses of well-placed minority points."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import NearestNeighbors

from equipoise._core.checks import FloatArray, IntArray, check_fraction, check_integer
from equipoise.oversampling._base import ProvenanceSampler
from equipoise.oversampling._strategy import round_half_up
from equipoise.oversampling.gate import LowQualityWarning
from equipoise.oversampling.provenance import Synthetic


@dataclass(kw_only=True, repr=False, eq=False)
class AMDO(ProvenanceSampler):
    """Adaptive Mahalanobis-distance-based over-sampling, for many classes and mixed types.

    Each class is centered and rotated to its principal axes; a point with Mahalanobis distance √α from the
    center begets points anywhere on the ellipse Σ z_j²/(α·V_j) = 1, so that the class keeps its covariance.
    Only points with at least ``k_same`` of their ``k_neighbors`` nearest neighbors in their own class beget,
    in proportion to that share; where there is none, the points that have the most do, and a warning says so.

    Parameters
    ----------
    sampling_strategy : str, float, dict or callable
        As in imbalanced-learn, or ``"partial"`` for the method's own partial balancing, which fills a
        class only up to ``balance`` of the way to the majority.
    k_neighbors : int
        The size of the neighborhood.
    k_same : int, optional
        How many of it must share the class; half of ``k_neighbors``, rounded up, by default (5 of 10).
    balance : float
        How far ``"partial"`` goes, from 0 to 1.
    on_low_quality : {"warn", "raise", "skip"}
        What to do with a class whose made rows are no good; see :class:`ProvenanceSampler`.
    random_state : int, generator or None
        The source of all randomness.

    Notes
    -----
    The ellipse is drawn from by scaling a uniform direction. Drawing the coordinates one by one and solving for
    the last, as the first paper writes it, has no solution for most draws beyond a few dimensions. Mixed types
    are handled by the room's encoding (standardized numbers, scaled indicator columns), whose principal axes
    are those of a factor analysis of mixed data.

    References
    ----------
    X. Yang, Q. Kuang, W. Zhang, G. Zhang: AMDO: An Over-Sampling Technique for Multi-Class Imbalanced Problems,
    IEEE TKDE 30(9), 2018; L. Abdi, S. Hashemi: To Combat Multi-Class Imbalanced Problems by Means of
    Over-Sampling Techniques, IEEE TKDE 28(1), 2016.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(200, 4, weights=[0.9], random_state=0)
    >>> X_new, y_new = AMDO(random_state=0).fit_resample(X, y)
    >>> sorted(map(int, np.bincount(y_new)))
    [181, 181]
    """

    k_neighbors: int = 10
    k_same: int | None = None
    balance: float = 0.5

    def _wanted_rows(self, X: FloatArray, y: npt.NDArray[Any]) -> dict[Any, int]:
        if self.sampling_strategy != "partial":
            return super()._wanted_rows(X, y)
        check_fraction("balance", self.balance)
        labels, counts = np.unique(y, return_counts=True)
        gaps = self.balance * (counts.max() - counts)
        return {label: round_half_up(float(gap)) for label, gap in zip(labels, gaps, strict=True) if gap > 0}

    def _synthesize(
        self, X: FloatArray, codes: IntArray, wanted: dict[int, int], rng: np.random.Generator
    ) -> Synthetic:
        k = min(check_integer("k_neighbors", self.k_neighbors, low=1), len(X) - 1)
        needed = -(-self.k_neighbors // 2) if self.k_same is None else self.k_same
        check_integer("k_same", needed, low=0, high=self.k_neighbors)
        scale = X.std(axis=0)
        scaled = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
        search = NearestNeighbors(n_neighbors=k + 1).fit(scaled)
        parts = []
        for code, count in wanted.items():
            members = np.flatnonzero(codes == code)
            neighbors = search.kneighbors(scaled[members], return_distance=False)[:, 1:]
            same = (codes[neighbors] == code).sum(axis=1)
            parts.append(_on_ellipses(X, members, _chances(same, needed), count, code, rng))
        return Synthetic.concatenate(parts, X.shape[1])


def _chances(same: IntArray, needed: int) -> FloatArray:
    """How often each point begets; if none has neighbors enough, the best-placed ones do, all alike."""
    kept = np.where(same >= needed, same, 0).astype(np.float64)
    if kept.sum() == 0:
        kept = np.where(same == same.max(), 1.0, 0.0)
        if len(same) > 1:
            warnings.warn(
                f"no row of a class of {len(same)} has {max(needed, 1)} neighbors of its own class, "
                f"{same.max()} at most: the rows that have so many beget; a smaller k_same asks for fewer",
                LowQualityWarning,
                stacklevel=5,
            )
    return kept / kept.sum()


def _on_ellipses(
    X: FloatArray, members: IntArray, chances: FloatArray, count: int, code: int, rng: np.random.Generator
) -> Synthetic:
    center = X[members].mean(axis=0)
    centered = X[members] - center
    _, singular, axes = np.linalg.svd(centered, full_matrices=False)
    variances = singular**2 / max(len(members) - 1, 1)
    alive = variances > 1e-12 * max(variances.max(initial=0.0), 1e-300)
    axes, spread = axes[alive], np.sqrt(variances[alive])
    chosen = rng.choice(len(members), size=count, p=chances)
    squared = ((centered[chosen] @ axes.T / spread) ** 2).sum(axis=1) if spread.size else np.zeros(count)
    direction = rng.normal(size=(count, spread.size))
    direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
    rows = center + (np.sqrt(squared)[:, None] * direction * spread) @ axes
    parents = members[chosen][:, None]
    return Synthetic(rows, np.full(count, code), parents, np.ones((count, 1)))
