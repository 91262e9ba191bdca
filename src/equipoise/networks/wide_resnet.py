"""Wide residual networks for small images (Zagoruyko & Komodakis 2016)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F

from equipoise._core.checks import check_in_range, check_integer
from equipoise.networks.base import PooledMaps, check_image_shape, start_as_he


class _Block(nn.Module):
    """Normalization and ReLU come before each convolution; the shortcut is 1×1 where the shape changes."""

    def __init__(self, fan_in: int, width: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(fan_in), nn.BatchNorm2d(width)
        self.conv1 = nn.Conv2d(fan_in, width, 3, stride=stride, padding=1, bias=False)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.dropout = nn.Dropout(dropout)
        same = stride == 1 and fan_in == width
        self.shortcut = None if same else nn.Conv2d(fan_in, width, 1, stride=stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        active = F.relu(self.norm1(x))
        hidden = self.conv2(self.dropout(F.relu(self.norm2(self.conv1(active)))))
        kept: Tensor = x if self.shortcut is None else self.shortcut(active)
        return hidden + kept


class WideResNet(PooledMaps):
    """6n + 4 layers in three stages of n wide blocks, then global average pooling; ``"wrn28-10"`` by name.

    Parameters
    ----------
    input_shape : (channels, height, width)
        Shape of one image.
    n_classes : int
        Number of logits.
    depth : int
        6n + 4: 10, 16, 22, 28, 40, ...
    widen : int
        k: the stages have 16k, 32k and 64k channels.
    dropout : float
        Between the two convolutions of a block, such as the 0.3 of ISDA + Dropout.

    References
    ----------
    Zagoruyko & Komodakis: Wide Residual Networks, BMVC 2016.

    Examples
    --------
    >>> WideResNet((3, 32, 32), 10, depth=10, widen=1).head.in_features
    64
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        n_classes: int,
        *,
        depth: int = 28,
        widen: int = 10,
        dropout: float = 0.0,
    ) -> None:
        if (check_integer("depth", depth, low=10) - 4) % 6:
            raise ValueError(f"depth must be 6n + 4 (10, 16, 22, 28, ...), got {depth}")
        k = check_integer("widen", widen, low=1)
        check_in_range("dropout", dropout, 0, 1, closed="left")
        channels, _, _ = check_image_shape(input_shape, 4)
        super().__init__(64 * k, n_classes)
        blocks: list[nn.Module] = []
        fan_in = 16
        for stage in range(3):
            for block in range((depth - 4) // 6):
                blocks.append(_Block(fan_in, 16 * k * 2**stage, 2 if stage and not block else 1, dropout))
                fan_in = 16 * k * 2**stage
        first = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
        self._set_body(start_as_he(nn.Sequential(first, *blocks, nn.BatchNorm2d(fan_in), nn.ReLU())))
