"""A real but small study, about half a minute on two cores, that needs no data file."""

from __future__ import annotations

from equipoise.studies.suite import suite

SPEC = suite(
    "smoke",
    "Weights, thresholds, resampling and balanced ensembles on embedded data",
    methods=["plain", "class-weighted", "threshold", "class-weighted-threshold", "smote", "balanced-forest"],
    learners=["logistic", "boosting"],
    datasets=["breast_cancer"],
    metrics=["balanced_accuracy", "average_precision", "log_loss"],
    folds=3,
    seeds=[0],
    trials=3,
    inner_folds=2,
    sizes={
        "tiny": {"folds": 2, "trials": 1, "learner": ["logistic"]},
        "small": {},
        "paper": {"seed": [0, 1, 2], "trials": 20},
    },
    differs="No paper's table: a check that a study runs from end to end.",
)
