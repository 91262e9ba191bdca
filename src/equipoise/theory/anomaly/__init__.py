"""Which training ratio is best? The replica solution of the teacher-student spherical perceptron."""

from equipoise.theory.anomaly.metrics import (
    Metrics,
    boundary_densities,
    classification_metrics,
    intrinsic_fraction,
    teacher_bias,
)
from equipoise.theory.anomaly.optimum import (
    Optimum,
    crossover_temperature,
    optimal_train_fraction,
    optimum_map,
)
from equipoise.theory.anomaly.saddle import SaddlePoint, solve_saddle

__all__ = [
    "Metrics",
    "Optimum",
    "SaddlePoint",
    "boundary_densities",
    "classification_metrics",
    "crossover_temperature",
    "intrinsic_fraction",
    "optimal_train_fraction",
    "optimum_map",
    "solve_saddle",
    "teacher_bias",
]
