"""ACSA as Mondal et al. print it (Tables 1 and 10), and what Shaffer's test makes of it (Table 2)."""

from __future__ import annotations

import pandas as pd

METHODS = ("ours", "DeepSMOTE", "GAMO", "BAGAN", "DGC")
ACSA = {  # percent; the first row of a set is the balanced test set, the second the imbalanced one
    "MNIST": ((96.79, 92.60, 94.97, 92.76, 94.60), (96.75, 93.30, 95.38, 93.26, 94.89)),
    "Fashion-MNIST": ((84.79, 82.78, 83.29, 79.93, 82.34), (86.24, 82.81, 81.85, 80.56, 81.78)),
    "SVHN": ((78.66, 70.67, 74.60, 70.19, 68.91), (79.49, 71.34, 75.18, 71.19, 69.28)),
    "CIFAR-10": ((57.94, 41.51, 45.65, 43.35, 41.39), (56.63, 42.46, 45.99, 43.47, 39.99)),
    "CelebA": ((74.65, 62.70, 66.80, 66.22, 67.55), (76.85, 63.28, 66.80, 65.91, 65.03)),
    "CIFAR-100": ((26.41, 23.33, 12.68, 22.99, 24.64), (25.86, 23.05, 12.14, 23.09, 23.41)),
    "ImageNet-100": ((25.15, 12.66, 7.90, 17.16, 8.82), (26.21, 12.85, 8.56, 15.55, 9.55)),
}
TABLE_2 = {"DeepSMOTE": 5.15e-14, "GAMO": 1.27e-6, "DGC": 7.01e-12, "BAGAN": 2.91e-14}


def printed_acsa() -> pd.DataFrame:
    """A row a data set and test set, a column a method."""
    rows = {(name, test): row for name, both in ACSA.items() for test, row in enumerate(both)}
    return pd.DataFrame(rows, index=METHODS).T


def shaffer(scores: pd.DataFrame) -> pd.Series[float]:
    """The adjusted p-value of each rival against the paper's method."""
    from equipoise.metrics.significance import pairwise

    adjusted: pd.Series[float] = pairwise(scores, correction="shaffer").adjusted.loc["ours"]
    return adjusted.drop("ours")
