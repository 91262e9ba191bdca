"""Choosing hyper-parameters after training: what is searched, how a candidate is judged, what is found."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize
from scipy.stats import qmc

from equipoise._core.checks import FloatArray, IntArray, check_choice
from equipoise._core.priors import correct_prior
from equipoise.metrics import METRICS, Decision, Metric, Wish, choose_decision, get_metric
from equipoise.training.distributions import Distribution

Params = dict[str, float]


@dataclass(frozen=True)
class Tuning:
    """The operating point that was found.

    Attributes
    ----------
    params : dict
        The hyper-parameters λ.
    value : float
        The metric there, on the validation data.
    decision : Decision or None
        The rule from probabilities to labels that was judged and that ``predict`` follows; ``None`` where the
        metric needs no labels, or labels by the network's own most probable class. Its last class is the
        positive one.
    prior : {"data"} or array
        The class shares for which it was judged; ``"data"`` for those of the validation rows.
    table : DataFrame
        All candidates with their values.
    """

    params: Params
    value: float
    decision: Decision | None
    prior: Any
    table: pd.DataFrame

    @property
    def threshold(self) -> float | None:
        """Of the positive class's probability at the decision's prior; ``None`` without such a rule."""
        return None if self.decision is None else self.decision.threshold


@dataclass(frozen=True)
class Judge:
    """A metric together with the rule by which labels are decided for it.

    Attributes
    ----------
    metric : what is reported.
    wish : what the decision is chosen for; ``None`` for a metric of scores or probabilities, and for labels that
        are the network's own most probable class.
    """

    metric: Metric
    wish: Wish | None = None

    def __call__(self, rows: Held, proba: FloatArray, own: IntArray) -> tuple[float, Decision | None]:
        """The value for one candidate, and the rule that gives it.

        Parameters
        ----------
        rows : the validation rows.
        proba : their probabilities at ``rows.given``, the positive class last.
        own : the network's own most probable classes.
        """
        if self.metric.needs != "labels" and self.wish is None:
            at = rows.moved(proba)
            positive = 1 if at.shape[1] == 2 else None
            labels = np.arange(at.shape[1])
            value = self.metric.evaluate(
                rows.codes, at, labels=labels, pos_label=positive, sample_weight=rows.weight
            )
            return float(value), None
        if self.wish is None:
            return self.value(rows, own), None
        decision = choose_decision(
            proba, rows.codes, self.wish, data_prior=rows.given, prior=rows.prior, calibrated=False
        )
        return self.value(rows, decision.codes(correct_prior(proba, rows.given, decision.prior))), decision

    def value(self, rows: Held, called: IntArray) -> float:
        """The metric of given labels on the validation rows."""
        n = len(rows.given)
        known = {"labels": np.arange(n), "sample_weight": rows.weight, **({"pos_label": 1} if n == 2 else {})}
        kept = {name: value for name, value in known.items() if name in self.metric.accepts}
        return float(self.metric(rows.codes, called, **kept))


@dataclass(frozen=True)
class Held:
    """Validation rows: class codes with the positive class last, and the shares they are judged at.

    Attributes
    ----------
    codes : class codes.
    given : the class shares at which probabilities are given.
    prior : the shares at which decisions are judged: the rows' own, or those asked for.
    weight : what each row counts so that the classes have the shares asked for; ``None`` for one each.
    """

    codes: IntArray
    given: FloatArray
    prior: FloatArray
    weight: FloatArray | None

    @classmethod
    def make(cls, codes: IntArray, given: FloatArray, wanted: FloatArray | None) -> Held:
        counts = np.bincount(codes, minlength=len(given))
        if wanted is None:
            return cls(codes, given, counts / counts.sum() if counts.all() else given, None)
        if not counts.all():
            raise ValueError("a prior needs validation rows of every class, but one class has none")
        return cls(codes, given, wanted, (wanted * counts.sum() / counts)[codes])

    def moved(self, proba: FloatArray) -> FloatArray:
        """Probabilities at the shares asked for; as they are if none were."""
        return proba if self.weight is None else correct_prior(proba, self.given, self.prior)


def read_metric(metric: str | None, keywords: dict[str, Any], *, promise: bool = True) -> Judge:
    """The judge for a metric and its keywords; a wish alone, such as ``recall=0.9``, needs no metric.

    With ``promise`` a wanted recall or precision has to hold with confidence, not just on these rows.
    """
    words = dict(keywords)
    name = _metric_of_wish(words) if metric is None else metric
    sure = {"confidence": words.pop("confidence")} if "confidence" in words else {}
    if name in ("cost", "expected_cost"):
        cost = words.pop("cost", words.pop("cost_matrix", None))
        if cost is None:
            raise ValueError(
                f"metric {name!r} needs cost_matrix=[[…, false alarm], [miss, …]], truth by decision"
            )
        wish = Wish.make(cost=cost)
        table = wish.cost_table(2) if isinstance(cost, dict) else cost
        return Judge(get_metric("expected_cost", cost_matrix=table, **words), wish)
    if name in ("f1", "f_beta", "best_f1"):
        beta = float(words.pop("beta", 1.0))
        return Judge(get_metric("f_beta", beta=beta, **words), Wish.make(beta=beta))
    if name in ("balanced_accuracy", "best_balanced_accuracy", "acsa"):
        return Judge(get_metric("balanced_accuracy", **words), Wish.make())
    if name == "precision_at_recall" and promise:
        level = words.pop("recall", words.pop("min_recall", 0.99))
        return Judge(get_metric("precision", **words), Wish.make(recall=level, **sure))
    if name == "recall_at_precision" and promise:
        level = words.pop("precision", words.pop("min_precision", 0.9))
        return Judge(get_metric("recall", **words), Wish.make(precision=level, **sure))
    if name == "recall_at_alerts":
        return Judge(get_metric("recall"), Wish.make(alerts=words.pop("alerts"), **words))
    check_choice("metric", name, sorted({*METRICS, "f1", "cost", "recall_at_alerts"}))
    return Judge(get_metric(name, **words))


def _metric_of_wish(keywords: dict[str, Any]) -> str:
    wishes = {
        "recall": "precision_at_recall",
        "precision": "recall_at_precision",
        "alerts": "recall_at_alerts",
        "cost": "cost",
        "cost_matrix": "cost",
        "beta": "f_beta",
    }
    given = [name for name in wishes if name in keywords]
    if len(given) > 1:
        raise ValueError(f"a decision follows one wish, got {' and '.join(given)}: give one of them")
    return wishes[given[0]] if given else "average_precision"


def default_grid(distribution: dict[str, Distribution], points: int = 5) -> list[Params]:
    """Evenly spaced values over each trained range, in all combinations."""
    axes = [np.unique(np.linspace(law.low, law.high, points)) for law in distribution.values()]
    return [dict(zip(distribution, map(float, values), strict=True)) for values in itertools.product(*axes)]


def representative_grid(distribution: dict[str, Distribution], points: int = 8) -> list[Params]:
    """Equally likely values of each hyper-parameter, in all combinations: a mean over them is one over λ."""
    u = (np.arange(points) + 0.5) / points
    axes = [np.unique(law.quantile(u)) for law in distribution.values()]
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
    candidates: Sequence[Params], judge: Callable[[Params], tuple[float, Decision | None]]
) -> list[dict[str, Any]]:
    """Judge each candidate; what a candidate cannot reach (no such recall) is a NaN, unless all fail."""
    rows: list[dict[str, Any]] = []
    failure: ValueError | None = None
    for candidate in candidates:
        try:
            value, decision = judge(candidate)
        except ValueError as error:
            value, decision, failure = float("nan"), None, error
        rows.append({**candidate, "value": value, "decision": decision})
    if failure is not None and all(np.isnan(row["value"]) for row in rows):
        raise failure
    return rows


def search_continuously(
    distribution: dict[str, Distribution],
    judge: Callable[[Params], tuple[float, Decision | None]],
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
