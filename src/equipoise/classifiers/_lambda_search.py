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
from equipoise.metrics import METRICS, Decision, Metric, Wish, choose_decision, get_metric, search_decision
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


Answer = Callable[[Any], FloatArray]
"""``answer(prior)``: probabilities of the validation rows under one λ at a prior, the positive class last."""
_ONE_SIDED = ("precision", "recall", "specificity")  # best where every row, or none, is called


@dataclass(frozen=True)
class Judged:
    """One λ on the validation rows.

    Attributes
    ----------
    value : the metric.
    decision : the rule that gives it, if it needs one.
    merit : what λ is chosen by, the larger the better.
    """

    value: float
    decision: Decision | None
    merit: float


@dataclass(frozen=True)
class Judge:
    """A metric together with the rule by which labels are decided for it.

    Attributes
    ----------
    metric : what is reported.
    wish : what the decision is chosen for; ``None`` for a metric of scores or probabilities, and for labels, whose
        decision is then the one with the best metric.
    """

    metric: Metric
    wish: Wish | None = None

    @property
    def promised(self) -> bool:
        """Whether the decision has to hold with confidence."""
        return self.wish is not None and self.wish.objective in ("recall", "precision")

    def __call__(self, rows: Held, answer: Answer) -> Judged:
        """What one λ is worth on the validation rows, and the rule that makes it so.

        A promise bounds the error of a threshold for one λ. Of many λ the one with the best promised value tends
        to be one whose threshold came out too high, so the λ of a promise is the one with the best average
        precision, which depends little on where the threshold lies.
        """
        if self.metric.needs != "labels" and self.wish is None:
            return self._unruled(_evaluate(self.metric, rows, answer(rows.asked)))
        if self.wish is None and self.metric.name in _ONE_SIDED:
            return self._unruled(self.value(rows, answer("train").argmax(axis=1)))
        proba, sign = answer(rows.prior), self.metric.sign
        if self.wish is None:
            decision, _ = search_decision(
                proba, rows.codes, lambda codes: sign * self.value(rows, codes), prior=rows.prior
            )
        else:
            decision = choose_decision(proba, rows.codes, self.wish, data_prior=rows.prior, calibrated=False)
        value = self.value(rows, decision.codes(proba))
        merit = _evaluate(METRICS["average_precision"], rows, proba) if self.promised else sign * value
        return Judged(value, decision, merit)

    def _unruled(self, value: float) -> Judged:
        return Judged(value, None, self.metric.sign * value)

    def value(self, rows: Held, called: IntArray) -> float:
        """The metric of given labels on the validation rows."""
        n = len(rows.prior)
        known = {"labels": np.arange(n), "sample_weight": rows.weight, **({"pos_label": 1} if n == 2 else {})}
        kept = {name: value for name, value in known.items() if name in self.metric.accepts}
        return float(self.metric(rows.codes, called, **kept))


def _evaluate(metric: Metric, rows: Held, proba: FloatArray) -> float:
    n = proba.shape[1]
    value = metric.evaluate(
        rows.codes, proba, labels=np.arange(n), pos_label=1 if n == 2 else None, sample_weight=rows.weight
    )
    return float(value)


@dataclass(frozen=True)
class Held:
    """Validation rows: class codes with the positive class last, and the shares they are judged at.

    Attributes
    ----------
    codes : class codes.
    prior : the shares at which decisions are judged: the rows' own, or those asked for.
    weight : what each row counts so that the classes have the shares asked for; ``None`` for one each.
    """

    codes: IntArray
    prior: FloatArray
    weight: FloatArray | None

    @classmethod
    def make(cls, codes: IntArray, given: FloatArray, wanted: FloatArray | None) -> Held:
        """With the shares wanted; else with the rows' own, or ``given`` where a class has no rows."""
        counts = np.bincount(codes, minlength=len(given))
        if wanted is None:
            return cls(codes, counts / counts.sum() if counts.all() else given, None)
        if not counts.all():
            raise ValueError("a prior needs validation rows of every class, but one class has none")
        return cls(codes, wanted, (wanted * counts.sum() / counts)[codes])

    @property
    def asked(self) -> Any:
        """The prior that probabilities are judged at: the data's unless another was asked for."""
        return "data" if self.weight is None else self.prior


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


def scan(candidates: Sequence[Params], judge: Callable[[Params], Judged]) -> list[dict[str, Any]]:
    """Judge each candidate; what a candidate cannot reach (no such recall) is a NaN, unless all fail."""
    rows: list[dict[str, Any]] = []
    failure: ValueError | None = None
    for candidate in candidates:
        try:
            judged = judge(candidate)
        except ValueError as error:
            judged, failure = Judged(float("nan"), None, float("nan")), error
        rows.append({**candidate, **vars(judged)})
    if failure is not None and all(np.isnan(row["merit"]) for row in rows):
        raise failure
    return rows


def search_continuously(
    distribution: dict[str, Distribution], judge: Callable[[Params], Judged], seed: int = 0
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
    best = rows[int(np.nanargmax([row["merit"] for row in rows]))]

    def cost(point: FloatArray) -> float:
        rows.extend(tried := scan([named(point)], judge))
        return -float(np.nan_to_num(tried[0]["merit"], nan=-np.inf))

    start = np.array([best[name] for name in free])
    optimize.minimize(
        cost,
        start,
        method="Nelder-Mead",
        bounds=list(zip(low, high, strict=True)),
        options={"maxfev": 60, "xatol": 1e-3, "fatol": 1e-6},
    )
    return rows
