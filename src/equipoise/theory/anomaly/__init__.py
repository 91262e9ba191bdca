"""Which training ratio is best? The replica solution of the teacher-student spherical perceptron."""

from equipoise._core.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
