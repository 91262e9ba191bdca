"""Which class does a diffusion model learn or memorize, and when? Random-features theory."""

from equipoise.theory.diffusion.coefficients import Coefficients, coefficients
from equipoise.theory.diffusion.covariances import DiagonalFeatures
from equipoise.theory.diffusion.curves import LearningCurves
from equipoise.theory.diffusion.edges import AsymptoticEdges, Bulk, Edges
from equipoise.theory.diffusion.mixture import ClassMixture, unit_scale
from equipoise.theory.diffusion.model import RandomFeatures, Timescales
from equipoise.theory.diffusion.prediction import PredictedOrder, predict_order
from equipoise.theory.diffusion.prescription import Reweighting, equalizing_weights
from equipoise.theory.diffusion.score import (
    MixtureScore,
    RandomFeaturesScore,
    divergence_bound,
    sample_backwards,
)
from equipoise.theory.diffusion.speciation import (
    Overlaps,
    SpeciationTimes,
    centroid_overlaps,
    leading_speciation_time,
    speciation_time,
    spike_overlap,
)
from equipoise.theory.diffusion.spectrum import Spectrum

__all__ = [
    "AsymptoticEdges",
    "Bulk",
    "ClassMixture",
    "Coefficients",
    "DiagonalFeatures",
    "Edges",
    "LearningCurves",
    "MixtureScore",
    "Overlaps",
    "PredictedOrder",
    "RandomFeatures",
    "RandomFeaturesScore",
    "Reweighting",
    "SpeciationTimes",
    "Spectrum",
    "Timescales",
    "centroid_overlaps",
    "coefficients",
    "divergence_bound",
    "equalizing_weights",
    "leading_speciation_time",
    "predict_order",
    "sample_backwards",
    "speciation_time",
    "spike_overlap",
    "unit_scale",
]
