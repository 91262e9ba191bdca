"""Which training ratio is best? The replica solution of the teacher-student spherical perceptron."""

from equipoise.theory.anomaly.metrics import (
    Metrics,
    boundary_densities,
    classification_metrics,
    intrinsic_fraction,
    teacher_bias,
)
from equipoise.theory.anomaly.saddle import SaddlePoint, solve_saddle

__all__ = [
    "Metrics",
    "SaddlePoint",
    "boundary_densities",
    "classification_metrics",
    "intrinsic_fraction",
    "solve_saddle",
    "teacher_bias",
]
