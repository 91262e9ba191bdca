"""Is a difference one? Tests over data sets, their corrections, Bayesian comparisons, effect sizes, diagrams.

Scores come as a table with a row per data set and a column per method, a ``DataFrame`` or an array.
"""

from __future__ import annotations

from equipoise.metrics.significance.bayes import Posterior, bayesian_signed_rank, correlated_t
from equipoise.metrics.significance.effects import (
    cliffs_delta,
    cohens_d,
    effect_sizes,
    rank_biserial,
    vargha_delaney,
    win_tie_loss,
)
from equipoise.metrics.significance.posthoc import (
    Comparison,
    critical_difference,
    holm,
    pairwise,
    rank_groups,
    shaffer,
    versus_control,
)
from equipoise.metrics.significance.ranks import Friedman, average_ranks, friedman

__all__ = [
    "Comparison",
    "Friedman",
    "Posterior",
    "average_ranks",
    "bayesian_signed_rank",
    "cliffs_delta",
    "cohens_d",
    "correlated_t",
    "critical_difference",
    "effect_sizes",
    "friedman",
    "holm",
    "pairwise",
    "rank_biserial",
    "rank_groups",
    "shaffer",
    "vargha_delaney",
    "versus_control",
    "win_tie_loss",
]
