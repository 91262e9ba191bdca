"""Heads other than a plain linear layer."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from equipoise._core.checks import check_positive


class CosineLinear(nn.Linear):
    """Logits s·cos(f, ω_c): features and weights are normalized, and there is no bias.

    Parameters
    ----------
    in_features : int
        The width of the features.
    out_features : int
        The number of classes.
    scale : float
        s, kept with the weights.

    Examples
    --------
    >>> head = CosineLinear(3, 2, scale=30.0)
    >>> bool(head(100 * torch.ones(1, 3)).abs().max() <= 30)
    True
    """

    scale: Tensor

    def __init__(self, in_features: int, out_features: int, scale: float = 30.0) -> None:
        super().__init__(in_features, out_features, bias=False)
        self.register_buffer("scale", torch.tensor(float(check_positive("scale", scale))))

    def forward(self, input: Tensor) -> Tensor:
        """The logits of features.

        Parameters
        ----------
        input : Tensor of shape (n, d)
            The features.

        Returns
        -------
        Tensor of shape (n, C)
            s·cos, within [−s, s].
        """
        return F.linear(self.scale * F.normalize(input, dim=-1), F.normalize(self.weight, dim=-1))


def use_cosine_head(network: nn.Module, scale: float = 30.0) -> nn.Module:
    """Put a :class:`CosineLinear` in place of the network's linear head, with its weights.

    Parameters
    ----------
    network : nn.Module
        A network with a linear layer ``head``; it is changed in place. A :class:`CosineLinear` is left as it is,
        with a warning if its scale is another.
    scale : float
        s.

    Returns
    -------
    nn.Module
        The network itself.

    Examples
    --------
    >>> from equipoise.networks import build_network
    >>> type(use_cosine_head(build_network("mlp", (4,), 3)).head).__name__
    'CosineLinear'
    """
    head = getattr(network, "head", None)
    if isinstance(head, CosineLinear):
        kept = float(head.scale)
        if not math.isclose(kept, scale, rel_tol=1e-6):
            warnings.warn(
                f"the network's head keeps its scale {kept:g}, where {scale:g} was asked for: a loss of cosines "
                "must have the scale of the head",
                UserWarning,
                stacklevel=2,
            )
        return network
    if not isinstance(head, nn.Linear):
        raise TypeError(
            f"the network must have a linear layer named head, got {type(network).__name__} without"
        )
    made = CosineLinear(head.in_features, head.out_features, scale)
    made.weight = head.weight
    network.head = made
    return network
