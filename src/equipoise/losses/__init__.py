"""One family of losses for imbalanced classification.

Each is a shell around an equation in :mod:`equipoise.losses.functional`. All take ``forward(input, target)``
with raw logits and integer targets; what else they want (``features``, ``head_weight``) is named by
``requires``. Importing this package does not import torch.
"""

from equipoise._core.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
