"""
What one more sample is worth
=============================

The first sample of a class covers new ground, the thousandth hardly any. The covering formula of Cui et al.
(2019), extended by Wu and Li to samples that fall on another class, beside its simulation; and the class
weights that follow from it.
"""

import numpy as np

from equipoise.report import new_axes
from equipoise.theory.effective_number import (
    disc_split,
    effective_number,
    effective_number_weights,
    simulate_covering,
)

volume, n = 50, np.arange(1, 201)
figure, (left, right) = new_axes(8, 3.5, 1, 2)
for offset in (0.0, 0.2, 0.5):
    paths = simulate_covering(200, volume, offset, repeats=500, random_state=0)
    line = left.plot(
        n, effective_number(n, 1 - 1 / volume, offset), label=f"{offset:.0%} fall on another class"
    )
    left.plot(n[9::20], paths.mean(axis=0)[9::20], "o", color=line[0].get_color(), markersize=4)
left.set(xlabel="samples", ylabel="volume covered", title="formula (lines) and simulation (dots)")
left.legend(fontsize=8)

counts = np.array([1000, 300, 100, 30, 10])
for beta in (0.9, 0.99, 0.999, 1.0):
    right.plot(counts, effective_number_weights(counts, beta), "o-", label=f"β = {beta}")
right.set(xscale="log", yscale="log", xlabel="samples of the class", ylabel="weight", title="class weights")
right.legend(fontsize=8)

# %%
# Volume is not all. Of two discs of radius 2 and 1 the larger one is classified better if both are equally
# dense, and worse if both are equally frequent (Wu and Li, Theorems 1 and 2).

for odds in (4.0, 1.0):
    split = disc_split(2.0, odds)
    print(
        f"priors {odds:g} : 1: accuracy of the large disc {split.accuracy_positive:.3f}, "
        f"of the small one {split.accuracy_negative:.3f}"
    )
