"""
A loss that is learned
======================

Part of a loss is learned on thirty balanced samples while the network trains on the rest (Wu and Li; Shu et
al. 2019; Li et al. 2021). What was learned can be looked at.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split

from equipoise.classifiers import MetaClassifier, NeuralClassifier
from equipoise.classifiers.meta_pictures import plot_offset_curve, plot_weight_curve, plot_weights_over_time
from equipoise.datasets import make_imbalanced

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
counts = np.round(100 * 5.0 ** (-np.arange(10) / 9)).astype(int)  # 100 zeros … 20 nines
X, y = make_imbalanced(X, y, counts=counts, random_state=0)
base = NeuralClassifier(
    module_params={"hidden": (32,)},
    optimizer="sgd",
    lr=0.1,
    epochs=30,
    batch_size=100,
    random_state=0,
    verbose=False,
)


def show(name, classifier):
    """The balanced accuracy of a classifier on the test digits."""
    score = balanced_accuracy_score(y_test, classifier.predict(X_test))
    print(f"{name:14} balanced accuracy {score:.3f}")


show("cross-entropy", base.fit(X, y))
fitted = {}
for method in ("meta-enum", "metasaug", "mwn"):
    fitted[method] = MetaClassifier(method, meta_set=3, hold_out=False, estimator=base, random_state=0)
    show(method, fitted[method].fit(X, y))

print("\nMean pull on the classes in the last epoch of Meta-ENum (cross-entropy: 1):")
print(fitted["meta-enum"].weights_over_time().iloc[-1].round(2).to_string())

# %%
# The offset h that Meta-ENum learned, the weights it gave to the classes over time, and the weight that
# Meta-Weight-Net gives to a sample by its loss.

offset = plot_offset_curve(fitted["meta-enum"])
over_time = plot_weights_over_time(fitted["meta-enum"])
by_loss = plot_weight_curve(fitted["mwn"])
