"""The tabular benchmark: Equipoise's methods beside honest baselines on real imbalanced tables."""

from __future__ import annotations

from equipoise.studies.suite import suite

from ..shared.tabular import SCALE, WHOLE

IMBLEARN = [
    "ecoli", "optical_digits", "satimage", "pen_digits", "abalone", "sick_euthyroid", "car_eval_34",
    "yeast_ml8", "coil_2000", "arrhythmia", "solar_flare_m0", "car_eval_4", "mammography", "abalone_19",
]  # fmt: skip
KEEL = [
    "dermatology-6", "glass6", "haberman", "kr-vs-k-three_vs_eleven", "led7digit-0-2-4-5-6-7-8-9_vs_1",
    "page-blocks0", "poker-8-9_vs_6", "vehicle1", "vowel0", "winequality-red-4", "yeast4",
]  # fmt: skip
"""One table a source, with at least 20 samples of the rare class."""


BASELINES = [
    "plain", "class-weighted", "threshold", "class-weighted-threshold", "smote", "undersampling",
    "balanced-forest", "easy-ensemble", "rus-boost",
]  # fmt: skip
OWN = ["smote-corrected", "neural-logit-adjusted", "neural-nenum", "conditional", "autoencoder"]

SPEC = suite(
    "tabular",
    "Equipoise's methods beside honest baselines on real imbalanced tables",
    methods=[*BASELINES, *OWN],
    datasets=["breast_cancer", *IMBLEARN, *(f"keel-{name}" for name in KEEL)],
    **SCALE,
    sizes={"small": {}, "paper": WHOLE},
    differs=(
        "No paper's table. Every method is tuned with the same number of trials on the same inner folds, for "
        "balanced accuracy. Tables are thinned to 800 rows. The conditional cells "
        "are later than the others: they were run again when `tune` and `predict` came to follow one rule, some of "
        "them on a busy core, so that their times say little."
    ),
)
