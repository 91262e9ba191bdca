"""Choosing hyper-parameters after training: what is searched, how a candidate is judged, what is found."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import optimize
from scipy.stats import qmc

from equipoise._core.checks import FloatArray, check_choice
from equipoise.metrics import METRICS, OperatingPoint, best_threshold, get_metric
from equipoise.training.distributions import Distribution

Params = dict[str, float]

_THRESHOLDED = {
    "f1": "f_beta",
    "best_f1": "f_beta",
    "f_beta": "f_beta",
    "best_balanced_accuracy": "balanced_accuracy",
    "precision_at_recall": "precision",
    "recall_at_precision": "recall",
    "cost": "cost",
}
"""Metrics of a decision: judged, and decided by, the best of all thresholds for the objective named here."""


@dataclass(frozen=True)
class Tuning:
    """The operating point that was found.

    Attributes
    ----------
    params : the hyper-parameters λ.
    value : the metric there, on the validation data.
    threshold : of the positive class's probability, for metrics of a decision; ``None`` otherwise.
    prior : the class prior under which probabilities were judged.
    table : all candidates with their values.
    """

    params: Params
    value: float
    threshold: float | None
    prior: Any
    table: pd.DataFrame


@dataclass(frozen=True)
class Judge:
    """A metric by name, with its keywords, as value and threshold of given probabilities."""

    name: str
    keywords: dict[str, Any]
    pos_label: Any = None

    def __post_init__(self) -> None:
        check_choice("metric", self.name, sorted({*METRICS, *_THRESHOLDED}))

    @property
    def sign(self) -> int:
        if self.name in _THRESHOLDED:
            return -1 if self.name == "cost" else 1
        return get_metric(self.name).sign

    def __call__(
        self, y: npt.NDArray[Any], proba: FloatArray, classes: npt.NDArray[Any]
    ) -> tuple[float, float | None]:
        if self.name not in _THRESHOLDED:
            metric = get_metric(self.name, **self.keywords)
            return float(metric.evaluate(y, proba, labels=classes, pos_label=self.pos_label)), None
        if len(classes) > 2:
            return self._many_classes(y, proba, classes)
        positive = classes[1] if self.pos_label is None else self.pos_label
        scores = proba[:, classes.tolist().index(positive)]
        point: OperatingPoint = best_threshold(
            y, scores, _THRESHOLDED[self.name], pos_label=positive, **self.keywords
        )
        return point.value, point.threshold

    def _many_classes(
        self, y: npt.NDArray[Any], proba: FloatArray, classes: npt.NDArray[Any]
    ) -> tuple[float, float | None]:
        if self.name == "cost":
            matrix = np.asarray(self.keywords["cost_matrix"], dtype=np.float64)
            decided = classes[(proba @ matrix).argmin(axis=1)]
            metric = get_metric("expected_cost", cost_matrix=matrix)
            return float(metric(y, decided, labels=classes)), None
        raise ValueError(f"metric {self.name!r} takes two classes, got {len(classes)}")


def read_metric(metric: str, keywords: dict[str, Any], pos_label: Any) -> Judge:
    """The judge for a metric; ``recall=.99`` and ``precision=.9`` are read as the least that is wanted."""
    renamed = {"recall": "min_recall", "precision": "min_precision"}
    words = {renamed.get(name, name): value for name, value in keywords.items()}
    if metric == "cost" and "cost_matrix" not in words:
        raise ValueError("metric 'cost' needs cost_matrix=[[…, false alarm], [miss, …]], truth by decision")
    if metric == "precision_at_recall":
        words.setdefault("min_recall", 0.99)
    if metric == "recall_at_precision":
        words.setdefault("min_precision", 0.9)
    return Judge(metric, words, pos_label)


def default_grid(distribution: dict[str, Distribution], points: int = 5) -> list[Params]:
    """Evenly spaced values over each trained range, in all combinations."""
    axes = [np.unique(np.linspace(law.low, law.high, points)) for law in distribution.values()]
    return [dict(zip(distribution, map(float, values), strict=True)) for values in itertools.product(*axes)]


def read_grid(params: Any, distribution: dict[str, Distribution]) -> list[Params]:
    """A list of λ, or a dict with the values of each hyper-parameter; ``None`` is the default grid."""
    if params is None:
        return default_grid(distribution)
    if isinstance(params, dict):
        unknown = sorted(set(params) - set(distribution))
        if unknown:
            raise ValueError(f"params: unknown {', '.join(unknown)}; there are {', '.join(distribution)}")
        axes = [np.atleast_1d(params.get(n, default_of(law))).tolist() for n, law in distribution.items()]
        return [dict(zip(distribution, values, strict=True)) for values in itertools.product(*axes)]
    return [dict(candidate) for candidate in params]


def default_of(law: Distribution) -> float:
    """The median, where nobody chose."""
    return float(law.quantile(0.5))


def scan(
    candidates: Sequence[Params], judge: Callable[[Params], tuple[float, float | None]]
) -> list[dict[str, Any]]:
    """Judge each candidate; what a candidate cannot reach (no such recall) is a NaN, unless all fail."""
    rows: list[dict[str, Any]] = []
    failure: ValueError | None = None
    for candidate in candidates:
        try:
            value, threshold = judge(candidate)
        except ValueError as error:
            value, threshold, failure = float("nan"), None, error
        rows.append({**candidate, "value": value, "threshold": threshold})
    if failure is not None and all(np.isnan(row["value"]) for row in rows):
        raise failure
    return rows


def search_continuously(
    distribution: dict[str, Distribution],
    judge: Callable[[Params], tuple[float, float | None]],
    sign: int,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """A space-filling scan of the trained box, then a simplex from its best point."""
    free = {name: law for name, law in distribution.items() if law.high > law.low}
    fixed = {name: law.low for name, law in distribution.items() if name not in free}
    if not free:
        return scan([fixed], judge)
    low = np.array([law.low for law in free.values()])
    high = np.array([law.high for law in free.values()])

    def named(point: FloatArray) -> Params:
        return {**fixed, **dict(zip(free, map(float, np.clip(point, low, high)), strict=True))}

    unit = qmc.Sobol(len(free), seed=seed).random(64)
    rows = scan([named(low + (high - low) * u) for u in unit], judge)
    best = max(rows, key=lambda row: -np.inf if np.isnan(row["value"]) else sign * row["value"])

    def cost(point: FloatArray) -> float:
        rows.extend(scan_one := scan([named(point)], judge))
        value = scan_one[0]["value"]
        return np.inf if np.isnan(value) else -sign * value

    start = np.array([best[name] for name in free])
    optimize.minimize(
        cost,
        start,
        method="Nelder-Mead",
        bounds=list(zip(low, high, strict=True)),
        options={"maxfev": 60, "xatol": 1e-3, "fatol": 1e-6},
    )
    return rows
