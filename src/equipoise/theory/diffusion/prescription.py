"""The weights that make classes generalize, or be memorized, at the same time, and what that costs (Result 3).

Closing one gap by sampling opens the other; here both are computed, on the same random draws for all weights, so
that the choice can be made with open eyes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import optimize

from equipoise._core.checks import FloatArray, check_choice, check_fraction, check_positive, check_type
from equipoise._core.random import RandomState, draw_seed
from equipoise._core.solution import Solution, Status
from equipoise.theory.diffusion.model import RandomFeatures
from equipoise.theory.diffusion.prediction import LIMIT_TIMES, TIMES

Times = Callable[[FloatArray], FloatArray]
_Spread = Callable[[FloatArray], float]

_TOLERANCE = 0.02  # equal means within 2 % of each other


@dataclass(frozen=True)
class Reweighting:
    """Class times before and after reweighting.

    Attributes
    ----------
    quantity : str
        Which times were to be made equal.
    weights_before : array of shape (C,)
        The class weights before.
    weights : array of shape (C,)
        The class weights that were found.
    generalization_before : array of shape (C,)
        The generalization times before.
    generalization_after : array of shape (C,)
        The generalization times with the new weights.
    memorization_before : array of shape (C,)
        The memorization times before.
    memorization_after : array of shape (C,)
        The memorization times with the new weights.
    """

    quantity: str
    weights_before: FloatArray
    weights: FloatArray
    generalization_before: FloatArray
    generalization_after: FloatArray
    memorization_before: FloatArray
    memorization_after: FloatArray

    @staticmethod
    def ratio(times: FloatArray) -> float:
        """The latest class's time over the earliest one's; one is equality.

        Parameters
        ----------
        times : array of shape (C,)
            A time for each class.

        Returns
        -------
        float
            The ratio, at least 1.
        """
        return float(times.max() / times.min())

    @property
    def gain(self) -> tuple[float, float]:
        """The ratio of the times that were to be equal, before and after."""
        return self._ratios(self.quantity == "generalization")

    @property
    def cost(self) -> tuple[float, float]:
        """The ratio of the other times, before and after."""
        return self._ratios(self.quantity != "generalization")

    def _ratios(self, generalization: bool) -> tuple[float, float]:
        if generalization:
            return self.ratio(self.generalization_before), self.ratio(self.generalization_after)
        return self.ratio(self.memorization_before), self.ratio(self.memorization_after)


def equalizing_weights(
    model: RandomFeatures,
    quantity: str = "memorization",
    *,
    dimension: int | None = 16,
    n_instances: int = 2,
    lowest_weight: float = 0.02,
    redraw: bool = False,
    threshold: float = 1.0,
    matrices: str = "equivalent",
    random_state: RandomState = None,
) -> Solution[Reweighting]:
    """Find class weights under which the classes generalize, or are memorized, at the same time.

    Parameters
    ----------
    model : RandomFeatures
        The model with its present weights.
    quantity : {"memorization", "generalization"}
        Which times to make equal.
    dimension : int, optional
        N of the instances on which the times are computed. None computes the limit of large dimension, which has
        no randomness and no instances, in seconds for each try.
    n_instances : int
        The number of instances.
    lowest_weight : float
        No class is given less.
    redraw : bool
        Whether the samples stay what they are and are only drawn more or less often. By default a class's
        weight is also its share of the samples: a data set composed otherwise. The two prescriptions
        point in opposite directions: of a class that is memorized early one needs more samples, or fewer
        visits to each.
    threshold : float
        The test error at which a class counts as memorized.
    matrices : {"equivalent", "true"}
        As in :meth:`RandomFeatures.learning_curves`.
    random_state : int, generator or None
        The seed of the instances.

    Returns
    -------
    Solution
        The :class:`Reweighting`. Its status is ``no_solution`` where no weights make the times equal (a
        class that is ahead at any weight, or a minimum that jumps); its value then holds the weights that
        come closest.

    Examples
    --------
    >>> from equipoise.theory.diffusion import ClassMixture
    >>> mix = ClassMixture([0.5, 0.5], [0.5, 0.4], np.eye(2))
    >>> rf = RandomFeatures(mix, diffusion_time=0.01, features_per_dim=20, samples_per_dim=10)
    >>> found = equalizing_weights(rf, "memorization", dimension=10, n_instances=1, random_state=0)
    >>> found.converged, bool(found.value.gain[1] < 1.02 < found.value.gain[0])
    (True, True)
    """
    check_choice("quantity", quantity, ["memorization", "generalization"])
    check_type("model", model, RandomFeatures)
    low = float(check_fraction("lowest_weight", lowest_weight))
    threshold = float(check_positive("threshold", threshold))
    if low * model.mixture.n_classes >= 1 or model.mixture.n_classes < 2:
        raise ValueError(
            f"lowest_weight must leave room for at least two classes, got {low:g} for {model.mixture.n_classes}"
        )
    seed = draw_seed(random_state)
    seen: dict[tuple[float, ...], tuple[FloatArray, FloatArray]] = {}

    def times(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        key = tuple(np.round(weights, 12))
        if key not in seen:
            trial = replace(model, mixture=model.mixture.with_weights(weights / weights.sum()))
            shares = model.mixture.weights if redraw else None
            if dimension is None:
                curves = trial.limit_curves(LIMIT_TIMES, sample_shares=shares)
            else:
                curves = trial.learning_curves(
                    dimension,
                    TIMES,
                    n_instances,
                    seed,
                    matrices=matrices,
                    step=None,
                    sample_shares=shares,
                    verbose=False,
                )
            memorized = curves.with_threshold(threshold).memorization_time
            seen[key] = curves.generalization_time, memorized
        return seen[key]

    which = 0 if quantity == "generalization" else 1

    def spread(weights: FloatArray) -> float:
        value = times(weights)[which]
        return float(np.log(value.max() / value.min())) if np.isfinite(value).all() else np.inf

    search = _search_two if model.mixture.n_classes == 2 else _search_many
    weights = search(lambda w: times(w)[which], spread, model.mixture.weights, low)
    before, after = times(model.mixture.weights), times(weights)
    value = Reweighting(quantity, model.mixture.weights, weights, before[0], after[0], before[1], after[1])
    residual = spread(weights)
    status = Status.CONVERGED if residual < _TOLERANCE else Status.NO_SOLUTION
    message = (
        ""
        if status is Status.CONVERGED
        else f"the {quantity} times stay a factor {np.exp(residual):.3g} apart"
    )
    return Solution(value, status, residual, len(seen), message)


def _search_two(times: Times, spread: _Spread, start: FloatArray, low: float) -> FloatArray:
    """Scan the weight of the first class, then bisect the sign change of the log ratio of the two times."""

    def gap(b: float) -> float:
        first, second = times(np.array([b, 1 - b]))
        return float(np.log(first / second))

    scan = np.linspace(low, 1 - low, 9)
    values = np.array([gap(b) for b in scan])
    turns = np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0)
    candidates = [np.array([b, 1 - b]) for b in scan[np.isfinite(values)]] + [start]
    for i in turns:
        root = optimize.brentq(gap, scan[i], scan[i + 1], xtol=1e-4, rtol=1e-6)
        candidates.append(np.array([root, 1 - root]))
    return min(candidates, key=spread)


def _search_many(times: Times, spread: _Spread, start: FloatArray, low: float) -> FloatArray:
    """Move weight along the log times, either way, halving the step where it does not help; then a simplex."""
    best = start
    for direction in (-1.0, 1.0):
        weights, rate = start, 1.0
        for _ in range(20):
            value = times(weights)
            if not np.isfinite(value).all() or spread(weights) < _TOLERANCE:
                break
            move = np.log(value) - np.log(value).mean()
            trial = _project(weights * np.exp(direction * rate * move), low)
            if spread(trial) < spread(weights):
                weights = trial
            else:
                rate /= 2
        best = min(best, weights, key=spread)
    if spread(best) < _TOLERANCE:
        return best

    def objective(x: FloatArray) -> float:
        return min(spread(_project(np.exp(np.append(x, 0.0)), low)), 1e3)

    origin = np.log(best[:-1] / best[-1])
    simplex = origin + 0.15 * np.vstack([np.zeros(origin.size), np.eye(origin.size)])
    options: Any = {"maxfev": 60 * origin.size, "fatol": _TOLERANCE / 20, "initial_simplex": simplex}
    found = optimize.minimize(objective, origin, method="Nelder-Mead", options=options)
    return min(best, _project(np.exp(np.append(found.x, 0.0)), low), key=spread)


def _project(weights: FloatArray, low: float) -> FloatArray:
    """Weights that sum to one, none below ``low``."""
    share = weights / weights.sum()
    return low + (1 - low * share.size) * share
