"""What one more sample is worth: the covering formula beside its simulation, and weights for a long tail.

Run: python examples/effective_number.py
"""

from __future__ import annotations

import numpy as np

from equipoise.theory.effective_number import (
    disc_split,
    effective_number,
    effective_number_weights,
    simulate_covering,
)


def main() -> None:
    volume, offset = 50, 0.2
    paths = simulate_covering(200, volume, offset, repeats=2000, random_state=0)
    print("samples  simulated  formula")
    for n in (1, 10, 50, 200):
        error = paths[:, n - 1].std() / np.sqrt(len(paths))
        formula = float(effective_number(n, 1 - 1 / volume, offset))
        print(f"{n:7}  {paths[:, n - 1].mean():6.2f}±{error:.2f}  {formula:7.2f}")

    counts = [1000, 300, 100, 30, 10]
    for beta in (0.9, 0.999, 1.0):
        print(f"weights at β = {beta}: {effective_number_weights(counts, beta).round(3)}")

    for odds in (4.0, 1.0):
        split = disc_split(2.0, odds)
        print(
            f"discs 2 : 1, priors {odds:g} : 1: accuracy of the large one {split.accuracy_positive:.3f}, "
            f"of the small one {split.accuracy_negative:.3f}"
        )


if __name__ == "__main__":
    main()
