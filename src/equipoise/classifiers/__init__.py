"""scikit-learn classifiers. Names resolve lazily, so that those without networks do not load torch."""

from equipoise._core.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
