"""MC-RBO: points that climb to where the classes' radial potentials balance."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from equipoise._core.checks import FloatArray, IntArray, check_integer, check_positive
from equipoise._core.random import RandomState
from equipoise.oversampling._base import ProvenanceSampler
from equipoise.oversampling._multiclass import against_larger_classes, unit_range
from equipoise.oversampling._strategy import Strategy
from equipoise.oversampling.provenance import Synthetic

_REACH = (
    6.1  # in units of gamma: exp(−6.1²) is below the rounding of a double beside the point's own potential
)
_BLOCK = 2**22  # walker–neighbor pairs held at once
_ORDERS = 64  # shared random orders of the moves, each entered anywhere: a fresh shuffle a walker costs more


class MCRBO(ProvenanceSampler):
    """Multi-class radial-based over-sampling.

    The mutual potential at a point is Σ exp(−d²/γ²) over opposing points minus the same over the class's own.
    A copy of a random minority point walks along single axes, a ``step`` at a time, as long as that brings the
    potential's magnitude down: to where neither class rules.

    Parameters
    ----------
    gamma : the spread of the radial functions, in units where every column ranges over [0, 1].
    step : the length of a move.
    n_steps : how many moves are tried a point.

    Notes
    -----
    All walkers move at once. Each sees the points within reach of its whole path: those farther than 6.1 γ add
    less than a double's rounding to the potential of 1 that its own origin has.

    References
    ----------
    B. Krawczyk, M. Koziarski, M. Woźniak: Radial-Based Oversampling for Multiclass Imbalanced Data
    Classification, IEEE TNNLS 31(8), 2020.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(200, 4, weights=[0.9], random_state=0)
    >>> X_new, y_new = MCRBO(n_steps=50, random_state=0).fit_resample(X, y)
    >>> sorted(map(int, np.bincount(y_new)))
    [181, 181]
    """

    def __init__(
        self,
        *,
        sampling_strategy: Strategy = "auto",
        gamma: float = 0.05,
        step: float = 0.001,
        n_steps: int = 500,
        on_low_quality: str = "warn",
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            sampling_strategy=sampling_strategy, on_low_quality=on_low_quality, random_state=random_state
        )
        self.gamma = gamma
        self.step = step
        self.n_steps = n_steps

    def _synthesize(
        self, X: FloatArray, codes: IntArray, wanted: dict[int, int], rng: np.random.Generator
    ) -> Synthetic:
        check_positive("gamma", self.gamma)
        check_positive("step", self.step)
        check_integer("n_steps", self.n_steps, low=0)
        low, width = unit_range(X)
        points = (X - low) / width
        parts = []
        for code, own, others in against_larger_classes(codes, wanted, rng):
            origin = rng.choice(len(own), size=wanted[code])
            field = np.concatenate([points[others], points[own]])
            sign = np.concatenate([np.ones(len(others)), -np.ones(len(own))])
            rows = self._walk(points[own], origin, field, sign, rng)
            parents = own[origin][:, None]
            parts.append(
                Synthetic(rows * width + low, np.full(len(rows), code), parents, np.ones((len(rows), 1)))
            )
        return Synthetic.concatenate(parts, X.shape[1])

    def _walk(
        self,
        own: FloatArray,
        origin: IntArray,
        field: FloatArray,
        sign: FloatArray,
        rng: np.random.Generator,
    ) -> FloatArray:
        reach = _REACH * self.gamma + self.n_steps * self.step
        near: Any = cKDTree(field).query_ball_point(own, reach, return_sorted=True)
        sizes = np.array([len(points) for points in near])
        walkers = own[origin].copy()
        start = 0
        while start < len(origin):
            pairs = np.cumsum(sizes[origin[start:]])
            stop = start + max(1, int(np.searchsorted(pairs, _BLOCK, side="right")))
            block = origin[start:stop]
            _climb(
                walkers[start:stop],
                np.concatenate([near[o] for o in block]).astype(np.int64),
                sizes[block],
                field,
                sign,
                self.gamma,
                self.step,
                self.n_steps,
                rng,
            )
            start = stop
        return walkers


def _climb(
    walkers: FloatArray,
    neighbors: IntArray,
    sizes: IntArray,
    field: FloatArray,
    sign: FloatArray,
    gamma: float,
    step: float,
    n_steps: int,
    rng: np.random.Generator,
) -> None:
    """Move all walkers in place. A move along axis k changes d² by 2·δ·(x_k − f_k) + δ² only.

    Each walker tries the 2·d moves in a random order, without repeating one that failed from where it stands;
    after a success all are open again. (The way back is among them, and always fails.)
    """
    n, d = walkers.shape
    owner = np.repeat(np.arange(n), sizes)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    squared = ((walkers[owner] - field[neighbors]) ** 2).sum(axis=1)
    charge = sign[neighbors]

    def potential(distance: FloatArray) -> FloatArray:
        return np.abs(np.add.reduceat(charge * np.exp(-distance / gamma**2), first))

    current = potential(squared)
    orders = rng.permuted(np.tile(np.arange(2 * d), (_ORDERS, 1)), axis=1)
    order = rng.integers(_ORDERS, size=(n,))
    start = rng.integers(2 * d, size=(n,))
    tried = np.zeros(n, dtype=np.int64)
    for _ in range(n_steps):
        active = tried < 2 * d
        if not active.any():
            break
        choice = orders[order, (start + tried) % (2 * d)]
        axis, delta = choice // 2, np.where(choice % 2 == 1, step, -step)
        offset = walkers[np.arange(n), axis][owner] - field[neighbors, axis[owner]]
        proposed = squared + 2 * delta[owner] * offset + step**2
        found = potential(proposed)
        better = (found < current) & active
        walkers[better, axis[better]] += delta[better]
        squared = np.where(better[owner], proposed, squared)
        current = np.where(better, found, current)
        tried = np.where(better, 0, tried + 1)
        moved = int(better.sum())
        order[better], start[better] = rng.integers(_ORDERS, size=moved), rng.integers(2 * d, size=moved)
