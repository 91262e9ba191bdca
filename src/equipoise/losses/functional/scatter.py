"""How far a class scatters across its boundaries with the others."""

from __future__ import annotations

import torch
from torch import Tensor

from equipoise.losses.functional.shared import promote

_SMALL = 1 << 16  # numbers up to which the pairwise differences of the weights are written out


def class_spread(head_weight: Tensor, covariance: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """(ω_c − ω_y)ᵀΣ_y(ω_c − ω_y) and ‖ω_c − ω_y‖² of every sample and class c, both of shape (n, C).

    Parameters
    ----------
    head_weight : Tensor of shape (C, d)
        ω, the weights of the network's linear head.
    covariance : Tensor of shape (C, d, d) or (C, d)
        Σ of each class, full or its diagonal.
    target : Tensor of shape (n,)
        The classes y.

    Returns
    -------
    Tensor of shape (n, C)
        The quadratic forms.
    Tensor of shape (n, C)
        The squared distances.

    Examples
    --------
    >>> class_spread(torch.eye(2), torch.ones(2, 2), torch.tensor([0]))
    (tensor([[0., 2.]]), tensor([[0., 2.]]))
    """
    weight = promote(head_weight)
    sigma = covariance.to(weight.dtype)
    n_classes, n = weight.shape[0], target.shape[0]
    by_class = n_classes <= n  # a table of classes is then smaller than one of samples
    own, of_class = (weight, sigma) if by_class else (weight[target], sigma[target])
    if own.shape[0] * weight.numel() <= _SMALL:
        difference = weight - own.unsqueeze(1)
        square = difference.square()
        if sigma.ndim == 2:
            quadratic = (square @ of_class.unsqueeze(-1)).squeeze(-1)
        else:
            quadratic = ((difference @ of_class) * difference).sum(-1)
        distance = square.sum(-1)
    else:  # (ω_c − ω_y)ᵀΣ(ω_c − ω_y) multiplied out, which needs no table of differences
        quadratic = _multiplied_out(weight, own, of_class)
        square = weight.square().sum(-1, keepdim=True)
        own_square, one = (square if by_class else square[target]), torch.ones_like(square)
        left = torch.cat([-2 * own, own_square, one[: own.shape[0]]], dim=1)
        distance = left @ torch.cat([weight, one, square], dim=1).T
    return (quadratic[target], distance[target]) if by_class else (quadratic, distance)


def _multiplied_out(weight: Tensor, own: Tensor, sigma: Tensor) -> Tensor:
    """ω_cᵀΣω_c − 2ω_yᵀΣω_c + ω_yᵀΣω_y for all rows y and classes c, in one product without further passes."""
    if sigma.ndim == 2:
        spread, square, across = sigma, weight.square(), sigma * own
    else:
        spread, across = sigma.flatten(1), (sigma @ own.unsqueeze(-1)).squeeze(-1)
        square = (weight.unsqueeze(2) * weight.unsqueeze(1)).flatten(1)
    left = torch.cat([spread, -2 * across, (across * own).sum(-1, keepdim=True)], dim=1)
    return left @ torch.cat([square, weight, torch.ones_like(weight[:, :1])], dim=1).T


def data_scatter(head_weight: Tensor, covariance: Tensor, target: Tensor, eps: float = 1e-12) -> Tensor:
    """DS_yz = ΔωᵀΣ_yΔω / ‖Δω‖² with Δω = ω_y − ω_z, a row for each sample's y (Wu & Li, Eq 16).

    The gradient runs through the weights and Σ, so that a loss with this term also learns a head whose
    boundaries cut the classes where they are narrow.

    Parameters
    ----------
    head_weight : Tensor of shape (C, d)
        ω, the weights of the network's linear head.
    covariance : Tensor of shape (C, d, d) or (C, d)
        Σ of each class, full or its diagonal.
    target : Tensor of shape (n,)
        The classes y.
    eps : float
        The least ‖Δω‖².

    Returns
    -------
    Tensor of shape (n, C)
        DS_yz, zero at z = y.

    Examples
    --------
    >>> data_scatter(torch.eye(2), torch.eye(2).expand(2, 2, 2), torch.arange(2))
    tensor([[0., 1.],
            [1., 0.]])
    """
    quadratic, distance = class_spread(head_weight, covariance, target)
    return quadratic / distance.clamp_min(eps)
