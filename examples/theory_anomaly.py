"""What does the solvable model of anomaly detection say about training shares, weights and the rows one has?"""

from __future__ import annotations

import numpy as np

from equipoise.theory.anomaly import (
    advise_training,
    intrinsic_fraction,
    optimal_from_pool,
    optimal_train_fraction,
    sample_gibbs,
    solve_saddle,
)

# The theory: anomalies are 27 % of the population, 1.1 training samples per dimension, noise 0.5.
s = solve_saddle(1.1, 0.5, -0.6, [float(intrinsic_fraction(-0.6)), 0.5, 0.7])
for fraction, overlap, bias, score in zip(
    s.train_fraction, s.overlap, s.bias, s.metrics().balanced_accuracy, strict=True
):
    print(
        f"at {fraction:.0%} anomalies: overlap {overlap:.3f}, bias {bias:+.3f}, balanced accuracy {score:.3f}"
    )

for objective in ("overlap", "precision", "f1"):
    best = optimal_train_fraction(1.1, 0.5, -0.6, objective)
    print(f"best fraction for {objective}: {float(best.train_fraction):.3f}")

# A simulation of the same: students drawn from the Gibbs measure at N = 25.
run = sample_gibbs(1.1, 0.5, -0.6, 0.5, dim=25, datasets=12, sweeps=30, random_state=0)
print(f"sampled overlap {run.overlap:.3f} ± {run.standard_error['overlap']:.3f}, theory {s.overlap[1]:.3f}")

# A pool of rows: leaving some out, weighting the classes and fresh rows are three different things.
print(optimal_from_pool(n_positive=100, n_negative=900, dimensions=100, temperature=0.5).summary())

# The inverse: what does the model say about these data?
rng = np.random.default_rng(0)
X = rng.standard_normal((400, 20))
y = (X @ rng.standard_normal(20) / np.sqrt(20) > 1.2).astype(int)
print(advise_training(X, y, draws=10, random_state=0).summary())
