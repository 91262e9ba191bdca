"""When each of two classes is generalized and memorized (paper 004, Figs 3 and 4)."""

from __future__ import annotations

from typing import Any

from equipoise.studies import Spec

from ..shared.diffusion_theory_pages import classes_page

SETTINGS: dict[str, tuple[list[float], list[list[float]]]] = {
    "variance 1:2": ([0.5, 0.25], [[1.0, 0.0], [0.0, 1.0]]),
    "variance 4:5": ([0.5, 0.4], [[1.0, 0.0], [0.0, 1.0]]),
    "centroid norm": ([0.5, 0.5], [[1.0, 0.0], [0.0, 2.25]]),
    "none": ([0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]]),
}


def run_cell(
    disparity: str, weight: float, matrices: str, seed: int, dimension: int, diffusion_time: float
) -> dict[str, Any]:
    import numpy as np

    from equipoise.theory.diffusion import ClassMixture, RandomFeatures

    variances, gram = SETTINGS[disparity]
    model = RandomFeatures(ClassMixture([weight, 1 - weight], variances, gram), diffusion_time, 60, 30)
    times = np.geomspace(1e-3, 3e3, 300)
    curves = model.learning_curves(dimension, times, random_state=seed, matrices=matrices, step=None)
    general, memory = curves.generalization_time, curves.memorization_time
    return {
        "generalization_time_1": general[0],
        "generalization_time_2": general[1],
        "memorization_time_1": memory[0],
        "memorization_time_2": memory[1],
        "generalization_gap": general[0] - general[1],
        "memorization_gap": memory[0] - memory[1],
        "best_test_error_1": curves.test_per_class[0].min(),
        "best_test_error_2": curves.test_per_class[1].min(),
        "training_times": [times[::4]],
        "test_errors": curves.test_per_class[:, ::4],
    }


SPEC = Spec(
    name="diffusion-classes",
    title="Class times of a random-features diffusion model against the weight of class 1",
    reference="Nicoletti et al., Figs 3 and 4",
    run_cell=run_cell,
    grid={
        "disparity": list(SETTINGS),
        "weight": [0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95],
        "matrices": ["true", "equivalent"],
        "seed": [0, 1],
        "dimension": 30,
        "diffusion_time": 0.01,
    },
    sizes={"small": {}, "paper": {"dimension": 100, "seed": list(range(50))}},
    paper={
        "statement": "variance orders the classes before centroid norm, and that before imbalance; both gaps "
        "change sign against the weight of class 1 (figures without printed numbers)"
    },
    page=classes_page,
    metrics=["generalization_gap", "memorization_gap"],
    differs="N = 30 with 2 draws instead of N = 100 with 50, and training times up to 3000 instead of 100.",
)
