"""Which training ratio is best? The replica solution of the teacher-student spherical perceptron."""

from equipoise.theory.anomaly.advice import Advice, advise_train_fraction, theory_sampling_strategy
from equipoise.theory.anomaly.assumptions import SharedDistribution
from equipoise.theory.anomaly._estimates import effective_dimension
from equipoise.theory.anomaly.gibbs import GibbsRun, LargeSystem, extrapolate, sample_gibbs
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
    "Advice",
    "GibbsRun",
    "LargeSystem",
    "Metrics",
    "Optimum",
    "SaddlePoint",
    "SgdRun",
    "SharedDistribution",
    "TrainingSet",
    "advise_train_fraction",
    "area_under_curve",
    "boundary_densities",
    "classification_metrics",
    "crossover_temperature",
    "effective_dimension",
    "extrapolate",
    "intrinsic_fraction",
    "optimal_train_fraction",
    "optimum_map",
    "sample_gibbs",
    "sample_training_set",
    "solve_saddle",
    "teacher_bias",
    "theory_sampling_strategy",
    "train_sigmoid_perceptron",
]
