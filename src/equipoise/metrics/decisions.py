"""From probabilities to labels: the only place where a threshold, a cost or a prior becomes a decision.

A decision is a table of losses ``losses[truth, call]``: each row is called as the class of least expected loss. A
threshold t on the positive class's probability is the table ``[[0, t], [1 − t, 0]]``. A `Wish` says what the user
wants, `choose_decision` turns it into a `Decision` on held-out rows, and `judge_decision` says what that decision
does. Classifiers, the advisor, ``retune`` and the studies all call these three, so that what was judged is what
``predict`` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import stats

from equipoise._core.checks import FloatArray, IntArray, check_array, check_counts, check_distribution
from equipoise._core.priors import correct_prior
from equipoise.metrics.wishes import RowCosts, UnmetWish, Wish

_STRENGTHS = np.linspace(0, 1.5, 31)  # of the prior's removal: 0 is the most probable class
_PRECISION_LOOKS = 12  # numbers of alerts at which a wanted precision is tested


@dataclass(frozen=True)
class Decision:
    """A rule from probabilities to class codes.

    Attributes
    ----------
    losses : array of shape (classes, classes)
        ``losses[truth, call]``; a row is called as the class of least expected loss.
    prior : array of shape (classes,)
        The class shares at which the probabilities are given and the rows will come.
    wish : Wish
        What it was chosen for.

    Examples
    --------
    >>> rule = Decision.at_threshold(0.2, prior=[0.9, 0.1])
    >>> rule.codes([[0.85, 0.15], [0.8, 0.2]]), rule.threshold
    (array([0, 1]), 0.2)
    """

    losses: FloatArray
    prior: FloatArray
    wish: Wish = field(default_factory=Wish)

    @classmethod
    def at_threshold(cls, threshold: float, prior: npt.ArrayLike, wish: Wish | None = None) -> Decision:
        """The rule that calls a row positive from a probability of ``threshold`` on.

        Parameters
        ----------
        threshold : float
            The least probability of the positive class that is called positive.
        prior : array of shape (2,)
            The class shares at which the probabilities are given.
        wish : Wish, optional
            What the rule was chosen for.

        Returns
        -------
        Decision
            The rule.
        """
        losses = np.array([[0.0, threshold], [1.0 - threshold, 0.0]])
        return cls(losses, check_distribution("prior", prior), wish or Wish())

    @classmethod
    def by_weights(cls, weights: npt.ArrayLike, prior: npt.ArrayLike, wish: Wish | None = None) -> Decision:
        """The rule that calls the class of the largest probability times weight.

        Parameters
        ----------
        weights : array of shape (classes,)
            One weight per class.
        prior : array of shape (classes,)
            The class shares at which the probabilities are given.
        wish : Wish, optional
            What the rule was chosen for.

        Returns
        -------
        Decision
            The rule.
        """
        w = np.asarray(weights, dtype=np.float64)
        return cls(w[:, None] * (1 - np.eye(len(w))), check_distribution("prior", prior), wish or Wish())

    @property
    def threshold(self) -> float | None:
        """The positive class's probability from which a row is called positive; ``None`` for many classes."""
        if len(self.losses) != 2:
            return None
        alarm, miss = self.losses[0, 1] - self.losses[0, 0], self.losses[1, 0] - self.losses[1, 1]
        return float(alarm / (alarm + miss))

    def codes(self, proba: npt.ArrayLike, row_costs: RowCosts | None = None) -> IntArray:
        """Class codes for probabilities at ``prior``.

        Parameters
        ----------
        proba : array of shape (rows, classes)
            Class probabilities at ``prior``.
        row_costs : pair of arrays, optional
            The cost of a false alarm and of a miss of every row, for a wish with a cost by row.

        Returns
        -------
        array of int of shape (rows,)
            The class code of each row.
        """
        p = np.asarray(proba, dtype=np.float64)
        if row_costs is not None:
            alarm, miss = row_costs
            return (p[:, 1] * miss >= p[:, 0] * alarm).astype(np.int64)
        if self.threshold is not None:
            return (p[:, 1] >= self.threshold).astype(np.int64)
        return (p @ self.losses).argmin(axis=1)


