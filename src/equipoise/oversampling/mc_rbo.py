"""MC-RBO: points that climb to where the classes' radial potentials balance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from equipoise._core.checks import FloatArray, IntArray, check_choice, check_integer, check_positive
from equipoise.oversampling._base import ProvenanceSampler
from equipoise.oversampling._multiclass import draw_opponents, from_large_to_small, unit_range
from equipoise.oversampling._potential import REACH, potential_of
from equipoise.oversampling.provenance import Synthetic

_BLOCK = 2**18  # numbers held for the neighbors of some walkers: 2 MB, which a cache holds
_PAIRS = 2**21  # distances held at once
_WALKERS = 4096  # walkers whose neighbors are held at once
_FEW_COLUMNS = 8  # up to which the potential's curvature costs less than the moves
_ORDERS = 64  # shared random orders of the moves, each entered anywhere: a fresh shuffle a walker costs more


@dataclass(kw_only=True, repr=False, eq=False)
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
        The length of a move, ``gamma`` at most.
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
    All walkers move at once. In up to eight columns the potential, its gradient and its Hessian are computed where
    each walker stands, and tell what its next moves do: for γ/5 of path a column, 2γ/3 at most. They are read from
    a table of cubic splines in one or two columns and in three of ten thousand rows; otherwise they are sums over
    the points within 3.5 γ: one farther adds less than 5·10⁻⁶ to the potential of 1 that a walker's own origin has.
    In more columns, with the Manhattan distance or with long steps, each walker sees the points within reach of
    its next moves, which are looked up again when it has taken them. A move of δ along an axis multiplies the term
    of a point at offset a by exp(−(2aδ + δ²)/γ²), so the Euclidean terms are carried along by factors that are
    computed once a stage. The classes are filled from the second-largest to the smallest, and the new points of one
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

    gamma: float = 0.05
    step: float = 0.001
    n_steps: int = 500
    metric: str = "euclidean"

    def _synthesize(
        self, X: FloatArray, codes: IntArray, wanted: dict[int, int], rng: np.random.Generator
    ) -> Synthetic:
        if check_positive("step", self.step) > check_positive("gamma", self.gamma):
            raise ValueError(f"step must be at most gamma, got {self.step:g} and {self.gamma:g}")
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
        """Take all steps, in stages; a walker whose every move failed rests."""
        n, d = walkers.shape
        orders = rng.permuted(np.tile(np.arange(2 * d), (_ORDERS, 1)), axis=1)
        state: Any = rng.integers(2**63, size=n, dtype=np.uint64)
        turn = _Turns(state, np.zeros(n, np.int64))
        smooth = self.metric == "euclidean" and d <= _FEW_COLUMNS and self.step <= self.gamma / 10
        potential = potential_of(field, sign, self.gamma) if smooth else None
        path = self.gamma if potential is None else self.gamma * min(d / 5, 2 / 3)
        stage, left = max(1, round(path / self.step)), self.n_steps
        while left > 0 and (turn.tried < 2 * d).any():
            awake: IntArray = np.flatnonzero(turn.tried < 2 * d)
            steps = min(stage, left)
            scenes: Iterable[tuple[IntArray, _Scene | _CurvedScene]]
            if potential is None:
                scenes = self._scenes(walkers, awake, field, sign, REACH * self.gamma + steps * self.step)
            else:
                scenes = [(awake, _CurvedScene(walkers[awake], *potential.around(walkers[awake])))]
            turn.tried[awake] += 2 * d  # whoever has nothing in sight has nothing to gain, and rests
            for mine, scene in scenes:
                turn.tried[mine] -= 2 * d
                stage_turn = turn.of(mine)
                places = _climb(scene, stage_turn, orders, steps, self.step)
                if potential is not None:  # who came to rest elsewhere than it looked has to look again
                    moved = (places != walkers[mine]).any(axis=1)
                    stage_turn.tried[moved & (stage_turn.tried >= 2 * d)] = 0
                walkers[mine] = places
                turn.put(mine, stage_turn)
            left -= steps
        return walkers

    def _scenes(
        self, walkers: FloatArray, awake: IntArray, field: FloatArray, sign: FloatArray, radius: float
    ) -> Iterator[tuple[IntArray, _Scene]]:
        """Walkers that see about as many points each, with those points."""
        for block in np.array_split(awake, -(-len(awake) // _WALKERS)):
            few = np.array_split(walkers[block], -(-len(block) * len(field) // _PAIRS))
            found = [_neighbors(some, field, radius, self.metric) for some in few]
            sizes, near = (np.concatenate(parts) for parts in zip(*found, strict=True))
            first = np.cumsum(sizes) - sizes
            for some in _split(sizes, walkers.shape[1]):
                place = np.arange(sizes[some].max())
                real = place < sizes[some, None]
                seen = near[np.where(real, first[some, None] + place, 0)]
                charge = np.where(real, sign[seen], 0.0)  # rows are filled up with points of no charge
                yield block[some], _Scene(walkers[block[some]], field, seen, charge, self)


def _neighbors(
    walkers: FloatArray, field: FloatArray, radius: float, metric: str
) -> tuple[IntArray, IntArray]:
    """How many points each walker has within ``radius``, and which, one walker after another."""
    excess: npt.NDArray[np.floating[Any]]
    if metric == "manhattan":
        excess = cdist(walkers, field, "cityblock") - radius
    else:  # one product of single precision, since points about the radius do not count
        left = np.column_stack([-2 * walkers, (walkers**2).sum(axis=1) - radius**2, np.ones(len(walkers))])
        right = np.column_stack([field, np.ones(len(field)), (field**2).sum(axis=1)])
        excess = left.astype(np.float32) @ right.T.astype(np.float32)
    walker, point = np.divmod(np.flatnonzero(excess <= 0), len(field))
    return np.bincount(walker, minlength=len(walkers)), point


def _split(sizes: IntArray, d: int) -> list[IntArray]:
    """Runs of walkers that see about as many points each, whose factors are at most ``_BLOCK`` numbers."""
    walkers = np.argsort(sizes, kind="stable")[np.sum(sizes == 0) :]
    runs, first = [], 0
    while first < len(walkers):
        held = 2 * d * sizes[walkers[first:]] * np.arange(1, len(walkers) - first + 1)
        last = first + max(1, int(np.searchsorted(held, _BLOCK)))
        runs.append(walkers[first:last])
        first = last
    return runs


@dataclass
class _Turns:
    """Where each walker stands in its random order of moves, and how many of them it has tried in vain.

    Every walker has a generator of its own (a linear congruence), so that its turns do not depend on its company.
    """

    state: npt.NDArray[np.uint64]
    tried: IntArray

    def of(self, walkers: IntArray) -> _Turns:
        return _Turns(self.state[walkers], self.tried[walkers])

    def put(self, walkers: IntArray, turns: _Turns) -> None:
        self.state[walkers], self.tried[walkers] = turns.state, turns.tried

    def moves(self, orders: IntArray) -> IntArray:
        """The next move of each walker."""
        drawn = (self.state >> np.uint64(33)).astype(np.int64)
        return orders[drawn % _ORDERS, (drawn // _ORDERS + self.tried) % orders.shape[1]]

    def count(self, accepted: npt.NDArray[np.bool_]) -> None:
        """After a success all moves are open again, in another order."""
        self.tried = np.where(accepted, 0, self.tried + 1)
        self.state[accepted] = self.state[accepted] * np.uint64(6364136223846793005) + np.uint64(
            1442695040888963407
        )


class _Scene:
    """Walkers and the points that each of them sees, one row a walker."""

    def __init__(
        self, walkers: FloatArray, field: FloatArray, seen: IntArray, charge: FloatArray, sampler: MCRBO
    ) -> None:
        self.walkers, self.gamma, self.step = walkers, sampler.gamma, sampler.step
        self.charge, self.apart = charge, walkers.T[:, :, None] - field.T[:, seen]  # (axis, walker, point)
        self.manhattan = sampler.metric == "manhattan"
        if self.manhattan:
            self.distance = np.abs(self.apart).sum(axis=0)
        else:
            self.term = charge * np.exp(-(self.apart**2).sum(axis=0) / self.gamma**2)
            growth = np.exp(-2 * self.step / self.gamma**2 * self.apart)
            self.factor = np.concatenate(
                [1 / growth, growth]
            )  # of the moves back along each axis, then forth
            self.moves, self.scale = np.zeros(walkers.shape), np.ones(len(walkers))

    def potential(self) -> FloatArray:
        """At each walker, where it stands."""
        term = self.charge * np.exp(-((self.distance / self.gamma) ** 2)) if self.manhattan else self.term
        return np.asarray(term.sum(axis=1))

    def trial(self, axis: IntArray, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The potential at each walker after a move along its axis, and what the move makes of every point."""
        everyone = np.arange(len(axis))
        if self.manhattan:
            offset = self.apart[axis, everyone]
            distance = self.distance + np.abs(offset + delta[:, None]) - np.abs(offset)
            return np.einsum("ij,ij->i", self.charge, np.exp(-((distance / self.gamma) ** 2))), distance
        term = self.factor[np.where(delta > 0, axis + len(self.apart), axis), everyone]
        term *= self.term
        scale = self.scale * self._of_all_points(everyone, axis, delta)
        return scale * term.sum(axis=1), term

    def _of_all_points(self, some: IntArray, axis: IntArray, delta: FloatArray) -> FloatArray:
        """The part of a move's factor that all points share: that of δ² and of earlier moves along the axis."""
        passed = self.moves[some, axis] * np.sign(delta)
        return np.asarray(np.exp(-((self.step / self.gamma) ** 2) * (2 * passed + 1)))

    def take(self, better: IntArray, axis: IntArray, delta: FloatArray, made: FloatArray) -> None:
        """Let some walkers make their moves."""
        self.walkers[better, axis] += delta
        if self.manhattan:
            self.apart[axis, better] += delta[:, None]
            self.distance[better] = made
        else:
            self.term[better] = made
            self.scale[better] *= self._of_all_points(better, axis, delta)
            self.moves[better, axis] += np.sign(delta)


