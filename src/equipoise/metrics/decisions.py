"""From probabilities to labels: the only place where a threshold, a cost or a prior becomes a decision.

A decision is a table of losses ``losses[truth, call]``: each row is called as the class of least expected loss. A
threshold t on the positive class's probability is the table ``[[0, t], [1 − t, 0]]``. A `Wish` says what the user
wants, `choose_decision` turns it into a `Decision` on held-out rows, and `judge_decision` says what that decision
does. Classifiers, the advisor, ``retune`` and the studies all call these three, so that what was judged is what
``predict`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray, IntArray, check_array, check_counts, check_distribution
from equipoise._core.priors import correct_prior
from equipoise.metrics.promises import precision_threshold, rates_at, recall_threshold
from equipoise.metrics.wishes import RowCosts, Wish

_STRENGTHS = np.linspace(0, 1.5, 31)  # of the prior's removal: 0 is the most probable class


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


def decision_to_json(decision: Decision) -> dict[str, Any]:
    """A decision as plain values; the threshold is there for who reads the file."""
    return {
        "losses": decision.losses.tolist(),
        "threshold": decision.threshold,
        "prior": decision.prior.tolist(),
        "wish": asdict(decision.wish),
    }


def decision_from_json(saved: dict[str, Any], n_classes: int) -> Decision:
    """The decision that :func:`decision_to_json` wrote, checked."""
    losses, prior = check_array("losses", saved["losses"]), check_distribution("a prior", saved["prior"])
    if losses.shape != (n_classes, n_classes) or len(prior) != n_classes:
        raise ValueError(
            f"the decision must be a table of {n_classes} by {n_classes} losses and have a prior"
        )
    wish = dict(saved["wish"])
    if isinstance(wish["cost"], list):
        wish["cost"] = tuple(map(tuple, wish["cost"]))
    return Decision(losses, prior, Wish(**wish))


def choose_decision(
    proba: npt.ArrayLike,
    truth: npt.ArrayLike,
    wish: Wish,
    *,
    data_prior: npt.ArrayLike | None = None,
    prior: npt.ArrayLike | None = None,
    calibrated: bool = True,
    groups: npt.ArrayLike | None = None,
    folds: npt.ArrayLike | None = None,
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
    groups : array, optional
        Rows with the same value belong together, and count for less in what is promised with confidence.
    folds : array of int, optional
        The fold in which each row was held out, if what is delivered is the mean of the folds' models and none of
        those that were judged: of J folds a recall is then promised as if one had not been seen.

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
    p, y, given, wanted = check_predictions(proba, truth, data_prior, prior)
    p = correct_prior(p, given, wanted)
    n = p.shape[1]
    wish.check(n)
    costs = wish.cost_table(n)
    if wish.objective == "threshold":
        return Decision.at_threshold(wish.level or 0.0, wanted, wish)
    if wish.by_row:
        return Decision.at_threshold(0.5, wanted, wish)
    if wish.objective == "recall":
        return Decision.at_threshold(recall_threshold(p[:, 1], y, wish, groups, folds), wanted, wish)
    weight = _row_weights(np.asarray(proba, dtype=np.float64), y, given, wanted) if calibrated else None
    if wish.objective == "precision":
        threshold = precision_threshold(p[:, 1], y, wanted, wish, groups, weight)
        return Decision.at_threshold(threshold, wanted, wish)
    if wish.objective == "alerts":
        return Decision.at_threshold(_alert_threshold(p[:, 1], y, wanted, wish), wanted, wish)
    if wish.objective == "f_beta" and weight is not None:
        return Decision.at_threshold(_f_threshold(p[:, 1], weight, wish.beta), wanted, wish)
    if calibrated:
        losses = (1 - np.eye(n)) / np.maximum(wanted, 1e-12)[:, None] if costs is None else costs
        return Decision(losses, wanted, wish)
    if n == 2:
        return Decision.at_threshold(_search_threshold(p[:, 1], y, wanted, wish), wanted, wish)
    return Decision(_search_losses(p, y, wanted, costs), wanted, wish)


def search_decision(
    proba: npt.ArrayLike, truth: npt.ArrayLike, worth: Callable[[IntArray], float], *, prior: npt.ArrayLike
) -> tuple[Decision, float]:
    """The decision that is worth most by any measure of labels, from predictions of rows that were not trained on.

    Parameters
    ----------
    proba : array of shape (rows, classes)
        Held-out probabilities at ``prior``.
    truth : array of int
        Class codes.
    worth : callable
        ``worth(codes)`` of the labels that a decision gives; the larger the better.
    prior : array of shape (classes,)
        The class shares where the decision will be used.

    Returns
    -------
    Decision
        For two classes the best of some sixty thresholds at quantiles of either class; for more classes the best
        of thirty-one strengths at which the prior is divided out. Neighbors count too, so that it is steady.
    float
        What it is worth on these rows.

    Examples
    --------
    >>> p, y = np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3]]), np.array([0, 1, 1])
    >>> rule, share = search_decision(p, y, lambda codes: float(np.mean(codes == y)), prior=[0.5, 0.5])
    >>> rule.codes(p), share
    (array([0, 1, 1]), 1.0)
    """
    p, y, shares, _ = check_predictions(proba, truth, prior, None)
    if p.shape[1] == 2:
        cuts = _cuts(p[:, 1])
        spread = [np.quantile(p[y == c, 1], np.linspace(0, 1, 32)) for c in (0, 1) if (y == c).any()]
        near = np.unique(np.searchsorted(cuts, np.concatenate([*spread, [1.0]])).clip(max=len(cuts) - 1))
        rules = [Decision.at_threshold(cut, shares, Wish.make(threshold=cut)) for cut in cuts[near]]
    else:
        rules = [Decision.by_weights(np.maximum(shares, 1e-12) ** -s, shares) for s in _STRENGTHS]
    found = np.array([worth(rule.codes(p)) for rule in rules])
    smooth = _steadied(found, 2)
    best = np.flatnonzero(smooth >= np.nanmax(smooth) - 1e-12)
    middle = best[len(best) // 2]
    return rules[middle], float(found[middle])


def _steadied(values: FloatArray, width: int) -> FloatArray:
    """Values averaged with their own running mean over so many to either side: a lone peak loses to a broad one."""
    kernel = np.ones(2 * width + 1) / (2 * width + 1)
    return 0.5 * (values + np.convolve(np.pad(values, width, mode="edge"), kernel, "valid"))


def check_predictions(
    proba: npt.ArrayLike, truth: npt.ArrayLike, data_prior: npt.ArrayLike | None, prior: npt.ArrayLike | None
) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
    """Probabilities, codes, the prior that they are given at and the one wanted, all of fitting shapes."""
    p, y = check_array("proba", proba), check_counts("truth", truth)
    if p.ndim != 2 or y.shape != (len(p),):
        raise ValueError(f"proba must have one row a label, got the shapes {p.shape} and {y.shape}")
    counts = np.bincount(y, minlength=p.shape[1])
    given = counts / counts.sum() if data_prior is None else check_distribution("data_prior", data_prior)
    wanted = given if prior is None else check_distribution("prior", prior)
    if not len(given) == len(wanted) == p.shape[1]:
        raise ValueError(f"a prior must have {p.shape[1]} shares, got {len(wanted)}")
    return p, y, given, wanted


def _alert_threshold(score: FloatArray, y: IntArray, prior: FloatArray, wish: Wish) -> float:
    """The lowest threshold with at most the wanted share of alerts at ``prior``."""
    level = wish.level or 0.0
    share = level if level < 1 else level / len(y)
    thresholds = np.append(np.unique(score), np.nextafter(score.max(), 2))
    hits, alarms = rates_at(score, y, thresholds)
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

    The exact minimizer on few positives jumps with every row, so 2 % of the thresholds to either side count too.
    """
    cuts = _cuts(score)
    hits, alarms = rates_at(score, y, cuts)
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
    loss = _steadied(loss, int(0.02 * len(cuts)))
    best = np.flatnonzero(loss <= loss.min() + 1e-12)
    return float(cuts[best[len(best) // 2]])


def _cuts(score: FloatArray) -> FloatArray:
    """Thresholds between neighboring scores, and beyond the first and the last."""
    edges = np.concatenate([[0.0], np.unique(score), [1.0 + 1e-9]])
    return np.minimum((edges[:-1] + edges[1:]) / 2, 1.0)


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
