"""The residual networks for CIFAR (He et al. 2016, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F

from equipoise._core.checks import check_choice, check_integer
from equipoise.networks.base import PooledMaps, check_image_shape, start_as_he


def _conv(fan_in: int, fan_out: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(fan_in, fan_out, 3, stride=stride, padding=1, bias=False)


class _PaddedShortcut(nn.Module):
    """Option A: take every second pixel and pad the new channels with zeros, evenly on both sides."""

    def __init__(self, new_channels: int, stride: int) -> None:
        super().__init__()
        self.before, self.stride = new_channels // 2, stride
        self.after = new_channels - self.before

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.before, self.after))


class _Block(nn.Module):
    def __init__(self, fan_in: int, width: int, stride: int, shortcut: str) -> None:
        super().__init__()
        self.conv1, self.norm1 = _conv(fan_in, width, stride), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = _conv(width, width), nn.BatchNorm2d(width)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or fan_in != width:
            self.shortcut = (
                _PaddedShortcut(width - fan_in, stride)
                if shortcut == "A"
                else nn.Sequential(
                    nn.Conv2d(fan_in, width, 1, stride=stride, bias=False), nn.BatchNorm2d(width)
                )
            )

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(hidden)) + self.shortcut(x))


class ResNet(PooledMaps):
    """6n + 2 layers in three stages of n residual blocks, then global average pooling.

    Parameters
    ----------
    input_shape : (channels, height, width)
        Shape of one image.
    n_classes : int
        Number of logits.
    depth : int
        6n + 2: 8, 20, 32, 44, ...
    width : int
        Channels of the first stage; the features have four times as many.
    shortcut : {"A", "B"}
        Where the shape changes: zero padding without parameters, or a 1×1 convolution.

    References
    ----------
    He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, CVPR 2016.

    Examples
    --------
    >>> net = ResNet((3, 32, 32), 10, depth=20)
    >>> sum(p.numel() for p in net.parameters())  # 0.27 M in Table 6 of the paper
    269722
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        n_classes: int,
        *,
        depth: int = 20,
        width: int = 16,
        shortcut: str = "A",
    ) -> None:
        if (check_integer("depth", depth, low=8) - 2) % 6:
            raise ValueError(f"depth must be 6n + 2 (8, 20, 32, ...), got {depth}")
        check_choice("shortcut", shortcut, ["A", "B"])
        check_integer("width", width, low=1)
        channels, _, _ = check_image_shape(input_shape, 4)
        super().__init__(4 * width, n_classes)
        blocks: list[nn.Module] = []
        fan_in = width
        for stage in range(3):
            for block in range((depth - 2) // 6):
                stride = 2 if stage and not block else 1
                blocks.append(_Block(fan_in, width * 2**stage, stride, shortcut))
                fan_in = width * 2**stage
        self._set_body(
            start_as_he(nn.Sequential(_conv(channels, width), nn.BatchNorm2d(width), nn.ReLU(), *blocks))
        )
