"""Counts and ratio, with intervals."""

from __future__ import annotations

import numpy as np
from scipy import stats

from equipoise.diagnosis._contract import Answer, Sample

ORDER = 0
QUESTION = "How rare is the rarest class?"
_FEW = 50


def share_interval(count: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share.

    >>> low, high = share_interval(5, 100)
    >>> round(low, 3), round(high, 3)
    (0.022, 0.112)
    """
    found = stats.binomtest(count, total).proportion_ci(level, method="wilson")
    return float(found.low), float(found.high)


def ask(sample: Sample) -> Answer:
    """The share of the rarest class and the ratio to the commonest, with intervals."""
    counts, total = sample.counts, int(sample.counts.sum())
    rare, common = int(counts[sample.rare]), int(counts.max())
    ratio = common / rare
    # log ratio of two Poisson counts has variance 1/a + 1/b
    reach = float(np.exp(1.96 * np.sqrt(1 / rare + 1 / common)))
    values = {
        "counts": counts, "share": rare / total, "share_interval": share_interval(rare, total),
        "ratio": ratio, "ratio_interval": (ratio / reach, ratio * reach), "few": rare < _FEW,
    }  # fmt: skip
    return Answer("warning" if rare < _FEW else "note", values)
