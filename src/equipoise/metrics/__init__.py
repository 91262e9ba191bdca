"""Metrics for imbalanced data: what they are, how sure they are, and whether a difference is one."""

from equipoise._core.extras import lazy_names
from equipoise.metrics import calibration, classification, costs, thresholds  # noqa: F401  each enters its metrics

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
