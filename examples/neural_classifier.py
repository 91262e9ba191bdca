"""A network on imbalanced data: the decision that balancing was for, and probabilities that still tell the truth.

Run: python examples/neural_classifier.py (a few seconds)
"""

from __future__ import annotations

import tempfile

import numpy as np
from imblearn.over_sampling import SMOTE
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, brier_score_loss
from sklearn.model_selection import train_test_split

from equipoise.classifiers import NeuralClassifier, ResampledClassifier

X, y = make_classification(4000, 12, n_informative=6, weights=[0.93], class_sep=0.9, random_state=0)
X, X_test, y, y_test = train_test_split(X, y, stratify=y, test_size=0.5, random_state=0)
network = {"module_params": {"hidden": (32,)}, "epochs": 30, "lr": 0.005, "random_state": 0}

classifiers = {
    "network, plain": NeuralClassifier(**network),
    "network, balanced batches": NeuralClassifier(sampler="balanced", **network),
    "network, logit-adjusted": NeuralClassifier(loss="la", **network),
    "logistic, SMOTE": ResampledClassifier(LogisticRegression(), SMOTE(random_state=0)),
}
print(
    f"{'':27}balanced accuracy   Brier, raw   Brier, data's prior   mean probability (true {y_test.mean():.3f})"
)
for name, clf in classifiers.items():
    clf.fit(X, y)
    raw, honest = (clf.predict_proba(X_test, prior=prior)[:, 1] for prior in ("train", "data"))
    scores = (
        balanced_accuracy_score(y_test, clf.predict(X_test)),
        *(brier_score_loss(y_test, p) for p in (raw, honest)),
    )
    print(f"{name:27}{scores[0]:17.3f}{scores[1]:13.4f}{scores[2]:22.4f}{honest.mean():19.3f}")

balanced = classifiers["network, balanced batches"]
print(balanced.history_.tail(1).round(5).to_string(index=False))
with tempfile.TemporaryDirectory() as folder:
    balanced.save(f"{folder}/model")
    again = NeuralClassifier.load(f"{folder}/model")
    assert np.array_equal(again.predict_proba(X_test), balanced.predict_proba(X_test))
print(
    "Deployed where a quarter is positive:",
    balanced.predict_proba(X_test[:3], prior=[0.75, 0.25])[:, 1].round(3),
)
