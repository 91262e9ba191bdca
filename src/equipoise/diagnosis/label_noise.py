"""Suspected label noise: rows that a cross-validated model is confident belong elsewhere."""

from __future__ import annotations

import numpy as np

from equipoise.diagnosis._contract import Answer, Sample

ORDER = 80
USUAL_SECONDS = 1
QUESTION = "Are some labels wrong?"
MOST = 6000
_LISTED = 20
_FAR = 2.75  # deviations below the usual score of a label; 2 finds more but flags 8 % of some clean classes
SURE = 0.7  # no more confidence than this is asked for, however clear the classes are


def suspects(y: np.ndarray, proba: np.ndarray) -> np.ndarray:
    """Rows whose probability of another class is as high as that class's own rows have, and above their label's.

    References: Northcutt, Jiang & Chuang (2021), Confident learning.
    """
    n_classes = proba.shape[1]
    usual = np.array([proba[y == c, c].mean() if (y == c).any() else 1.0 for c in range(n_classes)])
    confident = proba >= np.minimum(usual, SURE)
    confident[np.arange(len(y)), y] = False
    best = np.where(confident, proba, -1).argmax(axis=1)
    return confident.any(axis=1) & (proba[np.arange(len(y)), best] > proba[np.arange(len(y)), y])


def outlying(y: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Rows whose score for their own label lies far below what the rows of that label usually have.

    Classes that overlap have low scores without any error. What is usual is therefore read from the upper half of
    each class's scores, where wrong labels are not found: its median, and the distance from there to the ninth
    decile, which is 1.28 standard deviations of a normal distribution.
    """
    low = np.zeros(len(y), dtype=bool)
    for code in np.unique(y):
        mine = y == code
        middle, upper = np.quantile(score[mine], [0.5, 0.9])
        low[mine] = score[mine] < middle - _FAR * (upper - middle) / 1.2816
    return low


def ask(sample: Sample) -> Answer:
    """Rows that two models place elsewhere, and far from where the other rows of their label lie."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.neighbors import KNeighborsClassifier

    rows = sample.rows(MOST, "noise", least=200)
    X, y = sample.encoded(rows), sample.y[rows]
    if np.bincount(y, minlength=len(sample.classes)).min() < 5:
        raise ValueError("it needs at least 5 rows of every class")
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    linear = LogisticRegression(C=0.1, class_weight="balanced", max_iter=200)
    proba = cross_val_predict(linear, X, y, cv=folds, method="predict_proba")
    near = cross_val_predict(
        KNeighborsClassifier(min(15, len(y) // 10 + 1)), X, y, cv=folds, method="predict_proba"
    )
    every = np.arange(len(y))
    others = proba.copy()
    others[every, y] = 0
    score = np.log(np.maximum(proba[every, y], 1e-12)) - np.log(np.maximum(others.max(axis=1), 1e-12))
    found = suspects(y, proba) & suspects(y, near) & outlying(y, score)
    by_class = np.array([found[y == c].mean() for c in range(len(sample.classes))])
    rate, rare = float(found.mean()), float(by_class[sample.rare])
    values = {
        "suspects": rows[found][:1000],
        "asked": len(y),
        "found": int(found.sum()),
        "share": rate,
        "by_class": by_class,
    }
    worst = np.argsort(proba[every, y] + ~found)[: min(_LISTED, int(found.sum()))]
    shown = {"rows": rows[worst], "labels": y[worst], "looks_like": proba[worst].argmax(axis=1),
             "probability": proba[worst, y[worst]]}  # fmt: skip
    level = "good" if not found.any() else "warning" if rare > 0.1 or rate > 0.05 else "note"
    return Answer(level, values, shown)
