"""
Oversampling with provenance and a gate
=======================================

Every synthetic row knows its parents, and a gate says whether the rows of a class are any good. Then the
class-preserving auto-encoder of Mondal et al., as a classifier and as a sampler.
"""

import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from equipoise.classifiers import AutoencoderClassifier
from equipoise.datasets import make_imbalanced
from equipoise.metrics import balanced_accuracy
from equipoise.oversampling import AMDO, AutoencoderOversampler, LowQualityWarning
from equipoise.report import new_axes

X, y = load_digits(return_X_y=True)
train_X, test_X, train_y, test_y = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
train_X, train_y = make_imbalanced(train_X, train_y, profile="exponential", ratio=8, random_state=0)
print("training digits a class:", np.bincount(train_y).tolist())

# %%
# Before anything is made: how much would it be?
print("AMDO would make", AMDO(random_state=0).preflight(train_X, train_y))

# %%
# The one-stage method: the latent is oversampled while the classifier learns, nothing is decoded to predict.
clf = AutoencoderClassifier(image_shape=(8, 8), latent=16, epochs=20, batch_size=64, lr=4e-3, random_state=0)
clf.fit(train_X, train_y)
print(f"ACSA of the auto-encoder's classifier: {balanced_accuracy(test_y, clf.predict(test_X)):.3f}")

# %%
# The same method as a sampler: rows to look at, each with its parents, and the gate's opinion of them.
sampler = AutoencoderOversampler(
    image_shape=(8, 8), latent=16, epochs=40, batch_size=64, lr=4e-3, random_state=0
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", LowQualityWarning)  # the verdicts are printed below
    rows, labels = sampler.fit_resample(train_X, train_y)
columns = ["label", "n_real", "n_synthetic", "density", "relative_coverage"]
print(sampler.quality_[columns].round(2).to_string())
print(sampler.provenance_.to_frame().tail(3).to_string())

# %%
# Four real digits of each class, then eight decoded ones.

made = sampler.provenance_.synthetic
figure, panels = new_axes(6, 4.8, 9, 12)
for code in range(1, 10):
    own, new = rows[(labels == code) & ~made][:4], rows[(labels == code) & made][:8]
    for panel, image in zip(panels[12 * (code - 1) : 12 * code], [*own, *new], strict=True):
        panel.imshow(image.reshape(8, 8), cmap="gray_r")
        panel.axis("off")
