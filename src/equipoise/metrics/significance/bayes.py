"""Bayesian comparison of two methods, by baycomp: how probable is it that one is better in practice?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import check_in_range, check_integer
from equipoise._core.extras import optional
from equipoise._core.random import RandomState, draw_seed
from equipoise.metrics.significance.ranks import check_pair


@dataclass(frozen=True)
class Posterior:
    """Probabilities that the first method is better, that the two are equivalent, that the second is.

    Attributes
    ----------
    first : float
        The probability that the first method is better in practice.
    equivalent : float
        The probability that the two are equivalent in practice.
    second : float
        The probability that the second method is better in practice.
    """

    first: float
    equivalent: float
    second: float


def _baycomp() -> Any:
    return optional("baycomp", "Bayesian tests need baycomp")


def _three(probs: tuple[float, ...]) -> Posterior:
    left, right = float(probs[0]), float(probs[-1])
    return Posterior(left, float(probs[1]) if len(probs) == 3 else 0.0, right)


def bayesian_signed_rank(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    rope: float = 0.01,
    greater_is_better: bool = True,
    n_samples: int = 20_000,
    random_state: RandomState = None,
) -> Posterior:
    """Two methods over many data sets: the Bayesian signed-rank test.

    Parameters
    ----------
    first, second : array
        One score per data set.
    rope : float
        Differences within ±``rope`` count as none (the region of practical equivalence).
    greater_is_better : bool
        Whether larger scores are better.
    n_samples : int
        The number of draws from the posterior.
    random_state : int, generator or None
        The source of the draws.

    Returns
    -------
    Posterior
        The three probabilities.

    References
    ----------
    Benavoli et al. (2014, 2017). Mondal et al., Table 2, report it.

    Examples
    --------
    >>> better = bayesian_signed_rank([.9, .8, .85, .9, .95], [.7, .6, .65, .8, .7], random_state=0)
    >>> better.first > 0.95
    True
    """
    a, b = check_pair(first, second)
    rope = float(check_in_range("rope", rope, 0, np.inf, closed="left"))
    check_integer("n_samples", n_samples, low=1)
    if rope == 0 and not (a - b).any():
        return Posterior(0.5, 0.0, 0.5)  # nothing to tell them apart; sampling would decide by rounding
    sign = 1 if greater_is_better else -1
    seed = draw_seed(random_state)
    test = _baycomp().SignedRankTest
    return _three(test.probs(sign * a, sign * b, rope, nsamples=n_samples, random_state=seed))


def correlated_t(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    rope: float = 0.01,
    runs: int = 1,
    greater_is_better: bool = True,
) -> Posterior:
    """Two methods on one data set: the Bayesian correlated t-test of cross-validation scores.

    Parameters
    ----------
    first, second : array
        One score per fold, in the same order of folds.
    rope : float
        Differences within ±``rope`` count as none (the region of practical equivalence).
    runs : int
        Repetitions of the cross-validation; the correlation of folds is taken as 1/folds
        (Nadeau & Bengio 2003).
    greater_is_better : bool
        Whether larger scores are better.

    Returns
    -------
    Posterior
        The three probabilities.

    References
    ----------
    Corani & Benavoli (2015), A Bayesian approach for comparing cross-validated algorithms on multiple data
    sets.

    Examples
    --------
    >>> correlated_t([.81, .82, .8, .83, .82], [.8, .82, .81, .82, .82], rope=0.05).equivalent > 0.95
    True
    """
    a, b = check_pair(first, second)
    rope = float(check_in_range("rope", rope, 0, np.inf, closed="left"))
    runs = check_integer("runs", runs, low=1)
    if len(a) % runs or len(a) // runs < 2:
        raise ValueError(f"runs must divide the scores into at least two folds each, got {runs} for {len(a)}")
    sign = 1 if greater_is_better else -1
    return _three(_baycomp().CorrelatedTTest(sign * a, sign * b, rope, runs).probs())
