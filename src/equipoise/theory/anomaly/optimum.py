"""The best training fraction, what missing it costs, and the noise at which performance begins to fall.

Pezzicoli et al., section 3.2 and appendix F: ρ(R*), ρ(b*), the peaks of the metrics, and the crossover T*.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.polynomial import chebyshev

from equipoise._core.checks import FloatArray, check_choice, check_fraction, check_in_range, check_positive
from equipoise.theory.anomaly.metrics import Metrics, intrinsic_fraction, teacher_bias
from equipoise.theory.anomaly.saddle import SaddlePoint, solve_saddle

_LOWEST, _HIGHEST = 0.005, 0.995  # the training fractions that are searched
HOTTEST = 1e4  # far above any crossover; beyond it the equations lose their digits
_LOGIT = np.log(_HIGHEST / (1 - _HIGHEST))
_GRID = 1.0 / (1.0 + np.exp(-np.linspace(-_LOGIT, _LOGIT, 27)))  # the coarse scan
_ZOOMS, _FINE = 3, 9  # each zoom is four times finer; the last nodes lie closer than 1/400
_EDGE_ZOOMS = 9  # more of them where the best student stands at the end of the learned branch, to 1e-8
_CHEBYSHEV = 9
_SAME = 1e-12  # scores that differ by less are the same
OBJECTIVES = ("overlap", "bias", *(field.name for field in fields(Metrics)))


@dataclass(frozen=True)
class Optimum:
    """Where an objective peaks over the training fraction; every field broadcast to one shape.

    Attributes
    ----------
    train_fraction, value : ndarray
        ρ* and the objective there. For ``"bias"`` the value is -|b - b0|.
    regret_at_half, regret_at_intrinsic : ndarray
        What training at ρ = ½, or at ρ = ρ0, loses of the value.
    width : ndarray
        How flat the peak is: the length of the interval of ρ within one percent of the value (for ``"bias"``,
        within 0.01).
    curvature : ndarray
        How sharp it is: minus the second derivative of the objective at the peak (nan on the border, and where
        the best student stands at the end of the learned branch). For ``"bias"`` that of (b - b0)².
    interior : ndarray of bool
        False where the objective only rises towards a border of (0.005, 0.995), as recall does.
    """

    train_fraction: FloatArray
    value: FloatArray
    regret_at_half: FloatArray
    regret_at_intrinsic: FloatArray
    width: FloatArray
    curvature: FloatArray
    interior: npt.NDArray[np.bool_]


def objective_of(point: SaddlePoint, objective: str, test_fraction: npt.ArrayLike = 0.5) -> FloatArray:
    """One score of a saddle point, by name; dummies score what they score, and 0 where that is 0/0."""
    if objective == "overlap":
        return point.overlap
    if objective == "bias":
        return -np.abs(point.bias - point.teacher_bias)
    return np.nan_to_num(getattr(point.metrics(test_fraction), objective))


def optimal_train_fraction(
    samples_per_dim: npt.ArrayLike,
    temperature: npt.ArrayLike,
    teacher_bias: npt.ArrayLike,
    objective: str = "overlap",
    *,
    test_fraction: npt.ArrayLike | None = None,
    learn_bias: bool = True,
) -> Optimum:
    """The training fraction that maximizes an objective, for every broadcast setting.

    Parameters
    ----------
    samples_per_dim, temperature, teacher_bias : array-like
        α, T and b0 as in :func:`solve_saddle`.
    objective : str
        ``"overlap"`` (R), ``"bias"`` (b closest to b0), or a metric: ``"balanced_accuracy"``, ``"f1"``, ...
    test_fraction : array-like, optional
        The share of positives in the test set; ½ unless given. ``error`` is minimized.
    learn_bias : bool
        Whether b is learned, or known as in appendix E.

    Returns
    -------
    Optimum
        The best fraction, the value there, how flat the peak is, and what other fractions lose.

    Examples
    --------
    >>> o = optimal_train_fraction(samples_per_dim=8, temperature=0.5, teacher_bias=-1.5, objective="overlap")
    >>> float(o.train_fraction.round(4)), bool(o.interior)
    (0.4585, True)
    """
    check_choice("objective", objective, OBJECTIVES)
    alpha, noise, b0, share = np.broadcast_arrays(
        check_positive("samples_per_dim", samples_per_dim),
        check_in_range("temperature", temperature, 0.0, HOTTEST),
        check_in_range("teacher_bias", teacher_bias),
        check_fraction("test_fraction", 0.5 if test_fraction is None else test_fraction),
    )

    def score(fraction: FloatArray) -> FloatArray:
        point = solve_saddle(
            alpha[..., None], noise[..., None], b0[..., None], fraction, learn_bias=learn_bias
        )
        value = objective_of(point, objective, share[..., None])
        return -value if objective == "error" else value

    square = objective == "bias"
    found = maximize(score, alpha.shape, square=square)
    rest = score(np.stack([found.train_fraction, np.full(alpha.shape, 0.5), intrinsic_fraction(b0)], axis=-1))
    value = rest[..., 0]
    # (b - b0)² bends by 2(db/dρ)²
    width = (
        0.02 / np.sqrt(np.maximum(0.5 * found.curvature, 1e-12)) if square else _width(score, found, value)
    )
    with np.errstate(invalid="ignore"):  # -inf where both are dummies
        at_half, at_intrinsic = (np.maximum(value - rest[..., k], 0.0) for k in (1, 2))
    sign = -1.0 if objective == "error" else 1.0
    return Optimum(
        found.train_fraction, sign * value, at_half, at_intrinsic, width, found.curvature, found.interior
    )


Score = Callable[[FloatArray], FloatArray]


class Peak(NamedTuple):
    """Where a score peaks, how it bends there, whether that is inside, and the coarse scan."""

    train_fraction: FloatArray
    curvature: FloatArray
    interior: npt.NDArray[np.bool_]
    scan: FloatArray


def maximize(score: Score, shape: tuple[int, ...], *, square: bool) -> Peak:
    """A coarse scan, three finer ones around the best point, then the peak of a Chebyshev interpolant.

    The scans only compare values, so a jump into the dummy phase does them no harm; the interpolant's peak is taken
    where it is better. Where it is not, the best student may stand at the very end of the learned branch, where
    the bias falls like a square root: finer scans go on. ``square`` interpolates -value², smooth where -|value| has
    its kink.
    """
    nodes = np.broadcast_to(_GRID, (*shape, _GRID.size))
    coarse = values = score(nodes)
    edge = np.maximum(values[..., 0], values[..., -1])
    interior = edge < values.max(axis=-1)
    # Where the dummy's constant value is the best of all nodes, a peak may lie between it and the next node.
    learned = interior[..., None] | ~np.isclose(values, values[..., :1], rtol=0, atol=_SAME)
    nodes, values = _zoom(score, nodes, np.where(learned, values, -np.inf), _ZOOMS)
    interior |= values.max(axis=-1) > edge
    low, high, _ = _around_best(nodes, values)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    last = score(middle[..., None] + half[..., None] * chebyshev.chebpts1(_CHEBYSHEV))
    place, bend = _peak(-(last**2) if square else last)
    peak = middle + half * place
    better = (
        interior & np.isfinite(last).all(axis=-1) & (score(peak[..., None])[..., 0] >= values.max(axis=-1))
    )
    if (interior & ~better).any():
        nodes, values = _zoom(score, nodes, values, _EDGE_ZOOMS)
    fraction = np.where(interior, _around_best(nodes, values)[2], _GRID[coarse.argmax(axis=-1)])
    fraction = np.where(better, peak, fraction)
    curvature = np.where(better, -bend / half**2, np.nan)
    return Peak(fraction, curvature, interior, coarse)


def _zoom(score: Score, nodes: FloatArray, values: FloatArray, times: int) -> tuple[FloatArray, FloatArray]:
    """Scan between the neighbors of the best node, so many times."""
    for _ in range(times):
        low, high, _ = _around_best(nodes, values)
        nodes = np.linspace(low, high, _FINE, axis=-1)
        values = score(nodes)
    return nodes, values


def _around_best(nodes: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The neighbors of the best node along the last axis, and the node itself."""
    best = values.argmax(axis=-1)[..., None]
    low, high, top = (
        np.take_along_axis(nodes, np.clip(best + step, 0, nodes.shape[-1] - 1), axis=-1)[..., 0]
        for step in (-1, 1, 0)
    )
    return low, high, top


