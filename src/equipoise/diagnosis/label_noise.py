"""Suspected label noise: rows that a cross-validated model is confident belong elsewhere."""

from __future__ import annotations

import numpy as np

from equipoise.diagnosis._contract import Finding, Sample
from equipoise.report import Details, Table

ORDER = 80
USUAL_SECONDS = 2
QUESTION = "Are some labels wrong?"
MOST = 6000
LISTED = 20
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


def ask(sample: Sample) -> Finding:
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
    found = suspects(y, proba) & suspects(y, near)  # two models of different kinds must agree
    share = np.array([found[y == c].mean() for c in range(len(sample.classes))])
    number, rate = int(found.sum()), float(found.mean())
    values = {"suspects": rows[found][:1000], "share": rate, "by_class": share}
    rare = share[sample.rare]
    if not number:
        return Finding(
            "label_noise", QUESTION, "No label looks wrong to two different models.", "good", values
        )
    answer = (
        f"{number:,} of {len(y):,} rows ({rate:.1%}) look mislabeled to two different models, among them "
        f"{rare:.0%} of the {sample.label(sample.rare)} rows. Look at those listed before trusting small "
        f"differences."
    )
    worst = np.argsort(proba[np.arange(len(y)), y] + ~found)[: min(LISTED, number)]
    columns = ["row", "label", "looks like", "probability of its label"]
    listed = [
        [int(rows[i]), str(sample.classes[y[i]]), str(sample.classes[int(proba[i].argmax())]), proba[i, y[i]]]
        for i in worst
    ]
    table = Table(
        columns, listed, caption="Rows counted from 0, most suspicious first.", formats={columns[3]: ".3f"}
    )
    level = "warning" if rare > 0.1 or rate > 0.05 else "note"
    return Finding("label_noise", QUESTION, answer, level, values, [Details("Rows to look at", [table])])
