"""Positives per fold: how fine can a score be?"""

from __future__ import annotations

import numpy as np

from equipoise.diagnosis._contract import Finding, Sample

ORDER = 70
QUESTION = "Are there enough rare rows to measure anything?"


def ask(sample: Sample) -> Finding:
    count = int(sample.counts[sample.rare])
    per_fold = count // 5
    # The standard error of a recall of 0.8 measured on all rare rows, each predicted once.
    error = float(np.sqrt(0.8 * 0.2 / count))
    step = 1 / max(per_fold, 1)
    answer = (
        f"With 5 folds each test fold has about {per_fold} of {sample.label(sample.rare)}, so that a "
        f"recall moves in "
        f"steps of {step:.2g} there; over all folds a recall of 80 % is known to ±{1.96 * error:.1%}."
    )
    if per_fold < 10:
        answer += " Smaller differences between treatments cannot be seen: repeat the folds, or collect more."
    level = "warning" if per_fold < 10 else "note" if per_fold < 50 else "good"
    return Finding("folds", QUESTION, answer, level, {"per_fold": per_fold, "recall_error": error})
