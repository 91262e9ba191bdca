"""What can be made of the rows one has: leave some out, weight the classes, or get fresh ones?

The paper moves ρ at a fixed number of rows per dimension, which only fresh rows can do. With a pool of n₊ and
n₋ rows a share ρ leaves min(n₊/ρ, n₋/(1-ρ)) of them. Class weights keep all rows and are a third case, not
the same as either (section 4 of the paper says they are; :func:`solve_saddle` with weights and
:func:`sample_gibbs` say they are not).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from equipoise._core.checks import (
    FloatArray,
    check_choice,
    check_fraction,
    check_in_range,
    check_integer,
    check_positive,
)
from equipoise.theory.anomaly.metrics import teacher_bias
from equipoise.theory.anomaly.optimum import OBJECTIVES, maximize, objective_of
from equipoise.theory.anomaly.saddle import solve_saddle

LOADS = (0.01, 2000.0)  # rows per dimension that are accepted
HOTTEST = 5.0
SHARES = np.linspace(0.02, 0.98, 49)
_NOTHING = 1e-4  # a gain below this is none
WAYS = ("subset", "weights", "fresh")


@dataclass(frozen=True)
class TrainingChoice:
    """One way to train and what the model expects of it.

    Attributes
    ----------
    train_fraction : float
        The share of positives in training; with weights, their share of the total weight.
    n_positive, n_negative : int
        Rows of each class that are trained on.
    positive_weight, negative_weight : float
        What an error on each class counts.
    value, gain : float
        The objective, and what it gains over training on all rows as they are.
    gain_at_half : float
        The gain of the same way at equal shares.
    """

    train_fraction: float
    n_positive: int
    n_negative: int
    positive_weight: float
    negative_weight: float
    value: float
    gain: float
    gain_at_half: float


@dataclass(frozen=True)
class PoolPlan:
    """The best subset of a pool, the best weights on it, and what fresh rows in its place would add.

    Attributes
    ----------
    n_positive : int
        Positive rows of the pool.
    n_negative : int
        Negative rows of the pool.
    dimensions : float
        N.
    temperature : float
        T.
    intrinsic_fraction : float
        ρ0.
    objective : str
        What was maximized.
    as_is : float
        The objective of training on all rows without weights.
    subset, weights, fresh : TrainingChoice
        Leave rows out; weight all rows; draw as many fresh rows at another share.
    shares : ndarray
        The shares at which ``subset_curve``, ``weights_curve`` and ``fresh_curve`` give the objective.
    subset_curve : array
        The objective of leaving rows out, at each share.
    weights_curve : array
        The objective of weighting all rows, at each share.
    fresh_curve : array
        The objective of as many fresh rows, at each share.
    """

    n_positive: int
    n_negative: int
    dimensions: float
    temperature: float
    intrinsic_fraction: float
    objective: str
    as_is: float
    subset: TrainingChoice
    weights: TrainingChoice
    fresh: TrainingChoice
    shares: FloatArray
    subset_curve: FloatArray
    weights_curve: FloatArray
    fresh_curve: FloatArray

    @property
    def best(self) -> str:
        """The better of what needs no new rows: ``"subset"``, ``"weights"``, or ``"as is"`` if neither gains."""
        name = max(("subset", "weights"), key=lambda way: getattr(self, way).gain)
        return name if getattr(self, name).gain > 0 else "as is"

    def summary(self) -> str:
        """The plan in four lines of text.

        Returns
        -------
        str
            The lines.
        """
        rows = f"{self.n_positive:,} positive and {self.n_negative:,} negative rows"
        lines = [f"all {rows} as they are: {self.objective} {self.as_is:.3f}"]
        said = {"subset": "leave rows out", "weights": "weight the classes", "fresh": "as many fresh rows"}
        for name, label in said.items():
            way: TrainingChoice = getattr(self, name)
            lines.append(
                f"{label}: {way.gain:+.3f} at a share of {way.train_fraction:.2f} "
                f"({way.gain_at_half:+.3f} at equal shares)"
            )
        return "\n".join(lines)


class Pool(NamedTuple):
    """A pool in the model's terms; the last three may be arrays of one shape, such as draws of estimates."""

    n_positive: int
    n_negative: int
    max_rows: int
    test_fraction: float
    objective: str
    dimensions: FloatArray
    temperature: FloatArray
    teacher_bias: FloatArray

    @property
    def share(self) -> float:
        return self.n_positive / (self.n_positive + self.n_negative)

    def kept(self, share: FloatArray) -> FloatArray:
        """How many rows a share leaves of the pool."""
        most = np.minimum(self.n_positive / share, self.n_negative / (1 - share))
        return np.minimum(most, self.max_rows)

    def score(self, way: str, share: FloatArray) -> FloatArray:
        """The objective of training in this way at these shares (draws, shares)."""
        dims, noise, b0 = (
            np.asarray(v)[..., None] for v in (self.dimensions, self.temperature, self.teacher_bias)
        )
        rows = self.kept(share) if way == "subset" else self.max_rows
        if way == "weights":
            rho = np.broadcast_to(self.share, share.shape)
            weights = {"positive_weight": share / rho, "negative_weight": (1 - share) / (1 - rho)}
            point = solve_saddle(rows / dims, noise, b0, rho, **weights)
        else:
            point = solve_saddle(rows / dims, noise, b0, share)
        value = objective_of(point, self.objective, self.test_fraction)
        return -value if self.objective == "error" else value


