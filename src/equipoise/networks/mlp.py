"""The multi-layer perceptron."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from equipoise._core.checks import check_choice, check_in_range, check_integer
from equipoise.networks.base import FeaturesAndHead

_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
    "silu": nn.SiLU,
}


class MLP(FeaturesAndHead):
    """Linear layers with an activation between; no hidden layer makes it softmax regression.

    Parameters
    ----------
    input_shape : sequence of int
        Shape of one sample; more than one axis is flattened.
    n_classes : int
        Number of logits.
    hidden : sequence of int
        Widths of the hidden layers; the last one is the feature width.
    activation : {"relu", "gelu", "tanh", "silu"}
        Between the layers.
    dropout : float
        Share of hidden units dropped while training.
    batch_norm : bool
        Normalize before each activation.

    Examples
    --------
    >>> import torch
    >>> MLP((5,), 3, hidden=(16,))(torch.zeros(2, 5)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        n_classes: int,
        *,
        hidden: Sequence[int] = (128, 128),
        activation: str = "relu",
        dropout: float = 0.0,
        batch_norm: bool = False,
    ) -> None:
        if not isinstance(hidden, Sequence):
            raise TypeError(f"hidden must be a list of widths, such as (128, 128), got {hidden!r}")
        widths = [math.prod(input_shape), *(check_integer("hidden", width, low=1) for width in hidden)]
        check_choice("activation", activation, _ACTIVATIONS)
        check_in_range("dropout", dropout, 0, 1, closed="left")
        super().__init__(widths[-1], n_classes)
        layers: list[nn.Module] = []
        for fan_in, fan_out in pairwise(widths):
            layers.append(nn.Linear(fan_in, fan_out))
            if batch_norm:
                layers.append(nn.BatchNorm1d(fan_out))
            layers.append(_ACTIVATIONS[activation]())
            if dropout:
                layers.append(nn.Dropout(dropout))
        self.body = nn.Sequential(*layers)

    def features(self, x: Tensor) -> Tensor:
        """The last hidden layer.

        Parameters
        ----------
        x : Tensor of shape (n, …)
            A batch of inputs, which are flattened.

        Returns
        -------
        Tensor of shape (n, d)
            The features.
        """
        return self.body(x.flatten(1))
