"""The honest baselines on every two-class table at hand, imbalanced-learn's, KEEL's and MVTec's features."""

from __future__ import annotations

from typing import Any

from equipoise.studies.data import available_datasets, is_multiclass
from equipoise.studies.suite import suite

from ..shared.tabular import SCALE, WHOLE

TOO_FEW = {
    "abalone-21_vs_8", "abalone-3_vs_11", "cleveland-0_vs_4", "ecoli-0-1-3-7_vs_2-6", "glass-0-1-4-6_vs_2",
    "glass-0-1-5_vs_2", "glass-0-1-6_vs_2", "glass-0-1-6_vs_5", "glass-0-4_vs_5", "glass-0-6_vs_5", "glass2",
    "glass4", "glass5", "lymphography-normal-fibrosis", "poker-8_vs_6", "poker-9_vs_7", "shuttle-6_vs_2-3",
    "shuttle-c2-vs-c4", "winequality-red-3_vs_5", "winequality-red-8_vs_6", "winequality-red-8_vs_6-7",
    "winequality-white-9_vs_4", "zoo-3",
}  # fmt: skip
"""KEEL's tables with fewer than 20 rows of the rare class, which nested folds would cut to two or three."""


def _tables() -> list[str]:
    return [
        name
        for name in available_datasets()
        if not is_multiclass(name) and name.removeprefix("keel-") not in TOO_FEW
    ]


def _small() -> dict[str, Any]:
    return {"dataset": _tables()}


def _paper() -> dict[str, Any]:
    return {"dataset": _tables(), **WHOLE}


SPEC = suite(
    "tabular-all",
    "Honest baselines on every imbalanced table at hand",
    methods=["plain", "class-weighted-threshold", "smote", "balanced-forest", "easy-ensemble", "rus-boost"],
    datasets=["breast_cancer"],
    **SCALE,
    sizes={"tiny": {}, "small": _small, "paper": _paper},
    differs=(
        "No paper's table. Many of KEEL's tables are cut from one source (yeast, ecoli, glass …), so the tests "
        "over tables count some evidence more than once: the study tabular has one table a source."
    ),
)
