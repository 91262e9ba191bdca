"""Which class of a data set would a diffusion model memorize first, and which weights would change that?"""

from __future__ import annotations

import numpy as np

from equipoise.theory.diffusion import (
    ClassMixture,
    RandomFeatures,
    equalizing_weights,
    predict_order,
    speciation_time,
)


def main() -> None:
    mix = ClassMixture(weights=[0.5, 0.5], variances=[0.5, 0.25])
    rf = RandomFeatures(mix, diffusion_time=0.001, features_per_dim=60, samples_per_dim=30)
    edges, times = rf.edges(), rf.timescales()
    print("bulks:", ", ".join(f"[{b.lower:.4g}, {b.upper:.4g}] with {b.mass:.1%}" for b in edges.bulks))
    print(f"generalization begins at {times.tau_gen:.3f} and ends at {times.tau_mem1:.1f}")

    curves = rf.learning_curves(
        dimension=15, n_instances=2, random_state=0, times=np.geomspace(1e-3, 1e4, 200)
    )
    for name, general, memory in zip(
        curves.classes, curves.generalization_time, curves.memorization_time, strict=True
    ):
        print(f"class {name}: best at τ = {general:.3g}, memorized at τ = {memory:.3g}")

    rare = ClassMixture(weights=[0.999, 0.001], variances=[0.5, 0.5], centroid_gram=np.eye(2))
    print(
        "speciation times of a majority and a rare class:",
        speciation_time(rare, 1000, 2.0).appearance.round(2),
    )

    rng = np.random.default_rng(0)
    X = (
        rng.normal(size=(400, 40)) * np.repeat([0.7, 0.6], 200)[:, None]
        + np.repeat([0.5, -0.5], 200)[:, None]
    )
    y = np.repeat(["varied", "uniform"], 200)
    order = predict_order(X, y, dimension=32, n_bootstrap=5, random_state=0)
    print(order)

    close = ClassMixture(weights=[0.5, 0.5], variances=[0.5, 0.4], centroid_gram=np.eye(2))
    model = RandomFeatures(close, diffusion_time=0.01, features_per_dim=30, samples_per_dim=15)
    found = equalizing_weights(model, "memorization", dimension=10, n_instances=1, random_state=0)
    print("weights that equalize memorization:", found.value.weights.round(3), found.status)
    print("ratio of memorization times: {:.2f} → {:.2f}".format(*found.value.gain))
    print("ratio of generalization times: {:.2f} → {:.2f}".format(*found.value.cost))


if __name__ == "__main__":
    main()
