"""scikit-learn classifiers. Names resolve lazily, so that those without networks do not load torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise._core.extras import import_name

if TYPE_CHECKING:
    from equipoise.classifiers.autoencoder import AutoencoderClassifier
    from equipoise.classifiers.conditional import ConditionalClassifier
    from equipoise.classifiers.conditional_pictures import (
        plot_densities,
        plot_map,
        plot_precision_at_recalls,
        plot_tradeoff,
        plot_training_maps,
    )
    from equipoise.classifiers.generative import GenerativeClassifier
    from equipoise.classifiers.meta import MetaClassifier
    from equipoise.classifiers.neural import NeuralClassifier
    from equipoise.classifiers.presets import autoencoder_preset, conditional_preset
    from equipoise.classifiers.regression import ConditionalRegressor
    from equipoise.classifiers.resampled import ResampledClassifier

_HOMES = {
    "ConditionalRegressor": "equipoise.classifiers.regression",
    "ConditionalClassifier": "equipoise.classifiers.conditional",
    "AutoencoderClassifier": "equipoise.classifiers.autoencoder",
    "GenerativeClassifier": "equipoise.classifiers.generative",
    "MetaClassifier": "equipoise.classifiers.meta",
    "NeuralClassifier": "equipoise.classifiers.neural",
    "ResampledClassifier": "equipoise.classifiers.resampled",
    "autoencoder_preset": "equipoise.classifiers.presets",
    "conditional_preset": "equipoise.classifiers.presets",
    "plot_densities": "equipoise.classifiers.conditional_pictures",
    "plot_map": "equipoise.classifiers.conditional_pictures",
    "plot_precision_at_recalls": "equipoise.classifiers.conditional_pictures",
    "plot_tradeoff": "equipoise.classifiers.conditional_pictures",
    "plot_training_maps": "equipoise.classifiers.conditional_pictures",
}

__all__ = [
    "AutoencoderClassifier",
    "ConditionalClassifier",
    "ConditionalRegressor",
    "GenerativeClassifier",
    "MetaClassifier",
    "NeuralClassifier",
    "ResampledClassifier",
    "autoencoder_preset",
    "conditional_preset",
    "plot_densities",
    "plot_map",
    "plot_precision_at_recalls",
    "plot_tradeoff",
    "plot_training_maps",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return import_name(_HOMES[name], name)
    raise AttributeError(f"module 'equipoise.classifiers' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
