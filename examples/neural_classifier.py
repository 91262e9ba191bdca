"""
Balanced decisions and honest probabilities
===========================================

Balancing moves the decision to where rare classes are found, and spoils the probabilities. Equipoise writes
down the prior that was trained and corrects for it.
"""

import tempfile

import numpy as np
from imblearn.over_sampling import SMOTE
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, brier_score_loss
from sklearn.model_selection import train_test_split

from equipoise.classifiers import NeuralClassifier, ResampledClassifier
from equipoise.report import new_axes

X, y = make_classification(4000, 12, n_informative=6, weights=[0.93], class_sep=0.9, random_state=0)
X, X_test, y, y_test = train_test_split(X, y, stratify=y, test_size=0.5, random_state=0)
network = {"module_params": {"hidden": (32,)}, "epochs": 30, "lr": 0.005, "random_state": 0, "verbose": False}

classifiers = {
    "network, plain": NeuralClassifier(**network),
    "network, balanced batches": NeuralClassifier(sampler="balanced", **network),
    "network, logit-adjusted": NeuralClassifier(loss="la", **network),
    "logistic, SMOTE": ResampledClassifier(LogisticRegression(), SMOTE(random_state=0)),
}
print(f"{'':27}balanced accuracy   Brier, raw   Brier, data's prior   (true share {y_test.mean():.3f})")
for name, clf in classifiers.items():
    clf.fit(X, y)
    raw, honest = (clf.predict_proba(X_test, prior=prior)[:, 1] for prior in ("train", "data"))
    accuracy = balanced_accuracy_score(y_test, clf.predict(X_test))
    briers = [brier_score_loss(y_test, p) for p in (raw, honest)]
    print(f"{name:27}{accuracy:17.3f}{briers[0]:13.4f}{briers[1]:22.4f}{honest.mean():19.3f}")

# %%
# The network that was trained on balanced batches believes that half of everything is positive. Corrected,
# its probabilities lie near the diagonal.

balanced = classifiers["network, balanced batches"]
figure, axes = new_axes(5, 4)
for prior, name in (("train", "as trained"), ("data", "corrected to the data's prior")):
    share, mean = calibration_curve(y_test, balanced.predict_proba(X_test, prior=prior)[:, 1], n_bins=8)
    axes.plot(mean, share, "o-", label=name)
axes.plot([0, 1], [0, 1], ":", color="0.5")
axes.set(xlabel="mean predicted probability", ylabel="share of positives")
axes.legend()

# %%
# The correction takes any prior, for instance that of the place where the model will be used. A saved model
# answers bit for bit as before.

print("where a quarter is positive:", balanced.predict_proba(X_test[:3], prior=[0.75, 0.25])[:, 1].round(3))
with tempfile.TemporaryDirectory() as folder:
    balanced.save(f"{folder}/model")
    again = NeuralClassifier.load(f"{folder}/model")
    print(np.array_equal(again.predict_proba(X_test), balanced.predict_proba(X_test)))
