"""Diffusion models that know when each class is memorized. Names resolve lazily: importing this loads no torch."""

from equipoise._core.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
