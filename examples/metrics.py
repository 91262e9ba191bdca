"""
Scores with intervals, an operating point, and a fair comparison
================================================================

How good is a classifier of rare events, how sure is that, and is one better than another?
"""

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split

from equipoise import metrics
from equipoise.metrics import significance
from equipoise.report import plot_critical_difference

X, y = make_classification(3000, n_informative=4, weights=[0.95], class_sep=0.8, random_state=0)
X_fit, X_rest, y_fit, y_rest = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
X_tune, X_test, y_tune, y_test = train_test_split(
    X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0
)
model = LogisticRegression().fit(X_fit, y_fit)
proba = model.predict_proba(X_test)

# %%
# Metrics with 95 % bootstrap intervals.

names = ["average_precision", "auc", "brier", "balanced_accuracy", "precision_at_recall(min_recall=0.8)"]
metrics.interval_table(y_test, proba, names, random_state=0).round(3)

# %%
# A threshold that is chosen for F1 on tuning data, judged by class on test data.

point = metrics.best_threshold(y_tune, model.predict_proba(X_tune)[:, 1], "f_beta")
called = (proba[:, 1] >= point.threshold).astype(int)
metrics.per_class(y_test, called).round(3)

# %%
# The mean cost of the most probable class and of the cheapest decision, where a miss costs twenty false
# alarms.

costs = [[0, 1], [20, 0]]
for decision in (proba.argmax(axis=1), metrics.cheapest_decision(proba, costs)):
    print(f"{metrics.expected_cost(y_test, decision, cost_matrix=costs):.3f}")

# %%
# Three treatments on eight data sets. Friedman's test asks whether they differ at all, Shaffer's correction
# which pairs do; the bar of the diagram joins those that cannot be told apart.

treatments = {
    "plain": LogisticRegression(),
    "weak penalty": LogisticRegression(C=100),
    "class weights": LogisticRegression(class_weight="balanced"),
}
folds = StratifiedKFold(5, shuffle=True, random_state=0)
score = metrics.get_metric("balanced_accuracy").scorer
scores = []
for seed in range(8):
    X, y = make_classification(400, weights=[0.9], class_sep=0.7, random_state=seed)
    scores.append(
        {k: np.mean(cross_val_score(m, X, y, scoring=score, cv=folds)) for k, m in treatments.items()}
    )
result = significance.pairwise(pd.DataFrame(scores), correction="shaffer")
print(f"Friedman p = {significance.friedman(pd.DataFrame(scores)).f_p_value:.2g}")
print(result.pairs.round(4).to_string(index=False))
diagram = plot_critical_difference(result)