def choose_decision(
    proba: npt.ArrayLike,
    truth: npt.ArrayLike,
    wish: Wish,
    *,
    data_prior: npt.ArrayLike | None = None,
    prior: npt.ArrayLike | None = None,
    calibrated: bool = True,
) -> Decision:
    """The decision that a wish asks for, from predictions of rows that were not trained on.

    Parameters
    ----------
    proba : array of shape (rows, classes)
        Held-out probabilities at ``data_prior``.
    truth : array of int
        Class codes.
    wish : Wish
        What the decision should achieve.
    data_prior : array, optional
        The class shares at which ``proba`` is given; by default those of ``truth``.
    prior : array, optional
        The class shares where the decision will be used; by default ``data_prior``.
    calibrated : bool
        Whether ``proba`` can be taken at its word. Then a cost, balanced accuracy or F-beta needs no search among
        the labels: the threshold follows from the costs and the prior (Elkan 2001, Eq 2), or from the probabilities
        alone (Lipton et al. 2014), which is steadier than the best threshold found on few positives, and what the
        same rows then say about it is not flattered by the choice. Otherwise the threshold is searched on the
        held-out rows, each weighted by ``prior / data_prior`` of its class.

    Returns
    -------
    Decision
        The rule, which remembers the wish and the prior.

    Raises
    ------
    UnmetWish
        If the rows cannot promise the wanted recall or precision.

    Examples
    --------
    >>> p = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    >>> choose_decision(p, [0, 0, 1, 1], Wish.make(cost={"fp": 1, "fn": 4})).threshold
    0.2
    """
    p, y, given, wanted = _checked(proba, truth, data_prior, prior)
    p = correct_prior(p, given, wanted)
    n = p.shape[1]
    costs = wish.cost_table(n)
    if n != 2 and (wish.objective not in ("balanced_accuracy", "cost") or wish.by_row):
        raise ValueError(f"{wish.words} needs two classes, got {n}: name one with positive")
    if wish.objective == "threshold":
        return Decision.at_threshold(wish.level or 0.0, wanted, wish)
    if wish.by_row:
        return Decision.at_threshold(0.5, wanted, wish)
    if wish.objective == "recall":
        return Decision.at_threshold(_recall_threshold(p[y == 1, 1], wish), wanted, wish)
    if wish.objective == "precision":
        return Decision.at_threshold(_precision_threshold(p[:, 1], y, wanted, wish), wanted, wish)
    if wish.objective == "alerts":
        return Decision.at_threshold(_alert_threshold(p[:, 1], y, wanted, wish), wanted, wish)
    if wish.objective == "f_beta" and calibrated:
        weight = _row_weights(np.asarray(proba, dtype=np.float64), y, given, wanted)
        return Decision.at_threshold(_f_threshold(p[:, 1], weight, wish.beta), wanted, wish)
    if calibrated:
        losses = (1 - np.eye(n)) / np.maximum(wanted, 1e-12)[:, None] if costs is None else costs
        return Decision(losses, wanted, wish)
    if n == 2:
        return Decision.at_threshold(_search_threshold(p[:, 1], y, wanted, wish), wanted, wish)
    return Decision(_search_losses(p, y, wanted, costs), wanted, wish)


def _checked(
    proba: npt.ArrayLike, truth: npt.ArrayLike, data_prior: npt.ArrayLike | None, prior: npt.ArrayLike | None
) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
    p, y = check_array("proba", proba), check_counts("truth", truth)
    if p.ndim != 2 or y.shape != (len(p),):
        raise ValueError(f"proba must have one row a label, got the shapes {p.shape} and {y.shape}")
    counts = np.bincount(y, minlength=p.shape[1])
    given = counts / counts.sum() if data_prior is None else check_distribution("data_prior", data_prior)
    wanted = given if prior is None else check_distribution("prior", prior)
    if not len(given) == len(wanted) == p.shape[1]:
        raise ValueError(f"a prior must have {p.shape[1]} shares, got {len(wanted)}")
    return p, y, given, wanted


def _recall_threshold(positives: FloatArray, wish: Wish) -> float:
    """The highest threshold whose recall is at least the wanted one, with confidence.

    The share of all positives below the k-th lowest of n has the Beta(k, n − k + 1) distribution, whatever the
    distribution of the scores (Wilks 1941): an exact promise although the threshold was chosen on these rows.
    """
    n, level = len(positives), wish.level or 0.0
    k = np.arange(1, n + 1)
    sure = np.flatnonzero(stats.beta.cdf(1 - level, k, n - k + 1) >= wish.confidence)
    if not sure.size:
        most = (1 - wish.confidence) ** (1 / n) if n else 0.0
        raise UnmetWish(
            f"{wish.words} cannot be promised from {n} held-out positives: the most that can be is {most:.3f}; "
            "ask for less, accept less confidence, or collect more positives"
        )
    return float(np.sort(positives)[sure[-1]])


