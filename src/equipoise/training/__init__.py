"""One loop; a method is a step."""

from equipoise.training.augment import AdaptiveAugmentation, FlipAndShift, RandomAffine
from equipoise.training.averaging import ExponentialAverage
from equipoise.training.bilevel import BilevelStep
from equipoise.training.callbacks import (
    BalancedFineTuning,
    Callback,
    Deadline,
    DeferredReweighting,
    EarlyStopping,
    LearningRate,
    Validation,
    drops,
)
from equipoise.training.checkpoint import Checkpoint, check_finite, load_state, save_state
from equipoise.training.conditional import ConditionalStep, ConditionedLoss, FamilyLoss
from equipoise.training.data import Batch, TensorData
from equipoise.training.distributions import Distribution, Linear, LogUniform, Point, Uniform
from equipoise.training.fabric import make_fabric
from equipoise.training.loop import Run, TrainingDiverged, fit, predict
from equipoise.training.metaset import MetaSet, take_meta_set
from equipoise.training.sam import SAMStep
from equipoise.training.samplers import (
    ClassSampler,
    Sampler,
    Shuffle,
    class_shares,
    effective_number_shares,
    ratio_shares,
)
from equipoise.training.steps import STEPS, Outcome, PlainStep, Step, build_step

__all__ = [
    "STEPS",
    "AdaptiveAugmentation",
    "BalancedFineTuning",
    "Batch",
    "BilevelStep",
    "Callback",
    "Checkpoint",
    "ClassSampler",
    "ConditionalStep",
    "ConditionedLoss",
    "Deadline",
    "DeferredReweighting",
    "Distribution",
    "EarlyStopping",
    "ExponentialAverage",
    "FamilyLoss",
    "FlipAndShift",
    "LearningRate",
    "Linear",
    "LogUniform",
    "MetaSet",
    "Outcome",
    "PlainStep",
    "Point",
    "RandomAffine",
    "Run",
    "SAMStep",
    "Sampler",
    "Shuffle",
    "Step",
    "TensorData",
    "TrainingDiverged",
    "Uniform",
    "Validation",
    "build_step",
    "check_finite",
    "class_shares",
    "drops",
    "effective_number_shares",
    "fit",
    "load_state",
    "make_fabric",
    "predict",
    "ratio_shares",
    "save_state",
    "take_meta_set",
]
