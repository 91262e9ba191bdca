"""Which training ratio is best? The replica solution of the teacher-student spherical perceptron."""

from equipoise.theory.anomaly.gibbs import GibbsRun, sample_gibbs
from equipoise.theory.anomaly.metrics import (
    Metrics,
    area_under_curve,
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
from equipoise.theory.anomaly.sampling import TrainingSet, sample_training_set
from equipoise.theory.anomaly.sgd import SgdRun, train_sigmoid_perceptron

__all__ = [
    "GibbsRun",
    "Metrics",
    "Optimum",
    "SaddlePoint",
    "SgdRun",
    "TrainingSet",
    "area_under_curve",
    "boundary_densities",
    "classification_metrics",
    "crossover_temperature",
    "intrinsic_fraction",
    "optimal_train_fraction",
    "optimum_map",
    "sample_gibbs",
    "sample_training_set",
    "solve_saddle",
    "teacher_bias",
    "train_sigmoid_perceptron",
]
