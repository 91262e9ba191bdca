"""Oversampling with provenance and a gate, and the class-preserving auto-encoder. Runs in about half a minute.

python examples/oversampling.py [folder for the report and the sheet of decoded digits]
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from equipoise.classifiers import AutoencoderClassifier
from equipoise.datasets import make_imbalanced
from equipoise.metrics import balanced_accuracy
from equipoise.oversampling import AMDO, AutoencoderOversampler, LowQualityWarning

X, y = load_digits(return_X_y=True)
train_X, test_X, train_y, test_y = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
train_X, train_y = make_imbalanced(train_X, train_y, profile="exponential", ratio=8, random_state=0)
print("training digits a class:", np.bincount(train_y).tolist())

# Before anything is made: how much would it be?
print("AMDO would make", AMDO(random_state=0).preflight(train_X, train_y))

# The one-stage method: the latent is oversampled while the classifier learns, nothing is decoded to predict.
clf = AutoencoderClassifier(image_shape=(8, 8), latent=16, epochs=20, batch_size=64, lr=4e-3, random_state=0)
clf.fit(train_X, train_y)
print(f"ACSA of the auto-encoder's classifier: {balanced_accuracy(test_y, clf.predict(test_X)):.3f}")

# The same method as a sampler: rows to look at, each with its parents, and the gate's opinion of them.
sampler = AutoencoderOversampler(
    image_shape=(8, 8), latent=16, epochs=40, batch_size=64, lr=4e-3, random_state=0
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", LowQualityWarning)  # the verdicts are printed below
    rows, labels = sampler.fit_resample(train_X, train_y)
print(
    sampler.quality_[["label", "n_real", "n_synthetic", "density", "relative_coverage"]].round(2).to_string()
)
print(sampler.provenance_.to_frame().tail(3).to_string())

if len(sys.argv) > 1:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    clf.report(test_X, test_y).write(folder, "latent")
    made = sampler.provenance_.synthetic
    figure, panels = plt.subplots(9, 12, figsize=(6, 4.8))
    for code in range(1, 10):
        own, new = rows[(labels == code) & ~made][:4], rows[(labels == code) & made][:8]
        for panel, image in zip(panels[code - 1], [*own, *new], strict=True):
            panel.imshow(image.reshape(8, 8), cmap="gray_r")
            panel.axis("off")
    figure.suptitle("four real digits, then eight decoded ones", fontsize=9)
    figure.savefig(folder / "digits.png", dpi=120)
    print("wrote", folder)