@dataclass
class _CurvedScene:
    """Walkers in a potential that is known to second order about where they stood."""

    walkers: FloatArray
    value: FloatArray
    slope: FloatArray
    bend: FloatArray

    def potential(self) -> FloatArray:
        """At each walker, where it stands."""
        return self.value

    def trial(self, axis: IntArray, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The potential at each walker after a move along its axis, twice."""
        everyone = np.arange(len(axis))
        slope, bend = self.slope[everyone, axis], self.bend[everyone, axis, axis]
        after = self.value + delta * (slope + delta / 2 * bend)
        return after, after

    def take(self, better: IntArray, axis: IntArray, delta: FloatArray, made: FloatArray) -> None:
        """Let some walkers make their moves."""
        self.walkers[better, axis] += delta
        self.value[better] = made
        self.slope[better] += delta[:, None] * self.bend[better, axis]


def _climb(
    scene: _Scene | _CurvedScene, turn: _Turns, orders: IntArray, steps: int, step: float
) -> FloatArray:
    """So many moves of every walker, each of which changes one coordinate only.

    Each walker tries the 2·d moves in a random order, without repeating one that failed from where it stands;
    after a success all are open again. (The way back is among them, and always fails.)
    """
    current = np.abs(scene.potential())
    for _ in range(steps):
        awake = turn.tried < orders.shape[1]
        if not awake.any():
            break
        choice = turn.moves(orders)
        axis, delta = choice // 2, np.where(choice % 2 == 1, step, -step)
        potential, made = scene.trial(axis, delta)
        found = np.abs(potential)
        accepted = (found < current) & awake
        turn.count(accepted)
        better = np.flatnonzero(accepted)
        if len(better):
            scene.take(better, axis[better], delta[better], made[better])
            current[better] = found[better]
    return scene.walkers
