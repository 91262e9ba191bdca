"""The model turned around: what would another training share bring for these rows, and is that to be believed?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray, check_choice, check_fraction, check_integer
from equipoise._core.random import RandomState, as_generator
from equipoise.theory.anomaly._estimates import binary_labels, fit_model, measure
from equipoise.theory.anomaly.metrics import teacher_bias
from equipoise.theory.anomaly.optimum import OBJECTIVES
from equipoise.theory.anomaly.pool import LOADS, WAYS, Pool, PoolPlan, solve_pool
from equipoise.theory.anomaly.population import FEWEST, TailOrGroup, tail_or_group

_ROWS = 4000  # more rows are sub-sampled for the estimates


@dataclass(frozen=True)
class TrainingAdvice:
    """A plan for the rows one has, the uncertainty of its gains, and whether to believe it.

    Attributes
    ----------
    plan : PoolPlan
        The best subset, the best weights and what fresh rows would add, at the estimated parameters.
    gain_interval, half_interval : dict
        For ``"subset"``, ``"weights"`` and ``"fresh"`` the 5th to 95th percentile of the gain of the plan's choice,
        and of the gain at equal shares.
    verdict : str
        ``"usable"``, ``"weak"`` or ``"worthless"``; ``reasons`` says why in sentences.
    reasons : tuple of str
        Why, in sentences.
    population : TailOrGroup or None
        Whether the rare class is a tail, as the model assumes (None with fewer than 20 rare rows).
    samples_per_dim, temperature : float
        α and T at which the model does what a linear classifier does on these rows.
    area, weights_gain : float
        What that classifier does on held-out rows: its ROC area, and what balanced class weights add to its
        balanced accuracy.
    """

    plan: PoolPlan
    gain_interval: dict[str, tuple[float, float]]
    half_interval: dict[str, tuple[float, float]]
    verdict: str
    reasons: tuple[str, ...]
    population: TailOrGroup | None
    samples_per_dim: float
    temperature: float
    area: float
    weights_gain: float

    def summary(self) -> str:
        """The advice in a few lines of text.

        Returns
        -------
        str
            The lines.
        """
        fitted = f"{self.samples_per_dim:.3g} rows per dimension and a noise of {self.temperature:.2f}"
        return "\n".join([f"{self.verdict}, from {fitted}", self.plan.summary(), *self.reasons])


def advise_training(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    pool: tuple[int, int] | None = None,
    objective: str = "balanced_accuracy",
    test_fraction: float = 0.5,
    draws: int = 20,
    random_state: RandomState = None,
) -> TrainingAdvice:
    """What leaving rows out, weighting the classes or fresh rows would bring for these data.

    The rarer class is the positive one and its share the model's ρ0. The model's load α and noise T are those at
    which it has the ROC area that a linear classifier (logistic regression, C = 100) reaches on held-out folds, and
    gains as much from balanced weights as that classifier does. The intervals come from drawing the held-out rows
    again. What the model leaves out (label noise, a ridge penalty, features of another shape) it cannot see.

    Parameters
    ----------
    X, y : array-like
        Rows and labels of two classes, at least 5 rows each.
    pool : tuple of int, optional
        Positive and negative rows in all, where ``X`` is only a sample of them.
    objective : str
        As in :func:`optimal_from_pool`.
    test_fraction : float
        As in :func:`optimal_from_pool`.
    draws : int
        Draws behind the intervals.
    random_state : int, generator or None
        The source of the folds and the draws.

    Returns
    -------
    TrainingAdvice
        The plan, its intervals and the verdict.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 20))
    >>> advice = advise_training(X, X[:, 0] > 1.3, draws=10, random_state=0)
    >>> advice.plan.subset.gain_at_half < 0 < advice.plan.fresh.gain_at_half
    True
    """
    check_choice("objective", objective, OBJECTIVES)
    check_integer("draws", draws, 10)
    share = float(check_fraction("test_fraction", test_fraction))
    generator = as_generator(random_state)
    rows, positive = binary_labels(X, y)
    few, many = (int(positive.sum()), int((~positive).sum())) if pool is None else sorted(pool)
    check_integer("pool", few, int(positive.sum()))
    rows, positive = _at_most(rows, positive, generator)
    b0 = float(teacher_bias(min(few / (few + many), 0.5)))
    enough = positive.sum() >= FEWEST
    population = tail_or_group(rows, positive, pool=(few, many), random_state=generator) if enough else None
    evidence = measure(rows, positive, draws, generator)
    load, noise = fit_model(evidence, b0, float(positive.mean()))
    wanted = (few + many) / (0.8 * len(rows)) * load  # a fold's classifier has seen four fifths of the rows
    load = np.clip(wanted, *LOADS)
    everything = Pool(
        few, many, few + many, share, objective, (few + many) / load, noise, np.full_like(load, b0)
    )
    plan = solve_pool(
        everything._replace(
            dimensions=everything.dimensions[0], temperature=noise[0], teacher_bias=np.asarray(b0)
        )
    )
    reasons = _reasons(population, evidence.area, float(wanted[0]))
    fatal = any(reason.startswith("Worthless") for reason in reasons)
    chosen, half = _intervals(everything, plan)
    return TrainingAdvice(
        plan=plan,
        gain_interval=chosen,
        half_interval=half,
        verdict="worthless" if fatal else "weak" if reasons else "usable",
        reasons=tuple(reasons),
        population=population,
        samples_per_dim=float(load[0]),
        temperature=float(noise[0]),
        area=float(evidence.area[0]),
        weights_gain=float(evidence.weights_gain[0]),
    )


def _at_most(
    rows: FloatArray, positive: npt.NDArray[np.bool_], generator: np.random.Generator
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """All rows up to a bound; of more all positives up to half of it, and negatives at random."""
    if len(rows) <= _ROWS:
        return rows, positive
    keep = [generator.permutation(np.flatnonzero(side)) for side in (positive, ~positive)]
    few = keep[0][: _ROWS // 2]
    chosen = np.concatenate([few, keep[1][: _ROWS - len(few)]])
    return rows[chosen], positive[chosen]


Intervals = dict[str, tuple[float, float]]


def _intervals(pool: Pool, plan: PoolPlan) -> tuple[Intervals, Intervals]:
    """The 5th to 95th percentile over the draws of each way's gain, at the plan's share and at one half."""
    found: tuple[Intervals, Intervals] = ({}, {})
    for way in WAYS:
        shares = np.array([getattr(plan, way).train_fraction, 0.5])
        gains = pool.score(way, shares) - pool.score("fresh", np.array([pool.share]))
        for column, into in zip(gains[1:].T, found, strict=True):
            low, high = np.quantile(column, [0.05, 0.95])
            into[way] = (float(low), float(high))
    return found


def _reasons(population: TailOrGroup | None, area: FloatArray, load: float) -> list[str]:
    """Why to doubt the advice, in plain sentences; those that begin with "Worthless" rule it out."""
    said = []
    if population is None:
        said.append(f"With fewer than {FEWEST} rare rows it cannot be told whether they are a tail.")
    elif population.verdict == "group":
        said.append("Worthless: the rare class looks like a group of its own, and the model assumes a tail.")
    elif population.verdict == "undecided":
        said.append("Whether the rare class is a tail, as the model assumes, cannot be told from these data.")
    if np.quantile(area[1:], 0.05) <= 0.5:
        said.append("Worthless: a linear classifier finds no signal on held-out data.")
    if not LOADS[0] <= load <= LOADS[1]:
        low, high = LOADS
        said.append(f"{load:.3g} rows per dimension lie outside {low:g} to {high:g}; the nearest was used.")
    return said


def theory_sampling_strategy(
    X: npt.ArrayLike,
    *,
    kind: str = "over-sampling",
    objective: str = "balanced_accuracy",
    random_state: RandomState = 0,
) -> Callable[[npt.ArrayLike], dict[Any, int]]:
    """A ``sampling_strategy`` for imbalanced-learn's samplers: the counts that the model finds best.

    imbalanced-learn calls it with ``y`` alone, so give it ``X`` here. Copies of a row count its errors more often,
    which is what class weights do: over-sampling raises the rare class to the best weights' share, under-sampling
    lowers the common class to the best subset's. Neither ever does the opposite, and where the model expects no
    gain the counts stay as they are. Two classes only. The advice stands in the attribute ``advice`` afterwards.

    Parameters
    ----------
    X : array-like
        The rows that ``y`` will belong to.
    kind : str
        ``"over-sampling"`` or ``"under-sampling"``.
    objective : str
        As in :func:`optimal_from_pool`.
    random_state : int, generator or None
        The source of the folds and the draws.

    Returns
    -------
    callable
        From labels to a count for each of them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 5))
    >>> counts = theory_sampling_strategy(X)((X[:, 0] > 1.2).astype(int))
    >>> counts[0] == (X[:, 0] <= 1.2).sum(), counts[1] >= (X[:, 0] > 1.2).sum()
    (np.True_, np.True_)
    """
    check_choice("kind", kind, ("over-sampling", "under-sampling"))

    def strategy(y: npt.ArrayLike) -> dict[Any, int]:
        labels, counts = np.unique(np.asarray(y).ravel(), return_counts=True)
        if len(labels) != 2:
            raise ValueError(f"sampling_strategy='theory' is for two classes, got {len(labels)}")
        advice = advise_training(X, y, objective=objective, draws=10, random_state=random_state)
        strategy.advice = advice  # type: ignore[attr-defined]
        rare = int(counts.argmin())
        few, many = int(counts[rare]), int(counts[1 - rare])
        if kind == "over-sampling":
            share = advice.plan.weights.train_fraction
            few = max(few, round(share / (1.0 - share) * many))
        else:
            many = min(many, max(advice.plan.subset.n_negative, 1))
        return {labels[rare].item(): few, labels[1 - rare].item(): many}

    return strategy
