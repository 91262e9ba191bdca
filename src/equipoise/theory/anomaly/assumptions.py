"""Do the classes share one distribution, cut by a rule, or are they separate groups? (sections 2.1 and G.3.1)

In the model (anomaly-detection imbalance, ADI) all samples come from one Gaussian and the rule cuts off its tail.
So, in whitened coordinates, (1) across the rule's direction the classes look alike, and (2) along it the positives
are a tail: their spread is smaller than the negatives', by an amount that b0 and the classifier's overlap fix. In
multiple-groups imbalance (MGI) the classes differ across it too, or have their own full spread along it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtr

from equipoise._core.checks import FloatArray
from equipoise.theory.anomaly._estimates import standardize

_COMPONENTS = 30
_ROWS = 150  # a class, in the permutation test
_PERMUTATIONS = 99
BoolArray = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True)
class SharedDistribution:
    """The evidence and the verdict: ``"one distribution"``, ``"multiple groups"`` or ``"unclear"``.

    ``component_overlap`` is the mean over the leading principal components of the area that the two classes'
    histograms share (what the paper's Figs 16-17 show). ``across_p_value`` is a permutation test of the energy
    distance between the classes across the discriminating direction, ``across_effect`` that distance as a
    share of the mean distance between them. ``along_log_ratio`` is the log of the positives' over the
    negatives' variance along it, to be compared with ``along_expected`` under the model and with 0 for groups
    of equal spread; ``along_error`` is its standard error.
    """

    verdict: str
    component_overlap: float
    across_p_value: float
    across_effect: float
    along_log_ratio: float
    along_expected: float
    along_error: float


def shared_distribution(
    X: FloatArray,
    positive: BoolArray,
    scores: FloatArray,
    overlap: float,
    teacher_bias: float,
    generator: np.random.Generator,
) -> SharedDistribution:
    """Compare the classes across and along the discriminating direction (``scores`` are held out)."""
    Z = _whiten(standardize(X))
    p_value, effect = _across(Z, positive, generator)
    ratio, error = _along(scores, positive)
    expected = _expected_log_ratio(overlap, teacher_bias)
    common = _component_overlap(Z, positive)
    groups_across = p_value < 0.02 and effect > 0.02
    nearer_groups = abs(ratio) + 1e-12 < abs(ratio - expected) or ratio > 0
    told_apart = abs(expected) > 2 * error
    if groups_across or (nearer_groups and told_apart):
        verdict = "multiple groups"
    elif positive.sum() < 20 or not told_apart:
        verdict = "unclear"
    else:
        verdict = "one distribution"
    return SharedDistribution(verdict, common, p_value, effect, ratio, expected, error)


def _whiten(Z: FloatArray) -> FloatArray:
    """The leading principal components, each of variance one."""
    count = max(1, min(_COMPONENTS, Z.shape[1], len(Z) // 5))
    left, size, _ = np.linalg.svd(Z, full_matrices=False)
    count = max(1, min(count, int((size > 1e-8 * size[0]).sum())))
    return np.asarray(left[:, :count] * np.sqrt(len(Z)))


def _energy(Z: FloatArray, positive: BoolArray) -> tuple[float, float]:
    """Energy distance of the classes once the difference of their means is projected out, and its share."""
    step = Z[positive].mean(axis=0) - Z[~positive].mean(axis=0)
    step /= max(float(np.linalg.norm(step)), 1e-300)
    rest = Z - np.outer(Z @ step, step)
    distance = cdist(rest, rest)
    m, n = int(positive.sum()), int((~positive).sum())
    between = distance[np.ix_(positive, ~positive)].mean()
    inside = distance[np.ix_(positive, positive)].sum() / (m * (m - 1))
    outside = distance[np.ix_(~positive, ~positive)].sum() / (n * (n - 1))
    value = float(2 * between - inside - outside)
    return value, value / max(2 * float(between), 1e-300)


def _across(Z: FloatArray, positive: BoolArray, generator: np.random.Generator) -> tuple[float, float]:
    if Z.shape[1] < 2 or positive.sum() < 3:
        return 1.0, 0.0
    rows = np.concatenate(
        [generator.permutation(np.flatnonzero(side))[:_ROWS] for side in (positive, ~positive)]
    )
    Z, labels = Z[rows], positive[rows]
    observed, effect = _energy(Z, labels)
    drawn = [_energy(Z, generator.permutation(labels))[0] for _ in range(_PERMUTATIONS)]
    return (1 + sum(value >= observed for value in drawn)) / (1 + _PERMUTATIONS), effect


def _along(scores: FloatArray, positive: BoolArray) -> tuple[float, float]:
    """log Var₊/Var₋ of the held-out scores and its standard error (by the fourth moments)."""
    parts, error = [], 0.0
    for side in (scores[positive], scores[~positive]):
        centered = side - side.mean()
        variance = max(float((centered**2).mean()), 1e-300)
        error += max(float((centered**4).mean()) / variance**2 - 1.0, 0.5) / len(side)
        parts.append(np.log(variance))
    return float(parts[0] - parts[1]), float(np.sqrt(error))


def _expected_log_ratio(overlap: float, teacher_bias: float) -> float:
    """The same under the model: Var = 1 - R²h(h + b0) for y > -b0, with h = φ(b0)/Φ(b0), and its mirror."""
    density = np.exp(-0.5 * teacher_bias**2) / np.sqrt(2 * np.pi)
    plus, minus = density / ndtr(teacher_bias), density / ndtr(-teacher_bias)
    inside = 1.0 - overlap**2 * plus * (plus + teacher_bias)
    outside = 1.0 - overlap**2 * minus * (minus - teacher_bias)
    return float(np.log(inside / outside))


def _component_overlap(Z: FloatArray, positive: BoolArray, bins: int = 12) -> float:
    """The mean area that the classes' histograms share, component by component."""
    edges = np.quantile(Z, np.linspace(0, 1, bins + 1), axis=0)
    shares = []
    for column, edge in zip(Z.T, edges.T, strict=True):
        inner = edge[1:-1]
        first = np.bincount(np.searchsorted(inner, column[positive]), minlength=bins) / positive.sum()
        second = np.bincount(np.searchsorted(inner, column[~positive]), minlength=bins) / (~positive).sum()
        shares.append(np.minimum(first, second).sum())
    return float(np.mean(shares))
