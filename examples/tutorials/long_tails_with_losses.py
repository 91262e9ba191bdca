"""
Long tails with losses
======================

Ten classes of digits, from 120 training images down to 6. Cross-entropy learns the head and gives up on the
tail. You will train one small network with four losses and see what each does to the recall of every class.
"""

# %%
# The data
# --------

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from equipoise.classifiers import NeuralClassifier
from equipoise.datasets import make_imbalanced
from equipoise.metrics import balanced_accuracy, per_class
from equipoise.report import new_axes
from equipoise.theory.effective_number import effective_number_weights
from equipoise.training import DeferredReweighting

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.3, stratify=y, random_state=0)
X, y = make_imbalanced(X, y, profile="exponential", ratio=20, head=120, random_state=0)
counts = np.bincount(y)
print(dict(enumerate(counts.tolist())))

# %%
# One network, four losses
# ------------------------
# A name is enough: the class counts that a loss needs come from the labels. The last entry is LDAM with
# deferred weights: margins for rare classes from the start, weights by effective numbers for the last fifth
# of the training.

settings = {
    "module_params": {"hidden": (64,)},
    "epochs": 40,
    "lr": 0.005,
    "random_state": 0,
    "verbose": False,
}
weights = effective_number_weights(counts, beta=0.999)
classifiers = {
    "cross-entropy": NeuralClassifier(loss="ce", **settings),
    "class-balanced": NeuralClassifier(loss="cb", **settings),
    "logit adjustment": NeuralClassifier(loss="la", **settings),
    "LDAM, deferred weights": NeuralClassifier(
        loss="ldam", callbacks=[DeferredReweighting(weights)], **settings
    ),
}
recalls = {}
for name, classifier in classifiers.items():
    called = classifier.fit(X, y).predict(X_test)
    recalls[name] = per_class(y_test, called)["recall"]
    print(f"{name:24} balanced accuracy {balanced_accuracy(y_test, called):.3f}")

# %%
# What moved
# ----------

figure, axes = new_axes(7, 4)
for shift, (name, values) in enumerate(recalls.items()):
    axes.bar(np.arange(10) + 0.2 * (shift - 1.5), values, 0.2, label=name)
axes.set(ylabel="recall", ylim=(0, 1.05), xticks=range(10))
axes.set_xticklabels([f"{digit}\n{count}" for digit, count in enumerate(counts)])
axes.set_xlabel("digit and number of training images")
axes.legend(loc="lower left", fontsize=8)

# %%
# One split of one small set says little about which loss is best; the page :doc:`/how-to/losses` has the
# studies with several draws. What every loss here shares is that the probabilities stay honest: each writes
# down the class prior that it trained for, and ``predict_proba`` answers under the prior of the data.

adjusted = classifiers["logit adjustment"]
print("prior of the data    ", adjusted.data_prior_.round(3))
print("prior it trained for ", adjusted.training_prior_.round(3))
print("mean probabilities   ", adjusted.predict_proba(X).mean(axis=0).round(3))
