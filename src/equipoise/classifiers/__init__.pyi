from .autoencoder import AutoencoderClassifier as AutoencoderClassifier
from .conditional import ConditionalClassifier as ConditionalClassifier
from .conditional_pictures import plot_densities as plot_densities
from .conditional_pictures import plot_map as plot_map
from .conditional_pictures import plot_precision_at_recalls as plot_precision_at_recalls
from .conditional_pictures import plot_tradeoff as plot_tradeoff
from .conditional_pictures import plot_training_maps as plot_training_maps
from .generative import GenerativeClassifier as GenerativeClassifier
from .meta import MetaClassifier as MetaClassifier
from .neural import NeuralClassifier as NeuralClassifier
from .presets import autoencoder_preset as autoencoder_preset
from .presets import conditional_preset as conditional_preset
from .regression import ConditionalRegressor as ConditionalRegressor
from .resampled import ResampledClassifier as ResampledClassifier

__all__: list[str]
