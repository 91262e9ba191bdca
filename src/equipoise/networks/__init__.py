"""Networks as features and a linear head, so that losses can see features and head weights."""

from equipoise._core.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
