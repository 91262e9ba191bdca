"""A small convolutional network for images of about 28×28 and 32×32."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from equipoise._core.checks import check_in_range, check_integer
from equipoise.networks.base import PooledMaps, check_image_shape


class ConvNet(PooledMaps):
    """Stages of 3×3 convolution, batch norm, ReLU and 2×2 max-pooling; average-pooled features.

    Parameters
    ----------
    input_shape : (channels, height, width)
        Shape of one image.
    n_classes : int
        Number of logits.
    widths : sequence of int
        Channels of the stages; the last one is the feature width. Each stage but the last halves the image.
    dropout : float
        Share of features dropped before the head while training.

    Examples
    --------
    >>> import torch
    >>> ConvNet((1, 28, 28), 10)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        n_classes: int,
        *,
        widths: Sequence[int] = (16, 32, 64),
        dropout: float = 0.0,
    ) -> None:
        for width in widths:
            check_integer("widths", width, low=1)
        if not widths:
            raise ValueError("widths must not be empty")
        channels, _, _ = check_image_shape(input_shape, 2 ** (len(widths) - 1))
        check_in_range("dropout", dropout, 0, 1, closed="left")
        super().__init__(widths[-1], n_classes, dropout)
        layers: list[nn.Module] = []
        for stage, width in enumerate(widths):
            if stage:
                layers.append(nn.MaxPool2d(2))
            layers += [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
            channels = width
        self._set_body(nn.Sequential(*layers))
