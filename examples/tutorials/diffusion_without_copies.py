"""
A diffusion model that does not copy its rare class
===================================================

A diffusion model first generalizes and then, trained on, copies its training images, one class before
another. A rare class has few images, and each of them is seen often. You will ask the theory which class is
in danger, train with a clock for each class, change how often the classes are drawn, and audit what a
generator made.

The training here takes seconds, which is enough to see how it works and not enough for copies. A longer run
on bags and sneakers, with its clock and its copies, is shown in :doc:`/how-to/diffusion`.
"""

# %%
# Thirty ones and ten eights
# --------------------------

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from equipoise.datasets import read_labeled_images
from equipoise.generative import DDPM, evening_shares, read_clock, training_runs
from equipoise.generative.audit import audit_copies
from equipoise.generative.clock import in_words
from equipoise.generative.theory_advice import prescribe
from equipoise.report import new_axes

place = Path(tempfile.mkdtemp(prefix="equipoise-"))
digits = load_digits()
rows = np.concatenate([np.flatnonzero(digits.target == 1)[:30], np.flatnonzero(digits.target == 8)[:10]])
np.savez(place / "digits.npz", X=(digits.images[rows] / 16).astype(np.float32), y=digits.target[rows])
data = read_labeled_images(place / "digits.npz", classes={"1": "ones", "8": "eights"})

# %%
# Who is in danger?
# -----------------
# The theory knows the classes by their shares, variances and centroids, and says in which shares to draw
# these very images so that both are memorized at the same time.

print(prescribe(data, dimension=12).in_words(data.classes))

# %%
# Training with a clock
# ---------------------
# At log-spaced steps the run draws samples, tells their class, and calls a sample a copy if its nearest
# training image is three times as near as the second. A run that was killed goes on to the same bits.

options = {
    "classes": {"1": "ones", "8": "eights"},
    "preset": "tiny",
    "steps": 60,
    "batch_size": 36,
    "n_samples": 24,
    "stride": 8,
}
folder = training_runs.start_run(place / "digits.npz", place / "run", options)
folder = training_runs.resume_run(place / "run", {"steps": 120})
clock = read_clock(folder.table(), folder.names)
print("\n".join(in_words(clock)))

looks = folder.table()
figure, axes = new_axes(7, 3.2)
for code, name in enumerate(folder.names):
    own = looks[looks["label"] == code]
    axes.plot(own["step"], own["held_out_error"], "o-", label=name)
axes.set(xscale="log", xlabel="training step", ylabel="error on held-out images")
axes.legend()

# %%
# Evening out a second run
# ------------------------
# Suppose that a longer run memorized the eights after 2,000 steps and the ones after 6,000, with a quarter of
# the draws going to the eights. An image that is drawn half as often takes about twice as many steps, so these
# shares would even them out. What this did to the gap and to the samples of runs on other images stands on the
# page of the study ``diffusion-clock``: it shrank in five of six, too few to be sure.
# ``equipoise diffusion train --equalize-by run`` does it from the folder of the first run.

times = {"eights": 2000, "ones": 6000}
shares = evening_shares([times[name] for name in data.classes], data.counts / len(data.codes))
print(dict(zip(data.classes, shares.round(2), strict=True)))
model = DDPM("tiny", steps=150, lr=3e-3, batch_size=36, class_shares=shares, monitor=False, random_state=0)
model = model.fit(data.images, data.codes)

# %%
# An audit of what was made
# -------------------------
# Samples from anywhere can be audited. Here are forty of the model above, and ten training images of the
# eights with a little noise, as a model that was trained too long would draw them.

rng = np.random.default_rng(0)
drawn = np.clip(model.sample(40, stride=20), 0, 1)
eights = data.images[data.codes == data.classes.index("eights")]
samples = np.concatenate([drawn, eights + 0.02 * rng.normal(size=eights.shape)])
audit = audit_copies(samples, data, assign="nearest")
print("\n".join(audit.in_words()))

figure, panels = new_axes(7, 2.2, 2, 8)
for place_of, row in enumerate(audit.closest(data.classes.index("eights"), 8)):
    nearest = audit.neighbors.index[row, 0]
    for panel, image in ((place_of, samples[row]), (8 + place_of, audit.training.images[nearest])):
        panels[panel].imshow(image.reshape(8, 8), cmap="gray_r")
for panel in panels:
    panel.axis("off")
figure.suptitle("samples of the eights most like copies, above their nearest training images", fontsize=9)
