"""The operating point that a reader can move: counts at every threshold, and the figures that follow from them.

The page's script (``page/live.js``) computes the same figures in the browser; the tests hold the two together.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray, IntArray, check_array, check_distribution, check_same_length
from equipoise._core.priors import correct_prior
from equipoise.metrics import Decision, binomial_interval, design_effects, fold_effects
from equipoise.report.blocks import Block, Interval

CASES = 10_000
MOST_CUTS = 8_000  # thresholds on a page, all classes together: 120 kB
_MOST_CELLS = 24_000  # probabilities on a page for the cost matrix: 256 kB
_HAIR = 1 - 1e-12  # a score that lies so little below a threshold counts as equal to it
_MOST_CLASSES = 12  # a larger matrix cannot be edited by hand


@dataclass(frozen=True)
class ThresholdCounts:
    """How many positives and negatives score at least as high as each threshold.

    Attributes
    ----------
    thresholds
        Falling.
    hits, alarms
        Counts at "nobody" and then at each threshold, so one longer than ``thresholds``.
    is_whole
        Whether every distinct score is a threshold; else the counts are exact at the thresholds kept.
    effects
        By how much negatives and positives count less in intervals.
    """

    thresholds: FloatArray
    hits: IntArray
    alarms: IntArray
    is_whole: bool = True
    effects: tuple[float, float] = (1.0, 1.0)

    @classmethod
    def from_scores(
        cls, score: npt.ArrayLike, positive: npt.ArrayLike, most: int, exact: float = 1.0
    ) -> ThresholdCounts:
        """Count, and keep at most about ``most`` thresholds, spread over hits and alarms alike.

        The lowest score from ``exact`` on is always kept.

        >>> counts = ThresholdCounts.from_scores([0.9, 0.2, 0.2], [True, True, False], 100)
        >>> counts.thresholds.tolist(), counts.hits.tolist(), counts.alarms.tolist()
        ([0.9, 0.2], [0, 1, 2], [0, 0, 1])
        """
        values, place = np.unique(-np.asarray(score, dtype=np.float64), return_inverse=True)
        yes = np.asarray(positive, dtype=bool)
        hits = np.cumsum(np.bincount(place, weights=yes, minlength=values.size)).astype(np.int64)
        alarms = np.cumsum(np.bincount(place, weights=~yes, minlength=values.size)).astype(np.int64)
        keep = np.arange(values.size)
        if values.size > most:
            steps = np.concatenate([np.linspace(0, 1, most // 2), np.geomspace(1e-6, 1, most // 8)])
            found = [np.searchsorted(c, steps * c[-1]) for c in (hits, alarms) if c[-1]]
            start = max(int(np.searchsorted(values, -exact * _HAIR, side="right")) - 1, 0)
            keep = np.unique(np.append(found, [start, keep[-1]]))
        first = np.zeros(1, dtype=np.int64)
        return cls(
            -values[keep],
            np.concatenate([first, hits[keep]]),
            np.concatenate([first, alarms[keep]]),
            keep.size == values.size,
        )

    def cut(self, threshold: float) -> int:
        """How many of the thresholds lie at or above one; a hair below still counts as equal."""
        return int(np.searchsorted(-self.thresholds, -threshold * _HAIR, side="right"))

    def payload(self) -> dict[str, Any]:
        """As the page's script reads it: bytes of thresholds, steps of the counts."""
        return {
            "thresholds": _packed(self.thresholds),
            "hits": np.diff(self.hits).tolist(),
            "alarms": np.diff(self.alarms).tolist(),
            "whole": self.is_whole,
            "effects": list(self.effects),
        }


