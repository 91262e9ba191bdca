"""
A theory in twenty lines
========================

Should the training set be balanced? For one model of anomaly detection this question has an exact answer: a
teacher cuts off the rare tail of a Gaussian cloud, and a student learns the cut from labeled rows (Pezzicoli,
Ros, Landes and Baity-Jesi). :func:`~equipoise.theory.anomaly.solve_saddle` gives the typical student for
every share of anomalies in the training set. Twenty lines draw the answer and check it by simulation.
"""

import numpy as np

from equipoise.report import new_axes
from equipoise.theory.anomaly import optimal_train_fraction, sample_gibbs, solve_saddle

load, noise, bias = 1.1, 0.5, -0.6  # training rows per dimension, temperature, where the teacher cuts
shares = np.linspace(0.05, 0.95, 91)
student = solve_saddle(load, noise, bias, shares)
best = optimal_train_fraction(load, noise, bias, "overlap")
runs = [
    sample_gibbs(load, noise, bias, share, dim=25, datasets=12, sweeps=30, random_state=0)
    for share in (0.3, 0.5, 0.7)
]

figure, axes = new_axes(7, 4)
axes.plot(shares, student.overlap, label="theory")
axes.errorbar(
    [run.positives / run.samples for run in runs],
    [run.overlap for run in runs],
    [2 * run.standard_error["overlap"] for run in runs],
    fmt="o",
    label="simulation with 25 dimensions, ± 2 standard errors",
)
axes.axvline(float(best.train_fraction), color="0.6", label=f"best share {float(best.train_fraction):.3f}")
axes.set(xlabel="share of anomalies in the training set", ylabel="overlap of student and teacher")
axes.legend()

# %%
# With 25 dimensions the simulated students lie somewhat below the theory, which is exact for many dimensions;
# the difference shrinks with their number (study ``anomaly-gibbs``). The curve is flat near its top and ends
# on both sides, where the student gives up and calls everything alike. Half and half is close to the best
# share here. It is not always: with more rows and a rarer class, the best share moves to the other side of
# one half.

for load, noise, bias in ((1.1, 0.5, -0.6), (1.1, 0.5, -1.0), (8.0, 0.5, -1.5)):
    best = optimal_train_fraction(load, noise, bias, "overlap")
    print(
        f"{load:4} rows per dimension, noise {noise}, bias {bias:4}: best share {float(best.train_fraction):.3f}, "
        f"loss at one half {float(best.regret_at_half):.4f}"
    )

# %%
# Moving the share at a fixed number of rows takes *fresh* rows. With the rows that one has, leaving some out
# and weighting the classes are two other things, and the theory tells all three apart.

from equipoise.theory.anomaly import optimal_from_pool  # noqa: E402

print(optimal_from_pool(n_positive=100, n_negative=900, dimensions=100, temperature=0.5).summary())