def _rates_at(score: FloatArray, y: IntArray, thresholds: FloatArray) -> tuple[IntArray, IntArray]:
    """How many positives and negatives lie at or above each threshold."""
    hits = np.sum(y == 1) - np.searchsorted(np.sort(score[y == 1]), thresholds, side="left")
    alarms = np.sum(y == 0) - np.searchsorted(np.sort(score[y == 0]), thresholds, side="left")
    return hits, alarms


def _precision_threshold(score: FloatArray, y: IntArray, prior: FloatArray, wish: Wish) -> float:
    """The lowest threshold whose precision is at least the wanted one, with confidence.

    Recall is bounded below and the share of false alarms above (Clopper & Pearson 1934) at a dozen numbers of
    alerts; the level of each test is divided by their number.
    """
    order = np.sort(score)[::-1]
    looks = np.unique(np.geomspace(3, len(order), _PRECISION_LOOKS).astype(int).clip(1, len(order)))
    thresholds = order[looks - 1]
    hits, alarms = _rates_at(score, y, thresholds)
    error = (1 - wish.confidence) / len(looks)
    if np.isclose(prior[1], np.mean(y == 1), rtol=1e-9):
        low = binomial_interval(hits, hits + alarms, 1 - 2 * error)[0]
    else:
        recall = binomial_interval(hits, np.sum(y == 1), 1 - error)[0]
        false = binomial_interval(alarms, np.sum(y == 0), 1 - error)[1]
        low = prior[1] * recall / np.maximum(prior[1] * recall + prior[0] * false, 1e-300)
    met = np.flatnonzero(low >= (wish.level or 0.0))
    if not met.size:
        raise UnmetWish(
            f"{wish.words} cannot be promised from {int(np.sum(y == 1))} held-out positives: the most that can "
            f"be is {low.max():.3f}; ask for less, accept less confidence, or collect more positives"
        )
    return float(thresholds[met[-1]])


def _alert_threshold(score: FloatArray, y: IntArray, prior: FloatArray, wish: Wish) -> float:
    """The lowest threshold with at most the wanted share of alerts at ``prior``."""
    level = wish.level or 0.0
    share = level if level < 1 else level / len(y)
    thresholds = np.append(np.unique(score), np.nextafter(score.max(), 2))
    hits, alarms = _rates_at(score, y, thresholds)
    called = prior[1] * hits / max(np.sum(y == 1), 1) + prior[0] * alarms / max(np.sum(y == 0), 1)
    return float(thresholds[np.flatnonzero(called <= share + 1e-12)[0]])


def _row_weights(proba: FloatArray, y: IntArray, given: FloatArray, wanted: FloatArray) -> FloatArray:
    """How many rows at the wanted prior each held-out row stands for, from its probabilities at ``given``."""
    seen = np.bincount(y, minlength=len(given)) / len(y)
    known = np.maximum(given, 1e-12)
    return (proba @ (wanted / known)) / np.maximum(proba @ (seen / known), 1e-12)


def _f_threshold(score: FloatArray, weight: FloatArray, beta: float) -> float:
    """The threshold of the best F-beta that the probabilities themselves expect.

    A row is worth calling if its probability is at least F / (1 + β²), where F is the best F-beta there is
    (Lipton, Elkan & Naryanaswamy 2014, "Optimal thresholding of classifiers to maximize F1 measure", Theorem 1).
    """
    order = np.argsort(-score, kind="stable")
    p, w = score[order], weight[order]
    expected = (1 + beta**2) * np.cumsum(w * p) / np.maximum(beta**2 * np.sum(w * p) + np.cumsum(w), 1e-300)
    return float(min(expected.max() / (1 + beta**2), 1.0))


