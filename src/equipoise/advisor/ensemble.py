"""Several bags as one model: non-negative weights on their log probabilities, chosen on held-out rows.

The weights minimize the log loss and are pulled toward equal weights, the more so the fewer rows of the rarest
class there are: with few positives a plain mean is hard to beat, with many the best members win. The same fit
calibrates: the sum of the weights is a slope and each class has an offset (Platt 1999). With one member it is its
calibration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize
from scipy.special import log_softmax, softmax

from equipoise._core.checks import FloatArray, IntArray

_PULL = 8.0  # how many rows' worth of log loss it costs to leave equal weights
_MOST_SHIFT = 1.5  # of a class's log probability, when means are matched to the class shares
_MOST_FITTED = 20_000  # rows of one class on which weights are chosen: a handful of numbers needs no more


@dataclass(frozen=True)
class Stack:
    """Weights of the members and offsets of the classes.

    Attributes
    ----------
    weights : array of shape (members,)
    offsets : array of shape (classes,)
    """

    weights: FloatArray
    offsets: FloatArray

    def proba(self, members: FloatArray) -> FloatArray:
        """Probabilities from the members' log probabilities, of shape (members, rows, classes)."""
        return softmax(np.tensordot(self.weights, members, axes=1) + self.offsets, axis=1)

    def matched(self, proba: FloatArray, codes: IntArray, prior: FloatArray) -> Stack:
        """The stack with offsets at which the mean of its probabilities is the prior.

        Parameters
        ----------
        proba : array of shape (rows, classes)
            Its probabilities of some rows of every class.
        codes : array of int
            The classes of these rows; each class counts with its share in ``prior``.
        prior : array of shape (classes,)
        """
        weight = (prior / np.maximum(np.bincount(codes, minlength=len(prior)), 1))[codes]
        log_p, shift = np.log(np.maximum(proba, 1e-300)), np.zeros(len(prior))
        for _ in range(50):
            mean = weight @ softmax(log_p + shift, axis=1)
            shift += np.log(np.maximum(prior, 1e-12) / np.maximum(mean, 1e-12))
        shift = np.clip(shift - shift @ prior, -_MOST_SHIFT, _MOST_SHIFT)
        return Stack(self.weights, self.offsets + shift)


def fit_stack(
    members: FloatArray, y: IntArray, weight: FloatArray | None = None, pull: float = _PULL
) -> Stack:
    """Weights and offsets of least penalized log loss.

    Parameters
    ----------
    members : array of shape (members, rows, classes)
        Held-out log probabilities.
    y : array of int
        Class codes.
    weight : array, optional
        Of the rows.
    pull : float
        The strength of the pull toward equal weights and no offsets.

    Returns
    -------
    Stack
    """
    total = len(y)
    members, y, w = _thinned(members, y, weight)
    m, _, classes = members.shape
    w = w * (total / w.sum())
    hot = np.eye(classes)[y]
    equal = np.full(m, 1 / m)

    def loss(x: FloatArray) -> tuple[float, FloatArray]:
        scores = np.tensordot(x[:m], members, axes=1) + x[m:]
        log_p = log_softmax(scores, axis=1)
        residual = w[:, None] * (np.exp(log_p) - hot)
        value = -float(np.sum(w[:, None] * hot * log_p))
        value += 0.5 * pull * (m * float(np.sum((x[:m] - equal) ** 2)) + 0.1 * float(np.sum(x[m:] ** 2)))
        by_weight = np.einsum("mnc,nc->m", members, residual) + pull * m * (x[:m] - equal)
        return value, np.concatenate([by_weight, residual.sum(axis=0) + 0.1 * pull * x[m:]])

    start = np.concatenate([equal, np.zeros(classes)])
    bounds = [(0.0, None)] * m + [(None, None)] * classes
    found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return Stack(found.x[:m], found.x[m:])


def held_out_stack(
    members: FloatArray, y: IntArray, block: IntArray, weight: FloatArray | None = None, pull: float = _PULL
) -> FloatArray:
    """Probabilities of every row by a stack that was fitted to the other blocks."""
    proba = np.empty(members.shape[1:])
    blocks = np.unique(block)
    for b in blocks:
        out = block == b
        fit = ~out if len(blocks) > 1 else out
        stack = fit_stack(members[:, fit], y[fit], None if weight is None else weight[fit], pull)
        proba[out] = stack.proba(members[:, out])
    return proba


def keep_useful(
    names: Sequence[str], members: FloatArray, y: IntArray, weight: FloatArray | None = None, most: int = 12
) -> list[int]:
    """The members that a greedy selection with replacement takes (Caruana et al. 2004), at most ``most``.

    Starting from the best, the member whose addition to the mean lowers the log loss most is added until none does;
    weak members that would drag a mean down are never taken.
    """
    from equipoise.advisor.bags import log_loss

    members, y, weight = _thinned(members, y, weight)
    losses = [log_loss(member, y, weight) for member in members]
    chosen = [int(np.argmin(losses))]
    total, best = members[chosen[0]].copy(), min(losses)
    for size in range(2, 30):
        trial = [log_loss((total + member) / size, y, weight) for member in members]
        pick = int(np.argmin(trial))
        if trial[pick] > best - 1e-6:
            break
        best = trial[pick]
        total += members[pick]
        chosen.append(pick)
    kept = sorted(set(chosen), key=chosen.index)[:most]
    return sorted(kept)


def _thinned(
    members: FloatArray, y: IntArray, weight: FloatArray | None
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Evenly spaced rows of each class that has very many, each standing for those around it."""
    w = np.ones(len(y)) if weight is None else weight
    counts = np.bincount(y)
    if counts.max(initial=0) <= _MOST_FITTED:
        return members, y, w
    taken = []
    for code, count in enumerate(counts):
        rows = np.flatnonzero(y == code)
        taken.append(rows[np.linspace(0, count - 1, min(count, _MOST_FITTED)).astype(int)])
    index = np.sort(np.concatenate(taken))
    scale = counts / np.minimum(np.maximum(counts, 1), _MOST_FITTED)
    return members[:, index], y[index], w[index] * scale[y[index]]
