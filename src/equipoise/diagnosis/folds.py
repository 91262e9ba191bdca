"""Positives per fold: how fine can a score be?"""

from __future__ import annotations

import numpy as np

from equipoise.diagnosis._contract import Answer, Sample

ORDER = 70
QUESTION = "Are there enough rare rows to measure anything?"


def ask(sample: Sample) -> Answer:
    """Rare rows in each of at most five folds, and the standard error of a recall of 0.8 over all of them."""
    count = int(sample.counts[sample.rare])
    folds = min(max(count, 2), 5)
    per_fold = count // folds
    error = float(np.sqrt(0.8 * 0.2 / count))
    level = "warning" if per_fold < 10 else "note" if per_fold < 50 else "good"
    return Answer(level, {"folds": folds, "per_fold": per_fold, "recall_error": error})
