"""
Rare defects in images
======================

One part in twenty has a scratch. A missed scratch reaches the customer, so the wish is a recall: *find at
least 80 % of the scratched parts, and be 95 % sure of it*. You will go from a folder of images to a decision
that promises this, see what it costs in false alarms, and look at the parts that were missed.
"""

# %%
# A folder of images
# ------------------
# The images are drawn here; your own need one folder for each class. Every image is a noisy surface of 12 ×
# 12 pixels, and a scratch is a faint line.

import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import equipoise
from equipoise.datasets import read_table
from equipoise.report import new_axes

rng = np.random.default_rng(0)


def surface(scratched):
    """A noisy surface with a gradient of light, and perhaps a scratch."""
    image = rng.normal(0.5, 0.08, (12, 12)) + np.linspace(-0.1, 0.1, 12) * rng.normal()
    if scratched:
        row, slope = rng.uniform(3, 8), rng.uniform(-0.4, 0.4)
        for column in range(2, 11):
            image[int(np.clip(row + slope * column, 0, 11)), column] += 0.3
    return (255 * np.clip(image, 0, 1)).astype(np.uint8)


folder = Path(tempfile.mkdtemp())
for number in range(1200):
    name = "scratched" if number % 20 == 0 else "good"
    (folder / name).mkdir(exist_ok=True)
    Image.fromarray(surface(name == "scratched")).save(folder / name / f"{number:04}.png")
table = read_table(folder, positive="scratched")
print(len(table), "images,", dict(zip(table.classes, table.counts, strict=True)))

# %%
# A promise
# ---------
# ``recall=0.8`` asks for a threshold at which the recall on *new* parts is at least 80 % with 95 %
# confidence. With few positives such a promise needs a margin, so the recall on the held-out rows comes out
# higher than 80 %.

advisor = equipoise.Advisor(
    recall=0.8, treatments=["logistic", "kernel", "extra-trees"], trials=0, random_state=0, verbose=False
)
advisor.fit_table(table)
print(advisor.leaderboard_[["average_precision", "brier"]].round(3))
for name in ("recall", "precision", "alerts"):
    figure = advisor.operating_point_.figures[name]
    print(f"{name:10} {figure.value:.3f}, in a fresh batch {figure.low:.3f} to {figure.high:.3f}")

# %%
# What a higher recall would cost
# -------------------------------
# Another wish needs no training. A wish that the data cannot promise is refused with the reason.

wishes = [0.5, 0.6, 0.7, 0.8, 0.85]
points = [advisor.retuned(recall=wish).operating_point_.figures for wish in wishes]
picture, axes = new_axes(7, 3.5)
axes.plot(wishes, [point["recall"].value for point in points], "o-", label="recall on held-out parts")
axes.plot(wishes, [point["alerts"].value for point in points], "o-", label="share of parts to look at")
axes.plot(wishes, wishes, ":", color="0.5", label="promised recall")
axes.set(xlabel="promised recall", ylim=(0, 1.02))
axes.legend()

# %%
# New parts
# ---------
# Five hundred fresh surfaces, as rows of pixels. The first row of the picture shows scratches that were
# found, the second good parts that were called scratched, the third scratches that were missed.

truth = np.arange(500) % 20 == 0
fresh = np.stack([surface(scratched) for scratched in truth])
called = advisor.predict(fresh.reshape(500, -1) / 255) == "scratched"
print(f"found {called[truth].mean():.0%} of the scratches, called {called.mean():.0%} of the parts")

picture, axes = new_axes(7, 2.8, 3, 8)
kinds = [truth & called, ~truth & called, truth & ~called]
for row, kind in enumerate(kinds):
    for place, index in enumerate(np.flatnonzero(kind)[:8]):
        axes[8 * row + place].imshow(fresh[index], cmap="gray", vmin=0, vmax=255)
for panel in axes:
    panel.axis("off")

# %%
# For larger images a network sees more than single pixels do:
# :class:`~equipoise.classifiers.AutoencoderClassifier` and :class:`~equipoise.classifiers.NeuralClassifier`
# take images and any backbone.
