"""Which training ratio is best? The replica solution of the teacher-student spherical perceptron."""

from equipoise.theory.anomaly.advice import TrainingAdvice, advise_training, theory_sampling_strategy
from equipoise.theory.anomaly.gibbs import GibbsRun, LargeSystem, extrapolate, sample_gibbs
from equipoise.theory.anomaly.landscape import (
    FreeEnergy,
    PhaseTransitions,
    free_energy_at,
    phase_transitions,
)
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
    guide_regret,
    optimal_train_fraction,
    optimum_map,
)
from equipoise.theory.anomaly.pool import PoolPlan, TrainingChoice, optimal_from_pool
from equipoise.theory.anomaly.population import TailOrGroup, tail_or_group
from equipoise.theory.anomaly.saddle import SaddlePoint, balanced_weights, solve_saddle
from equipoise.theory.anomaly.sampling import TrainingSet, sample_training_set
from equipoise.theory.anomaly.sgd import SgdRun, train_sigmoid_perceptron

__all__ = [
    "FreeEnergy",
    "GibbsRun",
    "LargeSystem",
    "Metrics",
    "Optimum",
    "PhaseTransitions",
    "PoolPlan",
    "SaddlePoint",
    "SgdRun",
    "TailOrGroup",
    "TrainingAdvice",
    "TrainingChoice",
    "TrainingSet",
    "advise_training",
    "area_under_curve",
    "balanced_weights",
    "boundary_densities",
    "classification_metrics",
    "crossover_temperature",
    "extrapolate",
    "free_energy_at",
    "guide_regret",
    "intrinsic_fraction",
    "optimal_from_pool",
    "optimal_train_fraction",
    "optimum_map",
    "phase_transitions",
    "sample_gibbs",
    "sample_training_set",
    "solve_saddle",
    "tail_or_group",
    "teacher_bias",
    "theory_sampling_strategy",
    "train_sigmoid_perceptron",
]
