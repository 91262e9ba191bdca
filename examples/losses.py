"""
Every loss of the family on one problem
=======================================

The recall of the rare class, and the prior that each loss trains the posterior to.
"""

from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.model_selection import train_test_split

from equipoise.classifiers import NeuralClassifier
from equipoise.losses import available_losses

X, y = make_classification(
    1500, 10, n_informative=6, n_classes=3, weights=[0.85, 0.12], class_sep=1.2, random_state=0
)
X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
print(f"{'loss':22} balanced accuracy  rarest recall  trained prior")
for name in available_losses():
    classifier = NeuralClassifier(
        loss=name, module_params={"hidden": (32,)}, epochs=8, lr=0.01, random_state=0, verbose=False
    ).fit(X, y)
    guess = classifier.predict(X_test)
    rare = recall_score(y_test, guess, labels=[2], average="macro")
    prior = " ".join(f"{p:.2f}" for p in classifier.training_prior_)
    print(f"{name:22} {balanced_accuracy_score(y_test, guess):17.3f}  {rare:13.3f}  {prior}")
