"""MC-RBO: points that climb to where the classes' radial potentials balance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from equipoise._core.checks import FloatArray, IntArray, check_choice, check_integer, check_positive
from equipoise._core.random import RandomState
from equipoise.oversampling._base import ProvenanceSampler
from equipoise.oversampling._multiclass import draw_opponents, from_large_to_small, unit_range
from equipoise.oversampling._strategy import Strategy
from equipoise.oversampling.provenance import Synthetic

_REACH = (
    6.1  # in units of gamma: exp(−6.1²) is below the rounding of a double beside the point's own potential
)
_BLOCK = 2**20  # walker–neighbor pairs held at once
_WALKERS = 2048  # walkers whose neighbors are looked up at once
_ORDERS = 64  # shared random orders of the moves, each entered anywhere: a fresh shuffle a walker costs more


class MCRBO(ProvenanceSampler):
    """Multi-class radial-based over-sampling.

    The mutual potential at a point is Σ exp(−d²/γ²) over opposing points minus the same over the class's own.
    A copy of a random minority point walks along single axes, a ``step`` at a time, as long as that brings the
    potential's magnitude down: to where neither class rules.

    Parameters
    ----------
    sampling_strategy : str, float, dict or callable
        As in imbalanced-learn; see :class:`ProvenanceSampler`.
    gamma : float
        The spread γ of the radial functions, in units where every column ranges over [0, 1].
    step : float
        The length of a move.
    n_steps : int
        How many moves are tried for a point.
    metric : {"euclidean", "manhattan"}
        The paper's distance d, or that of the authors' program.
    on_low_quality : {"warn", "raise", "skip"}
        What to do with a class whose made rows are no good; see :class:`ProvenanceSampler`.
    random_state : int, generator or None
        The source of all randomness.

    Notes
    -----
    All walkers move at once. Each sees the points within reach of its next moves, which are looked up again when
    it has taken them: points farther than 6.1 γ add less than a double's rounding to the potential of 1 that
    its own origin has. The classes are filled from the second-largest to the smallest, and the new points of one
    class oppose the next.

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
        metric: str = "euclidean",
        on_low_quality: str = "warn",
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            sampling_strategy=sampling_strategy, on_low_quality=on_low_quality, random_state=random_state
        )
        self.gamma = gamma
        self.step = step
        self.n_steps = n_steps
        self.metric = metric

    def _synthesize(
        self, X: FloatArray, codes: IntArray, wanted: dict[int, int], rng: np.random.Generator
    ) -> Synthetic:
        check_positive("gamma", self.gamma)
        check_positive("step", self.step)
        check_integer("n_steps", self.n_steps, low=0)
        check_choice("metric", self.metric, ["euclidean", "manhattan"])
        low, width = unit_range(X)
        points, n_largest = (X - low) / width, int(np.bincount(codes).max())
        parts = []
        for code, larger in from_large_to_small(codes, wanted):
            own, others = np.flatnonzero(codes == code), draw_opponents(codes, larger, n_largest, rng)
            origin = rng.choice(len(own), size=wanted[code])
            field = np.concatenate([points[others], points[own]])
            sign = np.concatenate([np.ones(len(others)), -np.ones(len(own))])
            rows = self._walk(points[own][origin], field, sign, rng)
            made = np.full(len(rows), code)
            parts.append(Synthetic(rows * width + low, made, own[origin][:, None], np.ones((len(rows), 1))))
            points, codes = np.concatenate([points, rows]), np.concatenate([codes, made])
        return Synthetic.concatenate(parts, X.shape[1])

    def _walk(
        self, walkers: FloatArray, field: FloatArray, sign: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Take all steps, in stages of at most γ of path; a walker whose every move failed rests."""
        n, d = walkers.shape
        tree, p = cKDTree(field), 1 if self.metric == "manhattan" else 2
        orders = rng.permuted(np.tile(np.arange(2 * d), (_ORDERS, 1)), axis=1)
        order: Any = rng.integers(_ORDERS, size=n)
        turn = _Turns(order, rng.integers(2 * d, size=n), np.zeros(n, np.int64))
        stage, left = max(1, round(self.gamma / self.step)), self.n_steps
        while left > 0 and len(awake := np.flatnonzero(turn.tried < 2 * d)):
            steps = min(stage, left)
            for block in np.array_split(awake, -(-len(awake) // _WALKERS)):
                near: Any = tree.query_ball_point(
                    walkers[block], _REACH * self.gamma + steps * self.step, p=p, return_sorted=True
                )
                sizes = np.array([len(points) for points in near])
                turn.tried[block[sizes == 0]] = 2 * d  # nothing in sight, nothing to gain
                for some in _split(np.flatnonzero(sizes), sizes):
                    seen = np.concatenate([near[at] for at in some]).astype(np.int64)
                    mine = block[some]
                    stage_turn = turn.of(mine)
                    scene = _Scene(
                        field[seen], sign[seen], np.repeat(np.arange(len(some)), sizes[some]), self
                    )
                    walkers[mine] = scene.climb(walkers[mine], stage_turn, orders, steps, rng)
                    turn.put(mine, stage_turn)
            left -= steps
        return walkers


def _split(walkers: IntArray, sizes: IntArray) -> list[IntArray]:
    """Runs of walkers that see at most ``_BLOCK`` points together, one walker at least."""
    if not len(walkers):
        return []
    run = np.cumsum(sizes[walkers]) // _BLOCK
    return np.split(walkers, np.flatnonzero(np.diff(run)) + 1)


@dataclass
class _Turns:
    """Where each walker stands in its random order of moves: which order, entered where, moves tried in vain."""

    order: IntArray
    start: IntArray
    tried: IntArray

    def of(self, walkers: IntArray) -> _Turns:
        return _Turns(self.order[walkers], self.start[walkers], self.tried[walkers])

    def put(self, walkers: IntArray, turns: _Turns) -> None:
        self.order[walkers], self.start[walkers] = turns.order, turns.start
        self.tried[walkers] = turns.tried


class _Scene:
    """Walkers and the points that each of them sees, pair by pair."""

    def __init__(self, points: FloatArray, charge: FloatArray, owner: IntArray, sampler: MCRBO) -> None:
        self.points, self.charge, self.owner = points, charge, owner
        self.first = np.flatnonzero(np.diff(owner, prepend=-1))
        self.gamma, self.step, self.manhattan = sampler.gamma, sampler.step, sampler.metric == "manhattan"

    def potential(self, distance: FloatArray) -> FloatArray:
        """The magnitude at each walker, from distances (Manhattan) or squared distances (Euclidean)."""
        squared = distance**2 if self.manhattan else distance
        return np.abs(np.add.reduceat(self.charge * np.exp(-squared / self.gamma**2), self.first))

    def climb(
        self, walkers: FloatArray, turn: _Turns, orders: IntArray, steps: int, rng: np.random.Generator
    ) -> FloatArray:
        """So many moves of every walker, each of which changes one coordinate of the distances only.

        Each walker tries the 2·d moves in a random order, without repeating one that failed from where it
        stands; after a success all are open again. (The way back is among them, and always fails.)
        """
        n, d = walkers.shape
        walkers, owner, everyone = walkers.copy(), self.owner, np.arange(n)
        apart = walkers[owner] - self.points
        distance = np.abs(apart).sum(axis=1) if self.manhattan else (apart**2).sum(axis=1)
        current = self.potential(distance)
        pair = np.arange(len(owner))
        for _ in range(steps):
            awake = turn.tried < 2 * d
            if not awake.any():
                break
            choice = orders[turn.order, (turn.start + turn.tried) % (2 * d)]
            axis, delta = choice // 2, np.where(choice % 2 == 1, self.step, -self.step)
            offset, shift = apart[pair, axis[owner]], delta[owner]
            change = (
                np.abs(offset + shift) - np.abs(offset) if self.manhattan else shift * (2 * offset + shift)
            )
            found = self.potential(distance + change)
            better = (found < current) & awake
            turn.tried = np.where(better, 0, turn.tried + 1)
            if not better.any():
                continue
            walkers[everyone[better], axis[better]] += delta[better]
            moved = better[owner]
            apart[pair[moved], axis[owner[moved]]] += shift[moved]
            distance[moved] += change[moved]
            current[better] = found[better]
            count = int(better.sum())
            turn.order[better], turn.start[better] = (
                rng.integers(_ORDERS, size=count),
                rng.integers(2 * d, size=count),
            )
        return walkers
