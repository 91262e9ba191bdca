"""Which class does a diffusion model learn or memorise, and when? Random-features theory."""

from equipoise.theory.diffusion.coefficients import Coefficients, coefficients
from equipoise.theory.diffusion.edges import AsymptoticEdges, Bulk, Edges
from equipoise.theory.diffusion.mixture import GaussianMixture
from equipoise.theory.diffusion.model import RandomFeatures, Timescales
from equipoise.theory.diffusion.spectrum import Spectrum

__all__ = [
    "AsymptoticEdges",
    "Bulk",
    "Coefficients",
    "Edges",
    "GaussianMixture",
    "RandomFeatures",
    "Spectrum",
    "Timescales",
    "coefficients",
]
