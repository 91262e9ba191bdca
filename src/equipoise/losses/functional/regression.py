"""A squared error that does not favor where targets are dense."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from equipoise._core.checks import check_type
from equipoise.losses.functional.shared import reduce_loss


def balanced_mse(
    prediction: Tensor,
    target: Tensor,
    *,
    tau: float | Tensor = 1.0,
    sigma: float = 1.0,
    reduction: str = "mean",
) -> Tensor:
    """(ŷ − y)² + 2σ²·τ·log mean_j exp(−(ŷ − y_j)²/2σ²), the y_j being the batch's targets.

    Ren et al. 2022, Eq 9 with their batch-based estimate of the integral, times 2σ² and with a strength τ in
    front: τ = 0 is the squared error, τ = 1 their balanced MSE, which removes the training targets' density
    from the answer as logit adjustment removes the class prior.

    Parameters
    ----------
    prediction : Tensor of shape (n,)
        ŷ.
    target : Tensor of shape (n,)
        y.
    tau : float or Tensor
        τ, the strength of the correction.
    sigma : float
        σ, the deviation of the noise, in the targets' unit.
    reduction : {"mean", "sum", "none"}
        How to reduce the samples' losses.

    Returns
    -------
    Tensor
        The loss: a scalar, or one value per sample for ``"none"``.

    Examples
    --------
    >>> y = torch.tensor([0.0, 0.0, 3.0])
    >>> torch.allclose(balanced_mse(y + 1, y, tau=0.0), torch.tensor(1.0))
    True
    """
    check_type("target", target, Tensor)
    error = (check_type("prediction", prediction, Tensor) - target).square()
    apart = (prediction.unsqueeze(1) - target.unsqueeze(0)).square() / (2 * sigma**2)
    crowd = torch.logsumexp(-apart, dim=1) - math.log(len(target))
    return reduce_loss(error + 2 * sigma**2 * tau * crowd, reduction)