def operating_figures(
    counts: ThresholdCounts, cut: int, prior: float, cost: tuple[float, float]
) -> dict[str, Interval | None]:
    """What a threshold does where the positives' share is ``prior``, with 95 % intervals.

    Recall and specificity are shares of the held-out rows with exact (Clopper–Pearson) intervals. Precision,
    alerts and cost follow from both at the prior; their intervals take both shares at the worst and at the
    best end of exact 97.5 % intervals, and so hold with at least 95 %.

    Parameters
    ----------
    counts, cut
        The counts, and which of them: see :meth:`ThresholdCounts.cut`.
    prior
        The share of the positives.
    cost
        Of a false alarm and of a miss.

    Returns
    -------
    dict
        ``recall``, ``specificity``, ``precision`` (None if there are no alerts), ``alerts`` (of 10,000 cases),
        ``cost`` (a case), ``found``, ``missed``, ``false_alarms`` and ``left_alone`` (of 10,000 cases); None
        where the held-out rows have no such case.
    """
    hits, alarms = int(counts.hits[cut]), int(counts.alarms[cut])
    positives, negatives = int(counts.hits[-1]), int(counts.alarms[-1])
    if not positives or not negatives:
        return dict.fromkeys(FIGURES)
    recall, false = hits / positives, alarms / negatives
    alarm_cost, miss_cost = cost

    def at(r: float, f: float) -> tuple[float, float | None, float]:
        right, wrong = prior * r, (1 - prior) * f
        share = right / (right + wrong) if right + wrong > 0 else None
        return right + wrong, share, alarm_cost * wrong + miss_cost * prior * (1 - r)

    (f_low, f_high), wide_f = _intervals(alarms, negatives, counts.effects[0])
    (r_low, r_high), wide_r = _intervals(hits, positives, counts.effects[1])
    alerts, precision, costs = at(recall, false)
    poor, fine = at(wide_r[0], wide_f[1]), at(wide_r[1], wide_f[0])
    few, many = at(wide_r[0], wide_f[0])[0], at(wide_r[1], wide_f[1])[0]
    yes, no = CASES * prior, CASES * (1 - prior)
    return {
        "recall": Interval(recall, r_low, r_high),
        "specificity": Interval(1 - false, 1 - f_high, 1 - f_low),
        "precision": None if precision is None else Interval(precision, poor[1] or 0.0, fine[1] or 1.0),
        "alerts": Interval(CASES * alerts, CASES * few, CASES * many),
        "cost": Interval(costs, fine[2], poor[2]),
        "found": Interval(yes * recall, yes * r_low, yes * r_high),
        "missed": Interval(yes * (1 - recall), yes * (1 - r_high), yes * (1 - r_low)),
        "false_alarms": Interval(no * false, no * f_low, no * f_high),
        "left_alone": Interval(no * (1 - false), no * (1 - f_high), no * (1 - f_low)),
    }


FIGURES = (
    "recall", "specificity", "precision", "alerts", "cost", "found", "missed", "false_alarms", "left_alone",
)  # fmt: skip


