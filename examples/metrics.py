"""Measure a classifier of rare events: metrics with intervals, an operating point, costs, and a fair comparison.

Run: python examples/metrics.py
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split

from equipoise import metrics
from equipoise.metrics import significance


def main() -> None:
    X, y = make_classification(3000, n_informative=4, weights=[0.95], class_sep=0.8, random_state=0)
    X_fit, X_rest, y_fit, y_rest = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    X_tune, X_test, y_tune, y_test = train_test_split(
        X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0
    )
    model = LogisticRegression().fit(X_fit, y_fit)
    proba = model.predict_proba(X_test)

    names = ["average_precision", "auc", "brier", "balanced_accuracy", "precision_at_recall(min_recall=0.8)"]
    print("Metrics with 95 % bootstrap intervals\n")
    print(metrics.interval_table(y_test, proba, names, random_state=0).round(3).to_string())

    point = metrics.best_threshold(y_tune, model.predict_proba(X_tune)[:, 1], "f_beta")
    called = (proba[:, 1] >= point.threshold).astype(int)
    print(f"\nThreshold {point.threshold:.3f}, chosen for F1 on tuning data; on test data, by class\n")
    print(metrics.per_class(y_test, called).round(3).to_string())

    costs = [[0, 1], [20, 0]]  # a miss costs twenty false alarms
    cheap = metrics.cheapest_decision(proba, costs)
    print("\nMean cost of the most probable class, and of the cheapest decision")
    for decision in (proba.argmax(axis=1), cheap):
        print(f"  {metrics.expected_cost(y_test, decision, cost_matrix=costs):.3f}")

    scores = compare()
    result = significance.pairwise(scores, correction="shaffer")
    print(f"\nFriedman p = {significance.friedman(scores).f_p_value:.2g}; pairs after Shaffer\n")
    print(result.pairs.round(4).to_string(index=False))
    print("\nDo not differ:", significance.rank_groups(result))


def compare() -> pd.DataFrame:
    """Balanced accuracy of three treatments on eight data sets."""
    treatments = {
        "plain": LogisticRegression(),
        "weak penalty": LogisticRegression(C=100),
        "class weights": LogisticRegression(class_weight="balanced"),
    }
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    score = metrics.get_metric("balanced_accuracy").scorer
    rows = []
    for seed in range(8):
        X, y = make_classification(400, weights=[0.9], class_sep=0.7, random_state=seed)
        rows.append(
            {k: np.mean(cross_val_score(m, X, y, scoring=score, cv=folds)) for k, m in treatments.items()}
        )
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main()
