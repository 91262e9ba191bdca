"""The equations: pure functions of logits and targets, with no state and no checks of values.

They compute in float32 if the logits are float16 or bfloat16, are safe under ``torch.compile``,
``torch.func.vmap`` and ``torch.func.grad``, and take ``reduction`` as ``"mean"``, ``"sum"`` or ``"none"``.
"""

from equipoise.losses.functional.perturbation import (
    binary_vs_loss,
    combined_loss,
    isda_loss,
    kps_loss,
    large_margin_loss,
    ldam_loss,
    logit_adjusted_loss,
    lpl_loss,
    lpl_perturbation,
    prediction_bounds,
    vs_loss,
)
from equipoise.losses.functional.regression import balanced_mse
from equipoise.losses.functional.scatter import data_scatter
from equipoise.losses.functional.weighting import (
    center_loss,
    class_balanced_loss,
    cross_entropy,
    disturb_target,
    focal_loss,
    lq_loss,
    nenum_loss,
    nenum_offset,
    sigmoid_focal_loss,
)

__all__ = [
    "balanced_mse",
    "binary_vs_loss",
    "center_loss",
    "class_balanced_loss",
    "combined_loss",
    "cross_entropy",
    "data_scatter",
    "disturb_target",
    "focal_loss",
    "isda_loss",
    "kps_loss",
    "large_margin_loss",
    "ldam_loss",
    "logit_adjusted_loss",
    "lpl_loss",
    "lpl_perturbation",
    "lq_loss",
    "nenum_loss",
    "nenum_offset",
    "prediction_bounds",
    "sigmoid_focal_loss",
    "vs_loss",
]
