"""Plain encoders, decoders and discriminators in the manner of DCGAN, for the methods that auto-encode or play."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from equipoise._core.checks import check_integer


def _sizes(shape: Sequence[int], depth: int) -> list[tuple[int, int]]:
    """Height and width before each halving, and after the last; no side below 1."""
    sizes = [(int(shape[1]), int(shape[2]))]
    for _ in range(depth):
        sizes.append(((sizes[-1][0] + 1) // 2, (sizes[-1][1] + 1) // 2))
    return sizes


class _Down(nn.Module):
    """4×4 convolution of stride 2 to half the size, rounded up."""

    def __init__(self, fan_in: int, fan_out: int, size: tuple[int, int], normalize: bool) -> None:
        super().__init__()
        self.pad = (0, size[1] % 2, 0, size[0] % 2)
        self.conv = nn.Conv2d(fan_in, fan_out, 4, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(fan_out) if normalize else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return F.leaky_relu(self.norm(self.conv(F.pad(x, self.pad))), 0.2)


class _Crop(nn.Module):
    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :, : self.size[0], : self.size[1]]


def check_widths(widths: Sequence[int]) -> None:
    """At least one layer, each of one unit at least."""
    if not isinstance(widths, Sequence) or not widths:
        raise TypeError(f"widths must be whole numbers, one a layer, such as (32, 64), got {widths!r}")
    for width in widths:
        check_integer("widths", width, low=1)


def encoder(shape: Sequence[int], out: int, widths: Sequence[int], *, normalize: bool = True) -> nn.Module:
    """From samples to vectors of width ``out``: convolutions for (channels, height, width), else dense layers.

    >>> encoder((1, 28, 28), 7, (8, 16))(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 7])
    """
    check_widths(widths)
    layers: list[nn.Module] = []
    if len(shape) == 1:
        for fan_in, fan_out in pairwise([shape[0], *widths]):
            layers += [nn.Linear(fan_in, fan_out), nn.LeakyReLU(0.2)]
        return nn.Sequential(*layers, nn.Linear(widths[-1], out))
    sizes = _sizes(shape, len(widths))
    for place, (fan_in, fan_out) in enumerate(pairwise([shape[0], *widths])):
        layers.append(_Down(fan_in, fan_out, sizes[place], normalize and place > 0))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(widths[-1] * math.prod(sizes[-1]), out))


def decoder(shape: Sequence[int], fan_in: int, widths: Sequence[int], *, last: str = "none") -> nn.Module:
    """The mirror image of :func:`encoder`; ``last`` is ``"sigmoid"``, ``"tanh"`` or ``"none"``.

    >>> decoder((1, 28, 28), 7, (8, 16), last="tanh")(torch.zeros(2, 7)).shape
    torch.Size([2, 1, 28, 28])
    """
    end = {"sigmoid": nn.Sigmoid(), "tanh": nn.Tanh(), "none": nn.Identity()}[last]
    turned = list(reversed(list(widths)))
    layers: list[nn.Module] = []
    if len(shape) == 1:
        for before, after in pairwise([fan_in, *turned]):
            layers += [nn.Linear(before, after), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(turned[-1], shape[0]), end)
    sizes = list(reversed(_sizes(shape, len(widths))))
    start = (turned[0], *sizes[0])
    layers += [nn.Linear(fan_in, math.prod(start)), nn.Unflatten(1, start), nn.ReLU()]
    for place, (before, after) in enumerate(pairwise([*turned, shape[0]])):
        layers += [nn.ConvTranspose2d(before, after, 4, stride=2, padding=1), _Crop(sizes[place + 1])]
        if place < len(turned) - 1:
            layers += [nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, end)


class EncoderDecoder(nn.Module):
    """An encoder and a decoder; called, it reconstructs."""

    def __init__(self, shape: Sequence[int], latent: int, widths: Sequence[int], last: str) -> None:
        super().__init__()
        self.latent = check_integer("latent", latent, low=1)
        self.encoder = encoder(shape, self.latent, widths)
        self.decoder = decoder(shape, self.latent, widths, last=last if len(shape) > 1 else "none")

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.encoder(x))


@torch.inference_mode()
def encode(network: nn.Module, inputs: Tensor, block: int = 1024) -> Tensor:
    """Outputs in evaluation mode, block by block."""
    network.eval()
    made = torch.cat([network(part) for part in torch.split(inputs, block)])
    if not bool(made.isfinite().all()):
        raise ValueError("the trained network's outputs are not finite; a lower lr may help")
    return made
