"""Is the rare class the tail of one population, or a group of its own? (sections 2.1 and G.3.1)

In the model (anomaly-detection imbalance) all rows come from one population and a rule cuts off its tail. In
multiple-groups imbalance the rare class has a distribution of its own. Both are fitted, by maximum
likelihood, to the rows' held-out positions s across a linear boundary, and both may have wrong labels with
probability ε:

    tail:   s ~ N(μ, σ²),  P(positive | s) = ε + (1-2ε)·Φ(a + c·s)
    group:  s ~ N(m₊, σ₊²) with probability π, else N(m₋, σ₋²), and labels turned with probability ε

Vuong's test for models that are not nested says which is closer to the data, or that this cannot be told.
Labels that are wrong here and there look like a rare class with a middle of its own: without ε they would
turn a tail into a group.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, log_ndtr, logit
from scipy.stats import norm

from equipoise._core.checks import FloatArray, check_integer
from equipoise._core.random import RandomState, as_generator
from equipoise._core.solution import ConvergenceWarning
from equipoise.theory.anomaly._estimates import binary_labels, held_out_scores

_DECIDED = 2.0  # standard errors of the difference in log-likelihood
_MOST_NOISE = 0.3
FEWEST = 20  # positives below which nothing is said


@dataclass(frozen=True)
class TailOrGroup:
    """What the rare class is, and the evidence.

    Attributes
    ----------
    verdict : str
        ``"tail"``, ``"group"`` or ``"undecided"``.
    evidence : float
        Vuong's z: the mean difference in log-likelihood over its standard error, positive for a tail. Beyond ±2 it
        decides.
    label_noise : float
        ε of the better model.
    positions : ndarray
        Each row's held-out position across the boundary, with a standard deviation of one.
    """

    verdict: str
    evidence: float
    label_noise: float
    positions: FloatArray


def tail_or_group(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    pool: tuple[int, int] | None = None,
    random_state: RandomState = None,
) -> TailOrGroup:
    """Tell whether the rarer of two classes is the tail of one population or a group of its own.

    Both models are Gaussian along the boundary's direction. Heavy tails or a curved boundary can mislead them; the
    error rates on data of either kind stand in ``docs/explanation/anomaly.md``.

    Parameters
    ----------
    X, y : array-like
        Rows and labels of two classes; at least 20 rows of the rarer one.
    pool : tuple of int, optional
        Positive and negative rows in all, where ``X`` is a sample that holds more of the one than of the other.
        Each row then counts for as many as it stands for: a tail of which every row is shown, and of the rest
        few, would look like a group.
    random_state : int, generator or None
        Draws the folds.

    Returns
    -------
    TailOrGroup
        The verdict and the evidence for it.

    References
    ----------
    Pezzicoli et al., section 2.1; Vuong, "Likelihood ratio tests for model selection and non-nested hypotheses"
    (1989).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 5))
    >>> tail_or_group(X, X[:, 0] > 1.3, random_state=0).verdict
    'tail'
    >>> groups = rng.random(2000) < 0.1
    >>> tail_or_group(X + 3.0 * groups[:, None] * np.eye(5)[0], groups, random_state=0).verdict
    'group'
    """
    rows, positive = binary_labels(X, y)
    if positive.sum() < FEWEST:
        raise ValueError(f"it needs at least {FEWEST} rows of the rarest class, got {int(positive.sum())}")
    s = held_out_scores(rows, positive, as_generator(random_state)).mean(axis=0)
    weight = _counts_for(positive, pool)
    s = s - np.average(s, weights=weight)
    s = s / max(float(np.sqrt(np.average(s**2, weights=weight))), 1e-12)
    share = float(np.average(positive, weights=weight))
    tail, tail_noise = _fit(_tail_likelihood, _tail_starts(share), s, positive, weight)
    group, group_noise = _fit(_group_likelihood, _group_starts(share, s, positive), s, positive, weight)
    difference = tail - group
    # The group model has one parameter more than the tail with its two of the normal: Schwarz's correction.
    total = float(weight @ difference) + 0.5 * np.log(len(s))
    spread = np.linalg.norm(weight * (difference - np.average(difference, weights=weight)))
    z = total / max(float(spread), 1e-12)
    verdict = "undecided" if abs(z) < _DECIDED else "tail" if z > 0 else "group"
    return TailOrGroup(verdict, z, tail_noise if z > 0 else group_noise, s)


def _counts_for(positive: npt.NDArray[np.bool_], pool: tuple[int, int] | None) -> FloatArray:
    """How many rows of the pool each row stands for, one on average."""
    if pool is None:
        return np.ones(len(positive))
    few, many = (
        check_integer("pool", count, int(rows.sum()))
        for count, rows in zip(sorted(pool), (positive, ~positive), strict=True)
    )
    weight = np.where(positive, few / positive.sum(), many / (~positive).sum())
    return np.asarray(weight / weight.mean())


_Likelihood = Callable[[FloatArray, FloatArray, npt.NDArray[np.bool_]], FloatArray]


def _fit(
    likelihood: _Likelihood,
    starts: list[list[float]],
    s: FloatArray,
    positive: npt.NDArray[np.bool_],
    weight: FloatArray,
) -> tuple[FloatArray, float]:
    """The log-likelihood of every row at the best fit from the given starts, and the share of wrong labels."""

    def loss(p: FloatArray) -> float:
        return -float(weight @ likelihood(p, s, positive)) / len(s)

    found = [minimize(loss, np.array(start), method="L-BFGS-B") for start in starts]
    best = min(found, key=lambda result: float(result.fun))
    if best.status == 1:  # stopped by the number of steps
        warnings.warn(f"the fit did not converge: {best.message}", ConvergenceWarning, stacklevel=3)
    return likelihood(best.x, s, positive), float(_MOST_NOISE * expit(best.x[0]))


def _tail_likelihood(p: FloatArray, s: FloatArray, positive: npt.NDArray[np.bool_]) -> FloatArray:
    """log p(s, y) with s standardized, hence N(0, 1) at its maximum likelihood; p = (logit ε, a, c)."""
    noise, a, c = _MOST_NOISE * expit(p[0]), p[1], p[2]
    side = np.where(positive, 1.0, -1.0) * (a + c * s)
    return np.asarray(norm.logpdf(s) + np.log(noise + (1 - 2 * noise) * np.exp(log_ndtr(side))))


def _tail_starts(share: float) -> list[list[float]]:
    a = float(norm.ppf(share))
    return [[logit(noise / _MOST_NOISE), 1.5 * a, 1.5] for noise in (0.002, 0.03)]


def _group_likelihood(p: FloatArray, s: FloatArray, positive: npt.NDArray[np.bool_]) -> FloatArray:
    """log p(s, y); p = (logit ε, logit π, m₊, log σ₊, m₋, log σ₋)."""
    noise = _MOST_NOISE * expit(p[0])
    share = expit(p[1])
    plus = share * norm.pdf(s, p[2], np.exp(np.clip(p[3], -4, 4)))
    minus = (1 - share) * norm.pdf(s, p[4], np.exp(np.clip(p[5], -4, 4)))
    own, other = np.where(positive, plus, minus), np.where(positive, minus, plus)
    return np.asarray(np.log((1 - noise) * own + noise * other + 1e-300))


def _group_starts(share: float, s: FloatArray, positive: npt.NDArray[np.bool_]) -> list[list[float]]:
    spread = [np.log(max(float(s[side].std()), 0.05)) for side in (positive, ~positive)]
    middle = [float(np.median(s[side])) for side in (positive, ~positive)]
    return [
        [logit(noise / _MOST_NOISE), logit(share), middle[0], spread[0], middle[1], spread[1]]
        for noise in (0.002, 0.03)
    ]
