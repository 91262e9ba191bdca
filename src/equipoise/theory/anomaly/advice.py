"""The model turned around: which training fraction does it advise for these data, and is that worth anything?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import (
    FloatArray,
    check_array,
    check_choice,
    check_fraction,
    check_in_range,
    check_integer,
    check_positive,
    check_same_length,
)
from equipoise._core.random import RandomState, as_generator
from equipoise.theory.anomaly.assumptions import SharedDistribution, shared_distribution
from equipoise.theory.anomaly._estimates import (
    HOTTEST,
    effective_dimension,
    held_out_scores,
    overlap_from_area,
    rank_area,
    temperature_from_overlap,
)
from equipoise.theory.anomaly.metrics import teacher_bias
from equipoise.theory.anomaly.optimum import OBJECTIVES, objective_of, optimal_train_fraction
from equipoise.theory.anomaly.saddle import solve_saddle

_ALPHAS = (0.05, 100.0)  # samples per dimension the solver is tested for
_ROWS = 4000  # more rows are sub-sampled for the estimates
_CURVE = np.linspace(0.05, 0.95, 19)


@dataclass(frozen=True)
class Advice:
    """A training fraction with its uncertainty, and whether to believe it.

    Attributes
    ----------
    train_fraction, interval : float, tuple
        The advised share of positives, and the 5th to 95th percentile over the bootstrap.
    verdict : str
        ``"usable"``, ``"weak"`` or ``"worthless"``; ``reasons`` says why in sentences.
    gain_over_half, gain_over_current : float
        What the objective is predicted to gain over ρ = ½ and over the data's own share.
    fractions, curve, curve_low, curve_high : ndarray
        The predicted objective and its 5th to 95th percentile.
    intrinsic_fraction, effective_dim, samples_per_dim, temperature, overlap, area : float
        The estimates: ρ0, N, α, T, and the held-out overlap and ROC area they come from (nan if not measured).
    shared : SharedDistribution or None
        Whether the classes share one distribution (None without X and y).
    """

    train_fraction: float
    interval: tuple[float, float]
    verdict: str
    reasons: tuple[str, ...]
    objective: str
    gain_over_half: float
    gain_over_current: float
    fractions: FloatArray
    curve: FloatArray
    curve_low: FloatArray
    curve_high: FloatArray
    intrinsic_fraction: float
    effective_dim: float
    samples_per_dim: float
    temperature: float
    overlap: float
    area: float
    shared: SharedDistribution | None

    def summary(self) -> str:
        """The advice in a few lines of text."""
        low, high = self.interval
        return "\n".join(
            [
                f"train on {self.train_fraction:.0%} positives ({low:.0%} to {high:.0%}): {self.verdict}",
                f"predicted {self.objective} {self.gain_over_half:+.4f} over a balanced training set, "
                f"{self.gain_over_current:+.4f} over the data as they are",
                f"read off the data: {self.intrinsic_fraction:.3%} positives, effective dimension "
                f"{self.effective_dim:.1f}, {self.samples_per_dim:.2f} samples per dimension, "
                f"noise {self.temperature:.2f}",
                *self.reasons,
            ]
        )


@dataclass(frozen=True)
class _Estimates:
    """Bootstrap draws of what the model needs; the first entry of each is the estimate itself."""

    fraction: FloatArray
    dim: FloatArray
    area: FloatArray
    temperature: FloatArray | None
    shared: SharedDistribution | None
    scores: FloatArray | None
    reasons: list[str]


def advise_train_fraction(
    X: npt.ArrayLike | None = None,
    y: npt.ArrayLike | None = None,
    *,
    n_samples: int | None = None,
    n_features: int | None = None,
    n_positive: int | None = None,
    intrinsic_fraction: float | None = None,
    effective_dim: float | None = None,
    temperature: float | None = None,
    objective: str = "balanced_accuracy",
    test_fraction: float | None = None,
    n_bootstrap: int = 30,
    random_state: RandomState = None,
) -> Advice:
    """Estimate the model's parameters from data and return the training fraction it finds best.

    From ``X`` and ``y`` (two classes, the rarer one is the positive): ρ0 is the share of positives, the
    effective dimension the participation ratio of the features, and the noise T the temperature at which the
    model reaches the ROC area that a linear classifier has on held-out folds. From counts alone
    (``n_samples``, ``n_features``, ``n_positive``) T is unknown and drawn log-uniformly from [0.05, 1].
    ``intrinsic_fraction``, ``effective_dim`` and ``temperature`` replace estimates.

    Examples
    --------
    >>> advice = advise_train_fraction(
    ...     n_samples=500, n_features=100, n_positive=50, n_bootstrap=10, random_state=0
    ... )
    >>> advice.verdict
    'weak'
    >>> 0.4 < advice.train_fraction < 0.6
    True
    """
    check_choice("objective", objective, OBJECTIVES)
    check_integer("n_bootstrap", n_bootstrap, 10)
    generator = as_generator(random_state)
    if X is not None and y is not None:
        rows, positive = _binary(X, y)
        found = _from_data(rows, positive, n_bootstrap, generator)
        count = len(rows)
    elif None not in (n_samples, n_features, n_positive):
        count = check_integer("n_samples", n_samples, 4)
        positives = check_integer("n_positive", n_positive, 1, count - 1)
        found = _from_counts(
            count, check_integer("n_features", n_features, 1), positives, n_bootstrap, generator
        )
    else:
        raise ValueError("advise_train_fraction needs X and y, or n_samples, n_features and n_positive")
    current = float(found.fraction[0])
    size = n_bootstrap + 1
    fraction = found.fraction
    if intrinsic_fraction is not None:
        fraction = np.full(size, check_fraction("intrinsic_fraction", intrinsic_fraction))
    dim = (
        found.dim if effective_dim is None else np.full(size, check_positive("effective_dim", effective_dim))
    )
    noise = found.temperature
    if temperature is not None:
        noise = np.full(size, check_in_range("temperature", temperature, 0.0))
    return _conclude(found, fraction, dim, noise, count, current, objective, test_fraction)


def _binary(
    X: npt.ArrayLike, y: npt.ArrayLike
) -> tuple[FloatArray, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """X as finite rows, and which of them are of the rarer of exactly two classes."""
    rows = check_array("X", X)
    if rows.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {rows.ndim}")
    labels = np.asarray(y).ravel()
    check_same_length(X=rows, y=labels)
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) != 2:
        raise ValueError(f"y must have exactly two classes, got {len(classes)}")
    if counts.min() < 5:
        raise ValueError(f"y must have at least 5 samples of each class, got {counts.min()}")
    return rows, labels == classes[counts.argmin()]


def _from_counts(
    count: int, features: int, positives: int, draws: int, generator: np.random.Generator
) -> _Estimates:
    share = min(positives, count - positives)
    fraction = np.append(share / count, generator.beta(share + 0.5, count - share + 0.5, draws))
    noise = np.append(0.3, np.exp(generator.uniform(np.log(0.05), 0.0, draws)))
    reasons = ["Without X and y neither the noise nor the model's assumptions could be checked."]
    nothing = np.full(draws + 1, np.nan)
    return _Estimates(fraction, np.full(draws + 1, float(features)), nothing, noise, None, None, reasons)


def _from_data(
    rows: FloatArray,
    positive: np.ndarray[tuple[int], np.dtype[np.bool_]],
    draws: int,
    generator: np.random.Generator,
) -> _Estimates:
    total, share = len(rows), int(positive.sum())
    fraction = np.append(share / total, generator.beta(share + 0.5, total - share + 0.5, draws))
    if total > _ROWS:  # all positives up to half, negatives at random
        keep = [generator.permutation(np.flatnonzero(side)) for side in (positive, ~positive)]
        first = keep[0][: _ROWS // 2]
        chosen = np.concatenate([first, keep[1][: _ROWS - len(first)]])
        rows, positive = rows[chosen], positive[chosen]
    scores = held_out_scores(rows, positive, generator)
    plus, minus = scores[positive], scores[~positive]
    areas = [rank_area(plus, minus)]
    dims = [effective_dimension(rows)]
    for _ in range(draws):
        areas.append(rank_area(generator.choice(plus, len(plus)), generator.choice(minus, len(minus))))
    half = len(rows) // 2
    for _ in range(min(draws, 10)):  # halves: rows drawn twice would look like fewer dimensions
        dims.append(effective_dimension(rows[generator.permutation(len(rows))[:half]]))
    spread = np.std(np.log(dims[1:])) / np.sqrt(2)
    dim = dims[0] * np.exp(spread * np.append(0.0, generator.standard_normal(draws)))
    b0 = float(teacher_bias(fraction[0]))
    shared = shared_distribution(rows, positive, scores, overlap_from_area(areas[0], b0), b0, generator)
    return _Estimates(fraction, np.maximum(dim, 1.0), np.array(areas), None, shared, scores, [])


def _conclude(
    found: _Estimates,
    fraction: FloatArray,
    dim: FloatArray,
    noise: FloatArray | None,
    count: int,
    current: float,
    objective: str,
    test_fraction: float | None,
) -> Advice:
    b0 = teacher_bias(fraction)
    wanted = count / dim
    alpha = np.clip(wanted, *_ALPHAS)
    overlap = np.array(
        [overlap_from_area(a, b) if np.isfinite(a) else np.nan for a, b in zip(found.area, b0, strict=True)]
    )
    if noise is None:
        noise = temperature_from_overlap(overlap, alpha, b0)
    best = optimal_train_fraction(alpha, noise, b0, objective, test_fraction=test_fraction)
    share = 0.5 if test_fraction is None else test_fraction
    point = solve_saddle(alpha[:, None], noise[:, None], b0[:, None], np.append(_CURVE, current))
    curves = objective_of(point, objective, share)
    sign = -1.0 if objective == "error" else 1.0
    interval = tuple(float(v) for v in np.quantile(best.train_fraction[1:], [0.05, 0.95]))
    low, high = np.quantile(curves[1:, :-1], [0.05, 0.95], axis=0)
    gain = float(best.regret_at_half[0])
    reasons = [
        *found.reasons,
        *_reasons(found, wanted[0], float(noise[0]), interval, gain, curves, best.interior[0]),
    ]
    fatal = [reason for reason in reasons if reason.startswith("Worthless")]
    weak = bool(reasons)
    return Advice(
        train_fraction=float(best.train_fraction[0]),
        interval=(interval[0], interval[1]),
        verdict="worthless" if fatal else "weak" if weak else "usable",
        reasons=tuple(reasons),
        objective=objective,
        gain_over_half=gain,
        gain_over_current=max(float(sign * (best.value[0] - curves[0, -1])), 0.0),
        fractions=_CURVE,
        curve=curves[0, :-1],
        curve_low=low,
        curve_high=high,
        intrinsic_fraction=float(fraction[0]),
        effective_dim=float(dim[0]),
        samples_per_dim=float(wanted[0]),
        temperature=float(noise[0]),
        overlap=float(overlap[0]),
        area=float(found.area[0]),
        shared=found.shared,
    )


def _reasons(
    found: _Estimates,
    alpha: float,
    noise: float,
    interval: tuple[float, ...],
    gain: float,
    curves: FloatArray,
    interior: np.bool_,
) -> list[str]:
    """Why to doubt the advice, in plain sentences; those that begin with "Worthless" rule it out."""
    said = []
    if found.shared is not None and found.shared.verdict == "multiple groups":
        said.append(
            "Worthless: the classes do not share one distribution (they look like separate groups), "
            "which the model assumes."
        )
    elif found.shared is not None and found.shared.verdict == "unclear":
        said.append("Whether the classes share one distribution cannot be told from these data.")
    if np.isfinite(found.area[0]) and np.quantile(found.area[1:], 0.05) <= 0.5:
        said.append("Worthless: a linear classifier finds no signal on held-out data.")
    if not interior:
        said.append("Worthless: this objective only rises towards one class, so no fraction is best.")
    if not 0.9 * _ALPHAS[0] <= alpha <= 1.1 * _ALPHAS[1]:
        said.append(
            f"{alpha:.3g} samples per effective dimension is outside {_ALPHAS}; the nearest was used."
        )
    if noise == 0:
        said.append("The data are learned better than the model learns without noise; T = 0 was used.")
    if noise >= HOTTEST:
        said.append(
            "Worthless: the data are learned worse than the model learns at its highest noise, T = 5."
        )
    spread = float(
        np.mean(np.quantile(curves[1:, :-1], 0.95, axis=0) - np.quantile(curves[1:, :-1], 0.05, axis=0))
    )
    if interval[0] < 0.5 < interval[1] and gain < 0.1 * spread:
        said.append("The fractions advised lie on both sides of one half and gain next to nothing over it.")
    return said


def theory_sampling_strategy(
    X: npt.ArrayLike | None = None,
    *,
    kind: str = "over-sampling",
    n_features: int | None = None,
    objective: str = "balanced_accuracy",
    temperature: float | None = None,
    random_state: RandomState = 0,
) -> Callable[[npt.ArrayLike], dict[Any, int]]:
    """A ``sampling_strategy`` for imbalanced-learn's samplers: the counts that give the advised fraction.

    imbalanced-learn calls it with ``y`` alone, so give it ``X`` (for the full advice) or ``n_features`` here.
    Over-sampling raises the rare class and never lowers it; under-sampling lowers the common class and never
    raises it. Two classes only. The advice itself stands in the callable's attribute ``advice`` afterwards.

    Examples
    --------
    >>> strategy = theory_sampling_strategy(n_features=50)
    >>> counts = strategy([0] * 180 + [1] * 20)
    >>> counts[0], 150 < counts[1] < 220
    (180, True)
    """
    check_choice("kind", kind, ("over-sampling", "under-sampling"))
    if X is None and n_features is None:
        raise ValueError("theory_sampling_strategy needs X or n_features")

    def strategy(y: npt.ArrayLike) -> dict[Any, int]:
        labels, counts = np.unique(np.asarray(y).ravel(), return_counts=True)
        if len(labels) != 2:
            raise ValueError(f"sampling_strategy='theory' is for two classes, got {len(labels)}")
        rare = int(counts.argmin())
        if X is not None:
            given: Mapping[str, Any] = {"X": X, "y": y}
        else:
            given = {
                "n_samples": int(counts.sum()),
                "n_features": n_features,
                "n_positive": int(counts[rare]),
            }
        advice = advise_train_fraction(
            **given, objective=objective, temperature=temperature, n_bootstrap=10, random_state=random_state
        )
        strategy.advice = advice  # type: ignore[attr-defined]
        few, many = int(counts[rare]), int(counts[1 - rare])
        odds = advice.train_fraction / (1.0 - advice.train_fraction)
        if kind == "over-sampling":
            few = max(few, round(odds * many))
        else:
            many = min(many, max(round(few / odds), 1))
        return {labels[rare].item(): few, labels[1 - rare].item(): many}

    return strategy
