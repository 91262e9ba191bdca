"""From what a user passes to tensors; it lives with training, where samplers find it too."""

from equipoise.training.inputs import Preparation, unit_preparation

__all__ = ["Preparation", "unit_preparation"]