def optimal_from_pool(
    n_positive: int,
    n_negative: int,
    dimensions: float,
    temperature: float,
    *,
    intrinsic_fraction: float | None = None,
    objective: str = "balanced_accuracy",
    test_fraction: float = 0.5,
    max_rows: int | None = None,
) -> PoolPlan:
    """The best subset of a pool of rows, the best class weights on it, and what fresh rows would add.

    Parameters
    ----------
    n_positive, n_negative : int
        Rows of each class.
    dimensions : float
        N, the number of directions that the rows use; α is the number of training rows over it.
    temperature : float
        T, the noise of the learning, from 0 to 5.
    intrinsic_fraction : float, optional
        ρ0, the share of positives in the population; the pool's own share unless given.
    objective : str
        ``"overlap"``, ``"bias"`` or a metric, as in :func:`optimal_train_fraction`.
    test_fraction : float, default=0.5
        The share of positives in the test set.
    max_rows : int, optional
        Train on at most so many rows; all unless given.

    Returns
    -------
    PoolPlan
        The three choices and their curves.

    References
    ----------
    Pezzicoli et al., section 4, whose claim that its results represent re-weighting and re-sampling alike this
    corrects. The limits of the model (no label noise, no ridge, Gaussian features) remain.

    Examples
    --------
    >>> plan = optimal_from_pool(100, 900, dimensions=100, temperature=0.5)
    >>> [f"{way.gain_at_half:+.3f}" for way in (plan.subset, plan.weights, plan.fresh)]
    ['-0.007', '+0.071', '+0.163']
    >>> round(plan.subset.gain, 3), round(plan.subset.train_fraction, 2)
    (0.019, 0.26)
    """
    positives = check_integer("n_positive", n_positive, 1)
    total = positives + check_integer("n_negative", n_negative, 1)
    rows = total if max_rows is None else check_integer("max_rows", max_rows, 2, total)
    check_choice("objective", objective, OBJECTIVES)
    dims = check_positive("dimensions", dimensions)
    check_in_range("rows per dimension", rows / dims, *LOADS)
    own = positives / total
    b0 = teacher_bias(
        check_fraction("intrinsic_fraction", own if intrinsic_fraction is None else intrinsic_fraction)
    )
    pool = Pool(
        positives, total - positives, rows, float(check_fraction("test_fraction", test_fraction)), objective,
        dims, check_in_range("temperature", temperature, 0.0, HOTTEST), b0,
    )  # fmt: skip
    return solve_pool(pool)


def solve_pool(pool: Pool) -> PoolPlan:
    """The plan for one setting of a pool."""
    sign = -1.0 if pool.objective == "error" else 1.0
    as_is = float(pool.score("fresh", np.array([pool.share]))[0])
    subset, weights, fresh = (_best(pool, way, as_is, sign) for way in WAYS)
    return PoolPlan(
        n_positive=pool.n_positive,
        n_negative=pool.n_negative,
        dimensions=float(pool.dimensions),
        temperature=float(pool.temperature),
        intrinsic_fraction=float(ndtr(pool.teacher_bias)),
        objective=pool.objective,
        as_is=sign * as_is,
        subset=subset,
        weights=weights,
        fresh=fresh,
        shares=SHARES,
        subset_curve=sign * pool.score("subset", SHARES),
        weights_curve=sign * pool.score("weights", SHARES),
        fresh_curve=sign * pool.score("fresh", SHARES),
    )


def _best(pool: Pool, way: str, as_is: float, sign: float) -> TrainingChoice:
    def score(share: FloatArray) -> FloatArray:
        return pool.score(way, share)

    share = float(maximize(score, (), square=pool.objective == "bias").train_fraction)
    value, half = (float(v) for v in score(np.array([share, 0.5])))
    if value - as_is < _NOTHING:
        share, value = pool.share, as_is
    rows = float(pool.kept(np.array(share))) if way == "subset" else float(pool.max_rows)
    if way == "weights":
        own = pool.share
        counts, weights = (rows * own, rows * (1 - own)), (share / own, (1 - share) / (1 - own))
    else:
        counts, weights = (rows * share, rows * (1 - share)), (1.0, 1.0)
    few, many = (round(count) for count in counts)
    return TrainingChoice(share, few, many, *weights, sign * value, value - as_is, half - as_is)
