"""
What each metric sees, and what the theory says about your data
===============================================================

The best training share depends on what one measures. Then the inverse question: which share, weights or fresh
rows would the solvable model of Pezzicoli, Ros, Landes and Baity-Jesi advise for a given table?
"""

import numpy as np

from equipoise.report import new_axes
from equipoise.theory.anomaly import (
    advise_training,
    intrinsic_fraction,
    optimal_train_fraction,
    solve_saddle,
    tail_or_group,
)

shares = np.linspace(0.15, 0.85, 71)
student = solve_saddle(1.1, 0.5, -0.6, shares)
scores = student.metrics()
figure, axes = new_axes(7, 4)
for name in ("balanced_accuracy", "precision", "recall", "f1"):
    axes.plot(shares, getattr(scores, name), label=name.replace("_", " "))
axes.axvline(float(intrinsic_fraction(-0.6)), color="0.6", linestyle=":", label="true share of anomalies")
axes.set(xlabel="share of anomalies in the training set", ylabel="on a balanced test set")
axes.legend(fontsize=8)

for objective in ("overlap", "balanced_accuracy", "precision", "f1"):
    best = optimal_train_fraction(1.1, 0.5, -0.6, objective)
    print(f"best share for {objective:18} {float(best.train_fraction):.3f}")

# %%
# A table whose rare class is the tail of one population, which is what the model assumes. The advice compares
# leaving rows out, weights and fresh rows, with intervals and a verdict.

rng = np.random.default_rng(0)
X = rng.standard_normal((400, 20))
y = (X @ rng.standard_normal(20) / np.sqrt(20) > 1.2).astype(int)
print(tail_or_group(X, y, random_state=0).verdict)
print(advise_training(X, y, draws=10, random_state=0).summary())
