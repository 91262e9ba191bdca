"""scikit-learn samplers with provenance and a quality gate."""

from equipoise.oversampling._base import Preflight, ProvenanceSampler
from equipoise.oversampling.amdo import AMDO
from equipoise.oversampling.autoencoder import AutoencoderOversampler
from equipoise.oversampling.bagan import BAGAN
from equipoise.oversampling.deep_smote import DeepSMOTE
from equipoise.oversampling.gamo import GAMO
from equipoise.oversampling.gate import LowQualityError, LowQualityWarning
from equipoise.oversampling.mc_ccr import MCCCR
from equipoise.oversampling.mc_rbo import MCRBO
from equipoise.oversampling.provenance import Provenance

__all__ = [
    "AMDO",
    "BAGAN",
    "GAMO",
    "MCCCR",
    "MCRBO",
    "AutoencoderOversampler",
    "DeepSMOTE",
    "LowQualityError",
    "LowQualityWarning",
    "Preflight",
    "Provenance",
    "ProvenanceSampler",
]
