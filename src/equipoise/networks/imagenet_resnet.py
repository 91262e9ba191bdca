"""The residual networks for ImageNet (He et al. 2016, Table 1), for weights that the user brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from equipoise._core.checks import check_choice, check_integer
from equipoise.networks.base import FeaturesAndHead, check_image_shape, start_as_he

_STAGES = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}


def _conv(fan_in: int, fan_out: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(fan_in, fan_out, size, stride=stride, padding=size // 2, bias=False)


class _Block(nn.Module):
    """Two 3×3 convolutions, or 1×1, 3×3 and 1×1 around a bottleneck; weights are named as in torchvision."""

    def __init__(self, fan_in: int, width: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        sizes = (1, 3, 1) if bottleneck else (3, 3)
        widths = (width, width, 4 * width) if bottleneck else (width, width)
        strides = (1, stride, 1) if bottleneck else (stride, 1)
        for number, (size, wide, step) in enumerate(zip(sizes, widths, strides, strict=True), start=1):
            before = fan_in if number == 1 else width
            self.add_module(f"conv{number}", _conv(before, wide, size, step))
            self.add_module(f"bn{number}", nn.BatchNorm2d(wide))
        self.depth, self.relu = len(sizes), nn.ReLU()
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or fan_in != widths[-1]:
            self.downsample = nn.Sequential(_conv(fan_in, widths[-1], 1, stride), nn.BatchNorm2d(widths[-1]))

    def forward(self, x: Tensor) -> Tensor:
        hidden = x
        for number in range(1, self.depth + 1):
            hidden = getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(hidden))
            if number < self.depth:
                hidden = self.relu(hidden)
        return self.relu(hidden + self.downsample(x))


class ImageNetResNet(FeaturesAndHead):
    """18, 34 or 50 layers: a 7×7 convolution, four stages of residual blocks, global average pooling.

    Its weights have torchvision's names, so that a state dict from there fits (``fc`` is read as ``head``).

    Parameters
    ----------
    input_shape : (channels, height, width)
        Shape of one image.
    n_classes : int
        Number of logits.
    depth : {18, 34, 50}
        Number of layers.
    width : int
        Channels of the first stage; 64 in the paper.

    References
    ----------
    He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, CVPR 2016, Table 1.

    Examples
    --------
    >>> net = ImageNetResNet((3, 224, 224), 1000, depth=18)
    >>> sum(p.numel() for p in net.parameters())
    11689512
    """

    def __init__(self, input_shape: Sequence[int], n_classes: int, *, depth: int, width: int = 64) -> None:
        check_choice("depth", depth, list(_STAGES))
        check_integer("width", width, low=1)
        channels, _, _ = check_image_shape(input_shape, 8)
        bottleneck = depth >= 50
        grown = 4 if bottleneck else 1
        super().__init__(8 * width * grown, n_classes)
        self.conv1, self.bn1 = _conv(channels, width, 7, 2), nn.BatchNorm2d(width)
        self.relu, self.maxpool = nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1)
        fan_in = width
        for stage, blocks in enumerate(_STAGES[depth]):
            layers: list[nn.Module] = []
            for block in range(blocks):
                stride = 2 if stage and not block else 1
                layers.append(_Block(fan_in, width * 2**stage, stride, bottleneck))
                fan_in = width * 2**stage * grown
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layers))
        start_as_he(self)
        self.register_load_state_dict_pre_hook(_read_fc_as_head)  # type: ignore[no-untyped-call]

    def features(self, x: Tensor) -> Tensor:
        """The last feature maps, averaged over the image.

        Parameters
        ----------
        x : Tensor of shape (n, 3, height, width)
            A batch of images.

        Returns
        -------
        Tensor of shape (n, d)
            The features.
        """
        maps = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in range(1, 5):
            maps = getattr(self, f"layer{stage}")(maps)
        return maps.mean(dim=(2, 3))


def _read_fc_as_head(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    for name in ("weight", "bias"):
        if f"{prefix}fc.{name}" in state:
            state[f"{prefix}head.{name}"] = state.pop(f"{prefix}fc.{name}")
