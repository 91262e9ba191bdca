"""scikit-learn samplers with provenance and a quality gate."""

from equipoise._core.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
