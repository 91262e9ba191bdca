"""
Which class does a diffusion model memorize first?
==================================================

A random-features score model on a mixture of Gaussian classes is exactly solvable (Nicoletti, Ma, Ventura,
Saglietti and Sarao Mannelli). It says which class is learned first and which is memorized first.
"""

import numpy as np

from equipoise.report import new_axes
from equipoise.theory.diffusion import (
    ClassMixture,
    RandomFeatures,
    equalizing_weights,
    predict_order,
    speciation_time,
)

mixture = ClassMixture(weights=[0.5, 0.5], variances=[0.5, 0.25])
model = RandomFeatures(mixture, diffusion_time=0.01, features_per_dim=60, samples_per_dim=30)
times = model.timescales()
print("bulks:", ", ".join(f"[{b.lower:.4g}, {b.upper:.4g}] with {b.mass:.1%}" for b in model.edges().bulks))
print(f"generalization begins at {times.tau_gen:.3f} and ends at {times.tau_mem1:.1f}")

# %%
# The test error of each class falls while the model generalizes and rises again when it memorizes. The class
# of higher variance turns first.

curves = model.learning_curves(
    dimension=15, n_instances=2, random_state=0, times=np.geomspace(1e-3, 1e4, 200)
)
figure, axes = new_axes(7, 4)
for number, variance in enumerate(mixture.variances):
    axes.plot(curves.times, curves.test_per_class[number], label=f"class of variance {variance}")
axes.axvspan(times.tau_gen, times.tau_mem1, color="0.93", label="generalization window")
axes.set(xscale="log", ylim=(0.9, 1.5), xlabel="training time", ylabel="test error of the class")
axes.legend()
for name, general, memory in zip(
    curves.classes, curves.generalization_time, curves.memorization_time, strict=True
):
    print(f"class {name}: best at τ = {general:.3g}, memorized at τ = {memory:.3g}")

# %%
# A class that is a thousand times rarer appears later in backward diffusion.

rare = ClassMixture(weights=[0.999, 0.001], variances=[0.5, 0.5], centroid_gram=np.eye(2))
print("speciation times:", speciation_time(rare, 1000, 2.0).appearance.round(2))

# %%
# The order for data of one's own, here two classes of a different spread.

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 40)) * np.repeat([0.7, 0.6], 200)[:, None] + np.repeat([0.5, -0.5], 200)[:, None]
y = np.repeat(["varied", "uniform"], 200)
print(predict_order(X, y, dimension=32, n_bootstrap=5, random_state=0))

# %%
# Weights at which both classes are memorized at the same time, and what that costs in generalization.

close = ClassMixture(weights=[0.5, 0.5], variances=[0.5, 0.4], centroid_gram=np.eye(2))
small = RandomFeatures(close, diffusion_time=0.01, features_per_dim=30, samples_per_dim=15)
found = equalizing_weights(small, "memorization", dimension=10, n_instances=1, random_state=0)
print("weights:", found.value.weights.round(3), found.status)
print("ratio of memorization times: {:.2f} → {:.2f}".format(*found.value.gain))
print("ratio of generalization times: {:.2f} → {:.2f}".format(*found.value.cost))