@dataclass(frozen=True)
class LiveOperatingPoint(Block):
    """Sliders for threshold, costs, prior and alerts, and what they do to held-out rows.

    Parameters
    ----------
    proba, truth : array
        Probabilities of the classes at ``data_prior``, of rows that were not trained on, and their true codes.
    classes : sequence
        Names, in the order of the columns. With two, the second is the one that raises an alert.
    data_prior : array
        The class shares that the probabilities are for.
    decision : Decision
        The decision that was chosen; its prior says where the model will be used.
    cost : array, optional
        What errors cost: of a false alarm and of a miss, or a matrix (truth by call). By default the losses of
        the decision, which say what it acts for.
    alerts : float, optional
        The capacity for alerts, if it is limited: a share of the cases (below 1), or a number out of as many cases
        as rows are held out.
    model : str
        The model folder, for the command that the page offers.
    groups : array, optional
        Rows with the same value belong together and count as fewer, by their effect at the decision.
    folds : array of int, optional
        The fold in which each row was held out: rows count as fewer where the models of the folds differ.

    Examples
    --------
    >>> rule = Decision.at_threshold(0.2, prior=[0.7, 0.3])
    >>> proba = [[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]]
    >>> block = LiveOperatingPoint(proba, [0, 1, 0], ["no", "yes"], [0.7, 0.3], rule)
    >>> block.figures["recall"].value, round(block.figures["precision"].value, 3)
    (1.0, 0.462)
    """

    proba: npt.ArrayLike = field(repr=False)
    truth: npt.ArrayLike = field(repr=False)
    classes: Sequence[Any]
    data_prior: npt.ArrayLike
    decision: Decision
    cost: npt.ArrayLike | None = None
    alerts: float | None = None
    model: str = "model"
    groups: npt.ArrayLike | None = field(default=None, repr=False)
    folds: npt.ArrayLike | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        n = len(self.classes)
        shapes = {
            "proba": check_array("proba", self.proba).shape[1:],
            "data_prior": check_distribution("data_prior", self.data_prior).shape,
            "the prior of the decision": np.shape(self.decision.prior),
        }
        for name, shape in shapes.items():
            if n < 2 or shape != (n,):
                raise ValueError(f"{name} must name each of the {n} classes, got {shape}")
        check_same_length(proba=self.proba, truth=self.truth)
        if np.shape(self.costs) != (n, n):
            raise ValueError(
                f"cost must be a pair for two classes, or a matrix of all {n} classes, got {self.cost}"
            )

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes."""
        return len(self.classes) == 2

    @cached_property
    def codes(self) -> list[int]:
        """The classes to set against the rest; a page begins with the last, the rarest that was seen."""
        counts = np.bincount(np.asarray(self.truth), minlength=len(self.classes))
        order = np.argsort(np.where(counts > 0, -counts, -np.inf), kind="stable")
        return [1] if self.is_binary else order.tolist()

    @cached_property
    def costs(self) -> FloatArray:
        """The cost matrix: the given one, or the losses that the decision acts for, the smallest as 1."""
        if self.cost is None:
            losses = np.asarray(self.decision.losses, dtype=np.float64)
            return losses / min(losses[losses > 0], default=1.0)
        given = np.asarray(self.cost, dtype=np.float64)
        return np.array([[0.0, given[0]], [given[1], 0.0]]) if given.shape == (2,) else given

    @cached_property
    def called(self) -> IntArray:
        """What the decision calls each held-out row."""
        return self.decision.codes(correct_prior(self.proba, self.data_prior, self.decision.prior))

    @cached_property
    def curves(self) -> list[ThresholdCounts]:
        """The counts of each of ``codes`` against the rest."""
        proba, truth = np.asarray(self.proba, dtype=np.float64), np.asarray(self.truth)
        most = MOST_CUTS if self.is_binary else max(MOST_CUTS // (2 * len(self.classes)), 40)
        found = []
        for c in self.codes:
            counts = ThresholdCounts.from_scores(proba[:, c], truth == c, most, self.start_score(c))
            found.append(replace(counts, effects=self._effects(truth == c, self.called == c)))
        return found

    def _effects(self, yes: npt.NDArray[np.bool_], called: npt.NDArray[np.bool_]) -> tuple[float, float]:
        """By how much negatives and positives count less at the decision, as in :func:`judge_decision`."""
        known, less = (yes.astype(np.int64), called.astype(np.int64)), np.ones(2)
        if self.groups is not None:
            less *= design_effects(*known, self.groups, 2)
        if self.folds is not None:
            less *= fold_effects(*known, self.folds, 2, less)
        return float(less[0]), float(less[1])

    @property
    def rows(self) -> int:
        """The number of held-out rows."""
        return len(np.asarray(self.truth))

    @property
    def is_thinned(self) -> bool:
        """Whether some distinct probabilities are no thresholds on the page."""
        return not all(curve.is_whole for curve in self.curves)

    @property
    def capacity(self) -> float:
        """How many of 10,000 cases may raise an alert."""
        if self.alerts is None:
            return CASES
        return min(CASES, CASES * self.alerts / (1 if self.alerts < 1 else self.rows))

    def pair_cost(self, code: int) -> tuple[float, float]:
        """Costs of a false alarm and of a miss of one class against the rest, above those of being right.

        Parameters
        ----------
        code : int
            The class code.

        Returns
        -------
        float
            The cost of a false alarm.
        float
            The cost of a miss.
        """
        extra = self.costs - np.diag(self.costs)[:, None]
        others = [c for c in range(len(self.classes)) if c != code]
        return float(extra[others, code].mean()), float(extra[code, others].mean())

    def start_score(self, code: int) -> float:
        """The score from which the decision calls one class, or the lowest with no more alerts than it raises.

        Parameters
        ----------
        code : int
            The class code.

        Returns
        -------
        float
            The score.
        """
        if self.decision.threshold is not None:
            t, odds = self.decision.threshold, self.odds(code)
            return t if odds == 1 else t / (t + (1 - t) * odds)
        scores, wanted = np.asarray(self.proba, dtype=np.float64)[:, code], int((self.called == code).sum())
        if wanted < self.rows:
            scores = scores[scores > np.partition(scores, -wanted - 1)[-wanted - 1]]
        return float(min(scores, default=1.0))

    def threshold(self, code: int) -> float:
        """The threshold of one class at the prior of use: the decision's own, or one with as many alerts.

        Parameters
        ----------
        code : int
            The class code.

        Returns
        -------
        float
            The probability from which a row is called that class.
        """
        if self.decision.threshold is not None:
            return self.decision.threshold
        score, odds = self.start_score(code), self.odds(code)
        return score * odds / (score * odds + 1 - score)

    def odds(self, code: int) -> float:
        """By how much the class's odds differ where the model will be used.

        Parameters
        ----------
        code : int
            The class code.

        Returns
        -------
        float
            The odds of the class in use over those in the data; 1 if they are the same.
        """
        before, after = float(np.asarray(self.data_prior)[code]), float(self.decision.prior[code])
        possible = 0 < before < 1 and after < 1 and before != after
        return (after / (1 - after)) / (before / (1 - before)) if possible else 1.0

    @property
    def figures(self) -> dict[str, Interval | None]:
        """The figures at the start, of the last of ``codes``, before any limit on alerts."""
        code = self.codes[-1]
        cut = self.curves[-1].cut(self.start_score(code))
        return operating_figures(self.curves[-1], cut, float(self.decision.prior[code]), self.pair_cost(code))

    def payload(self) -> dict[str, Any]:
        """All that the page's script needs.

        Returns
        -------
        dict
            Plain JSON values.
        """
        alarm, miss = self.pair_cost(self.codes[-1])
        follows = self.decision.threshold is not None and bool(
            np.isclose(self.decision.threshold, alarm / (alarm + miss), rtol=1e-12)
        )
        return {
            "classes": [str(name)[:200] for name in self.classes],
            "codes": self.codes,
            "curves": [curve.payload() for curve in self.curves],
            "data_prior": np.asarray(self.data_prior, dtype=np.float64).tolist(),
            "prior": np.asarray(self.decision.prior, dtype=np.float64).tolist(),
            "start": [{"threshold": self.threshold(c), "cost": list(self.pair_cost(c))} for c in self.codes],
            "follows_cost": follows and self.cost is not None,
            "alerts": self.capacity,
            "model": self.model,
            "matrix": self._matrix() if self.has_matrix else None,
        }

    @property
    def has_matrix(self) -> bool:
        """Whether the page offers the whole cost matrix: of three classes up to a dozen."""
        return 2 < len(self.classes) <= _MOST_CLASSES

    @cached_property
    def kept_rows(self) -> IntArray:
        """Rows for the cost matrix, the same share of every truth and call, at least one of each."""
        n = len(self.classes)
        cells = np.asarray(self.truth) * n + self.called
        whole = np.bincount(cells, minlength=n * n)
        share = min(1.0, _MOST_CELLS / (n * cells.size))
        place = np.arange(cells.size) - np.repeat(np.cumsum(whole) - whole, whole)
        kept = (place == 0) | (np.floor((place + 1) * share) > np.floor(place * share))
        return np.sort(np.argsort(cells, kind="stable")[kept])

    def _matrix(self) -> dict[str, Any]:
        """The probabilities themselves, weighted so that the counts at the start stay what they are."""
        n, rows, truth = len(self.classes), self.kept_rows, np.asarray(self.truth)
        cells = truth * n + self.called
        weight = np.bincount(cells, minlength=n * n) / np.maximum(
            np.bincount(cells[rows], minlength=n * n), 1
        )
        return {
            "proba": _packed(np.asarray(self.proba, dtype=np.float64)[rows]),
            "truth": truth[rows].tolist(),
            "weight": None if rows.size == truth.size else np.round(weight[cells[rows]], 9).tolist(),
            "cost": self.costs.tolist(),
        }


def _intervals(count: int, total: int, effect: float) -> list[tuple[float, float]]:
    """The 95 % interval of a share, and the wider one that two of which hold together."""
    found = [binomial_interval(count / effect, total / effect, confidence) for confidence in (0.95, 0.975)]
    return [(float(low), float(high)) for low, high in found]


def _packed(values: FloatArray) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode()
