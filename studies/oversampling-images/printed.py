"""What Mondal et al. print of images (Tables 1, 10, 12, 14, 15), and Shaffer's test of it (Table 2)."""

from __future__ import annotations

import pandas as pd

METHODS = ("ours", "DeepSMOTE", "GAMO", "BAGAN", "DGC")
CLASSICAL = ("SMOTE", "AMDO", "MC-CCR", "MC-RBO")
_MEASURES = ("acsa", "macro_f1", "g_mean")
_TABLES = {  # percent; a row a measure, in the order of METHODS and CLASSICAL
    ("mnist", "balanced"): (
        (96.79, 92.60, 94.97, 92.76, 94.60, 87.98, 88.34, 90.83, 91.28),
        (96.78, 92.44, 94.90, 92.62, 94.53, 85.02, 87.28, 91.22, 92.49),
        (98.20, 95.83, 97.19, 95.92, 96.90, 89.99, 91.03, 93.18, 94.62),
    ),
    ("mnist", "imbalanced"): (
        (96.75, 93.30, 95.38, 93.26, 94.89, 81.48, 84.29, 86.19, 87.25),
        (94.74, 94.71, 96.10, 94.59, 94.61, 82.44, 84.88, 86.46, 88.69),
        (98.29, 96.51, 97.60, 96.67, 97.26, 83.99, 88.73, 92.04, 94.46),
    ),
    ("fashion-mnist", "balanced"): (
        (84.79, 82.78, 83.29, 79.93, 82.34, 70.58, 72.98, 75.78, 76.91),
        (84.30, 82.11, 82.63, 79.23, 81.48, 68.06, 71.53, 74.39, 75.92),
        (91.30, 90.11, 90.41, 88.40, 89.02, 76.39, 79.36, 81.04, 82.14),
    ),
    ("fashion-mnist", "imbalanced"): (
        (86.24, 82.81, 81.85, 80.56, 81.78, 67.94, 74.90, 78.58, 80.06),
        (83.38, 82.12, 80.47, 81.79, 80.97, 67.12, 75.39, 79.03, 80.14),
        (92.30, 90.44, 89.93, 89.20, 89.43, 74.84, 80.89, 86.17, 88.02),
    ),
    ("cifar10", "balanced"): (
        (57.94, 41.51, 45.65, 43.35, 41.39, 27.93, 31.85, 33.48, 39.17),
        (57.13, 38.51, 43.05, 40.40, 39.75, 25.10, 30.04, 32.88, 40.37),
        (74.31, 62.30, 65.49, 63.73, 60.49, 42.81, 48.19, 51.18, 59.29),
    ),
    ("cifar10", "imbalanced"): (
        (56.63, 42.46, 45.99, 43.47, 39.99, 28.02, 31.19, 32.83, 33.01),
        (45.06, 41.16, 44.52, 42.19, 37.12, 29.58, 32.44, 33.91, 35.83),
        (73.84, 63.79, 66.58, 64.60, 59.67, 50.08, 53.99, 56.68, 59.15),
    ),
}
_AUPRC = {  # Table 12, which names no test set; shown beside the balanced one
    "mnist": {"ours": 99.71, "DeepSMOTE": 98.62, "GAMO": 98.02},
    "fashion-mnist": {"ours": 92.33, "DeepSMOTE": 88.21, "GAMO": 89.06},
    "cifar10": {"ours": 63.89, "DeepSMOTE": 44.77, "GAMO": 50.04},
}
_ACSA_ELSEWHERE = {  # sets that no study here runs: the balanced test set, then the imbalanced one
    "SVHN": ((78.66, 70.67, 74.60, 70.19, 68.91), (79.49, 71.34, 75.18, 71.19, 69.28)),
    "CelebA": ((74.65, 62.70, 66.80, 66.22, 67.55), (76.85, 63.28, 66.80, 65.91, 65.03)),
    "CIFAR-100": ((26.41, 23.33, 12.68, 22.99, 24.64), (25.86, 23.05, 12.14, 23.09, 23.41)),
    "ImageNet-100": ((25.15, 12.66, 7.90, 17.16, 8.82), (26.21, 12.85, 8.56, 15.55, 9.55)),
}
TABLE_2 = {"DeepSMOTE": 5.15e-14, "GAMO": 1.27e-6, "DGC": 7.01e-12, "BAGAN": 2.91e-14}
PARTS: dict[str, float] = {  # Table 4, ACSA on CIFAR-10; the paper's own method has a learned mixer
    "ours": 54.51,
    "ours, learned mixer": 57.94,
    "ours, no classifier": 20.58,
    "ours, no mixes": 35.51,
    "ours, no decoder": 52.16,
    "ours, Beta(2, 2)": 52.35,
}
LATENTS = {  # Table 5, ACSA
    "fashion-mnist": {"ours, m = 16": 85.70, "ours, m = 32": 85.82, "ours, m = 128": 86.04},
    "cifar10": {"ours, m = 128": 57.20},
}


def printed(dataset: str, test: str, method: str) -> dict[str, float]:
    """The paper's measures of a method on a test set, in percent; empty where it has none."""
    name = method.removeprefix("one-stage ")
    if (dataset, test) not in _TABLES or name not in METHODS + CLASSICAL:
        return {}
    place = (METHODS + CLASSICAL).index(name)
    found = {measure: row[place] for measure, row in zip(_MEASURES, _TABLES[dataset, test], strict=True)}
    if test == "balanced" and name in _AUPRC[dataset]:
        found["auprc"] = _AUPRC[dataset][name]
    return found


PAPER = {
    dataset: {name: printed(dataset, "balanced", name) for name in METHODS + CLASSICAL} for dataset in _AUPRC
}


def printed_acsa() -> pd.DataFrame:
    """A row a data set and test set (0 balanced, 1 imbalanced), a column a method."""
    tests = ("balanced", "imbalanced")
    rows = {
        (name, at): _TABLES[name, test][0][: len(METHODS)] for name in _AUPRC for at, test in enumerate(tests)
    }
    rows |= {(name, at): row for name, both in _ACSA_ELSEWHERE.items() for at, row in enumerate(both)}
    return pd.DataFrame(rows, index=METHODS).T


def shaffer(scores: pd.DataFrame) -> pd.Series[float]:
    """The adjusted p-value of each rival against the paper's method."""
    from equipoise.metrics.significance import pairwise

    adjusted: pd.Series[float] = pairwise(scores, correction="shaffer").adjusted.loc["ours"]
    return adjusted.drop("ours")
