"""The scale of both tabular studies."""

from __future__ import annotations

from typing import Any

METRICS = ["balanced_accuracy", "average_precision", "auc", "log_loss"]
SCALE: dict[str, Any] = {
    "learners": ["logistic", "boosting"], "metrics": METRICS, "folds": 3, "seeds": [0], "trials": 5,
    "inner_folds": 2, "max_rows": 800,
}  # fmt: skip
WHOLE = {"folds": 5, "trials": 50, "inner_folds": 3, "max_rows": None}