def _search_threshold(score: FloatArray, y: IntArray, prior: FloatArray, wish: Wish) -> float:
    """The threshold of least loss on the held-out rows; of near-ties the one in the flattest surroundings.

    The exact minimizer on few positives jumps with every row. The loss is averaged with its own running mean over
    2 % of the thresholds to either side, so that a lone dip loses against a broad one.
    """
    values = np.unique(score)
    edges = np.concatenate([[0.0], values, [1.0 + 1e-9]])
    cuts = (edges[:-1] + edges[1:]) / 2
    hits, alarms = _rates_at(score, y, cuts)
    recall, false = hits / max(np.sum(y == 1), 1), alarms / max(np.sum(y == 0), 1)
    if wish.objective == "f_beta":
        b = wish.beta**2
        called = prior[1] * recall + prior[0] * false
        loss = -(1 + b) * prior[1] * recall / (b * prior[1] + called)
    elif wish.objective == "cost":
        costs = wish.cost_table(2)
        assert costs is not None
        loss = prior[1] * (costs[1, 0] * (1 - recall) + costs[1, 1] * recall) + prior[0] * (
            costs[0, 1] * false + costs[0, 0] * (1 - false)
        )
    else:
        loss = (1 - recall + false) / 2
    width = int(0.02 * len(cuts))
    if width:
        kernel = np.ones(2 * width + 1) / (2 * width + 1)
        loss = 0.5 * (loss + np.convolve(np.pad(loss, width, mode="edge"), kernel, "valid"))
    best = np.flatnonzero(loss <= loss.min() + 1e-12)
    return float(min(cuts[best[len(best) // 2]], 1.0))


def _search_losses(p: FloatArray, y: IntArray, prior: FloatArray, costs: FloatArray | None) -> FloatArray:
    """For many classes: how far to divide the prior out of the probabilities, by the result on held-out rows."""
    n = p.shape[1]
    target = (1 - np.eye(n)) / np.maximum(prior, 1e-12)[:, None] if costs is None else costs
    base = (1 - np.eye(n)) if costs is None else costs
    candidates = [base * (np.maximum(prior, 1e-12) ** -s)[:, None] for s in _STRENGTHS]
    spent = [
        float(np.sum(prior[:, None] * _rates(y, (p @ c).argmin(axis=1), n) * target)) for c in candidates
    ]
    best = np.flatnonzero(np.asarray(spent) <= min(spent) + 1e-12)
    return candidates[best[len(best) // 2]]


def _rates(y: IntArray, called: IntArray, n: int) -> FloatArray:
    counts = np.bincount(y * n + called, minlength=n * n).reshape(n, n)
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def binomial_interval(
    hits: npt.ArrayLike, trials: npt.ArrayLike, confidence: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """The exact interval of a share (Clopper & Pearson 1934, Biometrika 26).

    Parameters
    ----------
    hits : array-like
        The number of successes.
    trials : array-like
        The number of trials.
    confidence : float
        The least probability that the interval covers the true share.

    Returns
    -------
    array
        The lower bounds.
    array
        The upper bounds.

    Examples
    --------
    >>> low, high = binomial_interval(29, 29)
    >>> round(float(low), 3), float(high)
    (0.881, 1.0)
    """
    k, n = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    tail = (1 - confidence) / 2
    low = np.where(k > 0, stats.beta.ppf(tail, np.maximum(k, 1e-300), n - k + 1), 0.0)
    high = np.where(k < n, stats.beta.ppf(1 - tail, k + 1, np.maximum(n - k, 1e-300)), 1.0)
    return low, high


@dataclass(frozen=True)
class DecisionFigure:
    """One figure of a decision on held-out rows.

    Attributes
    ----------
    value : float
        The figure on the held-out rows.
    low, high : float
        Where it will lie on a fresh batch of rows, half as many as were held out, in 95 % of such batches.
    long_run : tuple of float
        The 95 % interval of its long-run value.
    """

    value: float
    low: float
    high: float
    long_run: tuple[float, float]


@dataclass(frozen=True)
class Judgment:
    """What a decision does to held-out rows.

    Attributes
    ----------
    decision : Decision
        The rule that was judged.
    figures : dict of str to DecisionFigure
        Balanced accuracy; with two classes recall, specificity, precision, F1 and alerts (the share of rows
        called positive); with many the recall of every class and macro F1; the cost per row where one is known.
    confusion : array of shape (classes, classes)
        Held-out rows by truth and call.
    """

    decision: Decision
    figures: dict[str, DecisionFigure]
    confusion: IntArray

    @property
    def threshold(self) -> float | None:
        """Of the positive class's probability; ``None`` for many classes."""
        return self.decision.threshold

    @property
    def wish(self) -> str:
        """What the decision was chosen for, in words."""
        return self.decision.wish.words


def judge_decision(
    decision: Decision,
    proba: npt.ArrayLike,
    truth: npt.ArrayLike,
    *,
    data_prior: npt.ArrayLike | None = None,
    row_costs: RowCosts | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
) -> Judgment:
    """The figures of a decision at its own prior, with intervals that a table of few positives deserves.

    All figures follow from the shares of each class that are called each class, and from the prior. The shares are
    drawn from their posterior, with a prior that weighs as much as one row a class (Perks 1947; with two classes
    that of Jeffreys); a fresh batch then adds its own luck. With two classes recall and specificity have their
    exact long-run interval.

    Parameters
    ----------
    decision : Decision
        The rule to judge.
    proba, truth : arrays
        Held-out probabilities at ``data_prior`` and class codes.
    data_prior : array, optional
        By default the shares of ``truth``.
    row_costs : pair of arrays, optional
        For a wish with a cost by row.
    confidence : float
        Of the ranges and the intervals.
    random_state : int
        Of the draws.

    Returns
    -------
    Judgment
        The decision with its figures, their ranges and the confusion of classes.

    Examples
    --------
    >>> p = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    >>> judged = judge_decision(Decision.at_threshold(0.3, prior=[0.5, 0.5]), p, [0, 0, 1, 1])
    >>> judged.figures["recall"].value, judged.confusion.tolist()
    (1.0, [[2, 0], [0, 2]])
    """
    p, y, given, _ = _checked(proba, truth, data_prior, None)
    n = p.shape[1]
    calls = decision.codes(correct_prior(p, given, decision.prior), row_costs)
    confusion = np.bincount(y * n + calls, minlength=n * n).reshape(n, n)
    rng = np.random.default_rng(random_state)
    draws = 4000 if n <= 10 else 400
    size = confusion.sum(axis=1)
    alpha = confusion + 1 / n
    gamma = rng.standard_gamma(np.broadcast_to(alpha, (draws, n, n)))
    long_run = gamma / gamma.sum(axis=2, keepdims=True)
    fresh = np.stack(
        [
            rng.multinomial(max(1, int(size[c]) // 2), long_run[:, c]) / max(1, int(size[c]) // 2)
            for c in range(n)
        ],
        axis=1,
    )
    costs = decision.wish.cost_table(n)
    values = _figures((confusion / np.maximum(size, 1)[:, None])[None], decision.prior, costs)
    far, near = _figures(long_run, decision.prior, costs), _figures(fresh, decision.prior, costs)
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    figures: dict[str, DecisionFigure] = {}
    for name, value in values.items():
        low, high = np.quantile(near[name], tails)
        least, most = np.quantile(far[name], tails)
        v = float(value[0])
        reach = min(float(least), v), max(float(most), v)
        figures[name] = DecisionFigure(v, min(float(low), v), max(float(high), v), reach)
    if n == 2:
        for name, k, m in (("recall", confusion[1, 1], size[1]), ("specificity", confusion[0, 0], size[0])):
            exact = binomial_interval(k, m, confidence)
            bounds = (float(exact[0]), float(exact[1]))
            old = figures[name]
            figures[name] = DecisionFigure(
                old.value, min(old.low, bounds[0]), max(old.high, bounds[1]), bounds
            )
    if row_costs is not None:
        figures["cost"] = _row_cost_figure(y, calls, row_costs, decision.prior, given, rng, tails)
    return Judgment(decision, figures, confusion)


def _figures(rates: FloatArray, prior: FloatArray, costs: FloatArray | None) -> dict[str, FloatArray]:
    """Figures of many tables of shares at once: ``rates[draw, truth, call]``."""
    n = len(prior)
    recalls = np.einsum("dcc->dc", rates)
    called = np.einsum("c,dck->dk", prior, rates)
    found = {"balanced_accuracy": recalls.mean(axis=1)}
    f1 = 2 * prior * recalls / np.maximum(prior + called, 1e-300)
    if n == 2:
        hit = prior[1] * recalls[:, 1]
        found["recall"], found["specificity"] = recalls[:, 1], recalls[:, 0]
        found["precision"] = np.divide(hit, called[:, 1], out=np.ones_like(hit), where=called[:, 1] > 0)
        found["f1"], found["alerts"] = f1[:, 1], called[:, 1]
    else:
        found["macro_f1"] = f1.mean(axis=1)
        found.update({f"recall of class {c}": recalls[:, c] for c in range(n)} if n <= 10 else {})
    if costs is not None:
        found["cost"] = np.einsum("c,dck,ck->d", prior, rates, costs)
    return found


def _row_cost_figure(
    y: IntArray, calls: IntArray, row_costs: RowCosts, prior: FloatArray, given: FloatArray,
    rng: np.random.Generator, tails: Sequence[float],
) -> DecisionFigure:  # fmt: skip
    alarm, miss = row_costs
    paid = np.where((y == 0) & (calls == 1), alarm, 0.0) + np.where((y == 1) & (calls == 0), miss, 0.0)
    paid = paid * (prior / np.maximum(given, 1e-12))[y]
    value, n = float(paid.mean()), len(paid)
    draws = [paid[rng.integers(0, n, n)].mean() for _ in range(500)]
    luck = [paid[rng.integers(0, n, max(1, n // 2))].mean() - value for _ in range(500)]
    far = np.quantile(draws, tails)
    near = np.quantile(np.asarray(draws) + np.asarray(luck), tails)
    return DecisionFigure(value, float(max(near[0], 0)), float(near[1]), (float(far[0]), float(far[1])))
