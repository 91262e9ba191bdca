"""MC-CCR: energy spheres that push the majority away, then fill with new minority points."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from equipoise._core.checks import FloatArray, IntArray, check_choice, check_number, check_positive
from equipoise.oversampling._base import ProvenanceSampler
from equipoise.oversampling._multiclass import draw_opponents, from_large_to_small, unit_range
from equipoise.oversampling.provenance import Synthetic

_BLOCK = 2**22  # distances held at once
_GONE = -1  # the class code of a row that was removed


@dataclass(kw_only=True, repr=False, eq=False)
class MCCCR(ProvenanceSampler):
    """Multi-class combined cleaning and resampling.

    Around each minority point a sphere grows; a unit of radius costs (opposing points inside + 1) of its
    ``energy``. Opposing points inside are pushed to the border (or dropped from the way with
    ``cleaning="ignore"``), and new points are drawn inside, most where spheres are small: where the class is
    hard-pressed.

    Parameters
    ----------
    sampling_strategy : str, float, dict or callable
        As in imbalanced-learn; see :class:`ProvenanceSampler`.
    energy : float
        The budget of each sphere, in units where every column ranges over [0, 1].
    cleaning : {"translate", "remove", "ignore"}
        ``"translate"`` moves opposing rows (``provenance_.moved`` tells which), ``"remove"`` leaves them out
        (``provenance_.originals`` tells which stay, and classes may end unequal), ``"ignore"`` leaves them alone.
    selection : {"proportional", "random"}
        ``"proportional"`` gives a sphere new points in inverse proportion to its radius, ``"random"``
        picks the spheres alike.
    p : float
        The norm; the authors take p = 1.
    on_low_quality : {"warn", "raise", "skip"}
        What to do with a class whose made rows are no good; see :class:`ProvenanceSampler`.
    random_state : int, generator or None
        The source of all randomness.

    Notes
    -----
    The classes are filled from the second-largest to the smallest, and the new points of one class oppose the
    next (and may be pushed). An opposing point that coincides with a minority point leaves in a random direction.

    References
    ----------
    M. Koziarski, M. Woźniak, B. Krawczyk: Combined Cleaning and Resampling algorithm for multi-class imbalanced
    data with label noise, Knowledge-Based Systems 204, 2020.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(200, 4, weights=[0.9], random_state=0)
    >>> X_new, y_new = MCCCR(random_state=0).fit_resample(X, y)
    >>> sorted(map(int, np.bincount(y_new)))
    [181, 181]
    """

    energy: float = 0.25
    cleaning: str = "translate"
    selection: str = "proportional"
    p: float = 1.0

    def _synthesize(
        self, X: FloatArray, codes: IntArray, wanted: dict[int, int], rng: np.random.Generator
    ) -> Synthetic:
        check_positive("energy", self.energy)
        if check_number("p", self.p) < 1:
            raise ValueError(f"p must be 1 at least, since smaller ones give no distance, got {self.p}")
        check_choice("cleaning", self.cleaning, ["translate", "remove", "ignore"])
        check_choice("selection", self.selection, ["proportional", "random"])
        low, width = unit_range(X)
        points = (X - low) / width
        moved, n_largest = points.copy(), int(np.bincount(codes).max())
        parts = []
        for code, larger in from_large_to_small(codes, wanted):
            own, others = np.flatnonzero(codes == code), draw_opponents(codes, larger, n_largest, rng)
            radii, push, inside = _grow(moved[own], moved[others], self.energy, self.p, rng)
            if self.cleaning == "translate":
                moved[others] += push
            elif self.cleaning == "remove":
                codes = codes.copy()
                codes[others[inside]] = _GONE
            share = np.ones(len(own)) if self.selection == "random" else 1 / np.maximum(radii, 1e-12)
            made = _fill(moved, own, radii, share, wanted[code], code, self.p, rng)
            moved, codes = np.concatenate([moved, made.rows]), np.concatenate([codes, made.codes])
            parts.append(made)
        made = Synthetic.concatenate(parts, X.shape[1])
        made.rows[:] = moved[len(X) :] * width + low
        gone, moved = codes == _GONE, moved[: len(X)]
        untouched = (moved == points).all(axis=1)
        return replace(
            made.keep(~gone[len(X) :]),
            moved=np.where(untouched[:, None], X, moved * width + low),
            removed=gone[: len(X)] if self.cleaning == "remove" else None,
        )


def _grow(
    own: FloatArray, others: FloatArray, energy: float, p: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Radii of the spheres, the sum of pushes on each opposing point, and which points lie in a sphere.

    With sorted distances d_1 ≤ d_2 ≤ …, reaching d_k costs Σ_{j<k} (d_{j+1} − d_j)(j + 1), d_0 = 0; the sphere
    stops inside the first gap that it cannot pay for.
    """
    radii, push, inside = np.full(len(own), energy), np.zeros_like(others), np.zeros(len(others), dtype=bool)
    if not len(others):
        return radii, push, inside
    step = max(1, _BLOCK // max(len(others), 1))
    for start in range(0, len(own), step):
        block = slice(start, start + step)
        distance = cdist(own[block], others, "minkowski", p=p)
        radii[block] = _radii(distance, energy)
        sphere, point = np.nonzero(distance < radii[block, None])
        inside[point] = True
        apart = distance[sphere, point]
        away = others[point] - own[block][sphere]
        alike = apart == 0
        away[alike], apart[alike] = _directions(int(alike.sum()), own.shape[1], p, rng), 1.0
        reach = np.where(alike, radii[block][sphere], radii[block][sphere] - apart) / apart
        np.add.at(push, point, away * reach[:, None])
    return radii, push, inside


def _radii(distance: FloatArray, energy: float) -> FloatArray:
    # A sphere never reaches farther than its energy (an empty one costs one a unit), so nearer points suffice.
    nearest = np.sort(np.where(distance <= energy, distance, np.inf), axis=1)
    nearest = nearest[:, : max(int(np.isfinite(nearest).sum(axis=1).max(initial=0)), 1)]
    finite = np.where(np.isfinite(nearest), nearest, energy)
    gaps = np.diff(finite, axis=1, prepend=0.0)
    price = np.arange(1, gaps.shape[1] + 1)
    spent = np.cumsum(gaps * price, axis=1)
    inside = (spent <= energy) & np.isfinite(nearest)
    count = np.where(inside.all(axis=1), inside.shape[1], inside.argmin(axis=1))
    rows = np.arange(len(distance))
    last = np.where(count > 0, finite[rows, np.maximum(count - 1, 0)], 0.0)
    paid = np.where(count > 0, spent[rows, np.maximum(count - 1, 0)], 0.0)
    return last + (energy - paid) / (count + 1)


def _fill(
    points: FloatArray,
    own: IntArray,
    radii: FloatArray,
    share: FloatArray,
    count: int,
    code: int,
    p: float,
    rng: np.random.Generator,
) -> Synthetic:
    """Points inside the spheres, each with its share of them."""
    chosen = _apportion(share / share.sum(), count, rng)
    direction = _directions(count, points.shape[1], p, rng)
    rows = points[own[chosen]] + direction * (rng.random(count) * radii[chosen])[:, None]
    return Synthetic(rows, np.full(count, code), own[chosen][:, None], np.ones((count, 1)))


def _directions(count: int, columns: int, p: float, rng: np.random.Generator) -> FloatArray:
    """Random directions, of length 1 in the norm p."""
    direction = rng.uniform(-1, 1, size=(count, columns))
    return np.asarray(direction / np.maximum(np.linalg.norm(direction, ord=p, axis=1, keepdims=True), 1e-300))


def _apportion(share: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Whole numbers that sum to ``count``: the floors, then the remainders drawn in proportion."""
    exact = share * count
    whole = np.floor(exact).astype(np.int64)
    rest = count - int(whole.sum())
    if rest > 0:
        remainder = exact - whole
        extra = rng.choice(len(share), size=rest, p=remainder / remainder.sum())
        whole += np.bincount(extra, minlength=len(share))
    return np.repeat(np.arange(len(share)), whole)