def _peak(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where in [-1, 1] the interpolant through values at Chebyshev points peaks, and its curvature there."""
    nodes = chebyshev.chebpts1(_CHEBYSHEV)
    flat = np.where(np.isfinite(values), values, -1e6).reshape(-1, _CHEBYSHEV)
    coefficients = np.linalg.solve(chebyshev.chebvander(nodes, _CHEBYSHEV - 1), flat.T)
    slope, bend = chebyshev.chebder(coefficients), chebyshev.chebder(coefficients, 2)
    fine = np.linspace(-1, 1, 401)
    x = fine[chebyshev.chebval(fine, coefficients).reshape(-1, fine.size).argmax(axis=1)]
    for _ in range(5):  # Newton on the slope, kept to the cell that the scan has found
        second = chebyshev.chebval(x, bend, tensor=False)
        move = np.divide(
            chebyshev.chebval(x, slope, tensor=False), second, out=np.zeros_like(x), where=second < 0
        )
        x = np.clip(x - np.clip(move, -0.01, 0.01), -1, 1)
    shape = values.shape[:-1]
    return x.reshape(shape), chebyshev.chebval(x, bend, tensor=False).reshape(shape)


def _width(score: Score, peak: Peak, value: FloatArray) -> FloatArray:
    """The length of the interval of ρ around the peak where the score is within a percent of its value."""
    level = value - 0.01 * np.abs(value)
    low = peak.scan < level[..., None]
    place = peak.train_fraction[..., None]
    left = np.where(low & (place > _GRID), _GRID, _LOWEST).max(axis=-1)
    right = np.where(low & (place < _GRID), _GRID, _HIGHEST).min(axis=-1)
    inside, outside = np.stack([peak.train_fraction] * 2, axis=-1), np.stack([left, right], axis=-1)
    for _ in range(_ZOOMS):  # both ends at once: the cell in which the score first falls below the level
        nodes = np.linspace(inside, outside, _FINE, axis=-1)
        good = score(nodes.reshape(*value.shape, -1)).reshape(nodes.shape) >= level[..., None, None]
        first = np.where(good.all(axis=-1), _FINE - 1, np.argmin(good, axis=-1))[..., None]
        inside = np.take_along_axis(nodes, np.maximum(first - 1, 0), axis=-1)[..., 0]
        outside = np.take_along_axis(nodes, first, axis=-1)[..., 0]
    return outside[..., 1] - outside[..., 0]


def optimum_map(
    samples_per_dim: npt.ArrayLike,
    intrinsic_fraction: npt.ArrayLike = 0.1,
    temperature: npt.ArrayLike = 0.5,
    objective: str = "overlap",
    *,
    test_fraction: npt.ArrayLike | None = None,
) -> Optimum:
    """The optimum over the outer grid of α, ρ0 and T; axes of length one are dropped.

    Parameters
    ----------
    samples_per_dim : array-like
        α = P/N, training samples per dimension.
    intrinsic_fraction : array-like
        ρ0.
    temperature : array-like
        T.
    objective : str
        As in :func:`optimal_train_fraction`.
    test_fraction : array-like, optional
        The share of positives in the test set.

    Returns
    -------
    Optimum
        The optimum at every point of the grid.

    Examples
    --------
    >>> optimum_map([1.0, 4.0], [0.1, 0.2, 0.3]).train_fraction.shape
    (2, 3)
    """
    alpha = np.atleast_1d(check_positive("samples_per_dim", samples_per_dim))
    rare = np.atleast_1d(check_fraction("intrinsic_fraction", intrinsic_fraction))
    noise = np.atleast_1d(check_in_range("temperature", temperature, 0.0))
    found = optimal_train_fraction(
        alpha[:, None, None],
        noise[None, None, :],
        teacher_bias(rare)[None, :, None],
        objective,
        test_fraction=test_fraction,
    )
    return Optimum(*(np.squeeze(getattr(found, field.name)) for field in fields(Optimum)))


def guide_regret(
    samples_per_dim: npt.ArrayLike,
    temperature: npt.ArrayLike,
    teacher_bias: npt.ArrayLike,
    guide: str = "balanced_accuracy",
    *,
    test_fraction: npt.ArrayLike = 0.5,
) -> FloatArray:
    """What of the overlap is lost if the training fraction is chosen by a metric instead of by the overlap.

    Parameters
    ----------
    samples_per_dim, temperature, teacher_bias : array-like
        α, T and b0 as in :func:`solve_saddle`.
    guide : str
        The objective that chooses, as in :func:`optimal_train_fraction`.
    test_fraction : array-like
        The share of positives in the test set that the guide is computed on.

    Returns
    -------
    ndarray
        R(ρ of the best R) minus R(ρ of the best guide).

    References
    ----------
    Pezzicoli et al., section 3.2 ("which one?") and Fig 12.

    Examples
    --------
    >>> bool(guide_regret(8.0, 0.5, -1.5) < 0.002 < guide_regret(8.0, 0.5, -1.5, "precision"))
    True
    """
    best = optimal_train_fraction(samples_per_dim, temperature, teacher_bias)
    led = optimal_train_fraction(
        samples_per_dim, temperature, teacher_bias, guide, test_fraction=test_fraction
    )
    reached = solve_saddle(samples_per_dim, temperature, teacher_bias, led.train_fraction).overlap
    return np.asarray(best.value - reached)


_CHANCE = {"overlap": 0.0, "recall": 0.0, "specificity": 0.0, "f1": 0.0, "negative_f1": 0.0, "macro_f1": 0.0}


def crossover_temperature(
    samples_per_dim: npt.ArrayLike,
    teacher_bias: npt.ArrayLike,
    train_fraction: npt.ArrayLike = 0.5,
    objective: str = "balanced_accuracy",
    *,
    loss: float = 0.05,
    highest: float = 20.0,
) -> FloatArray:
    """T*, the noise above which performance is no longer that of noiseless learning (section 3.2, Fig 5).

    The paper reads T* off a plot. Here it is the lowest temperature at which the objective has lost the share
    ``loss`` of what it has above chance at T = 0; nan where that does not happen below ``highest``.

    Parameters
    ----------
    samples_per_dim : array-like
        α = P/N, training samples per dimension.
    teacher_bias : array-like
        b0.
    train_fraction : array-like
        ρ.
    objective : str
        As in :func:`optimal_train_fraction`.
    loss : float
        The share of the performance above chance that is lost at T*.
    highest : float
        The highest temperature to look at.

    Returns
    -------
    array
        T*.

    Examples
    --------
    >>> float(crossover_temperature(1.1, -0.6).round(2))
    0.27
    """
    check_choice("objective", objective, [name for name in OBJECTIVES if name not in ("bias", "error")])
    check_fraction("loss", loss)
    alpha, b0, rho = np.broadcast_arrays(
        check_positive("samples_per_dim", samples_per_dim),
        check_in_range("teacher_bias", teacher_bias),
        check_fraction("train_fraction", train_fraction),
    )

    def score(noise: FloatArray) -> FloatArray:
        return objective_of(solve_saddle(alpha[..., None], noise, b0[..., None], rho[..., None]), objective)

    chance = _CHANCE.get(objective, 0.5)
    noise = np.concatenate([[0.0], np.geomspace(0.02, check_in_range("highest", highest, 0.1, HOTTEST), 24)])
    values = score(np.broadcast_to(noise, (*alpha.shape, noise.size)))
    level = values[..., 0] - loss * (values[..., 0] - chance)
    below = values < level[..., None]
    first = np.maximum(below.argmax(axis=-1), 1)
    low, high = noise[first - 1], noise[first]
    for _ in range(3):
        inner = np.linspace(low, high, 9, axis=-1)
        under = score(inner) < level[..., None]
        cell = np.maximum(under.argmax(axis=-1), 1)[..., None]
        low = np.take_along_axis(inner, cell - 1, axis=-1)[..., 0]
        high = np.take_along_axis(inner, cell, axis=-1)[..., 0]
    return np.where(below.any(axis=-1), 0.5 * (low + high), np.nan)
