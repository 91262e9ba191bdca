"""The U-Net of diffusion models: an image and a time in, a noise image out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from equipoise._core.checks import check_choice, check_in_range, check_integer

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"channels": (64, 128, 256, 256), "down": 2, "attention": (1, 2), "dropout": 0.1},
    "small": {"channels": (32, 64, 64), "down": 1, "attention": (1,), "dropout": 0.1},
    "tiny": {"channels": (16, 32), "down": 1, "attention": (), "dropout": 0.0},
}
"""``paper`` is Appendix J.1 of Nicoletti et al.; the others fit a CPU."""


def _time_embedding(t: Tensor, dim: int) -> Tensor:
    """Sines and cosines of t at geometrically spaced frequencies (Vaswani et al. 2017; Ho et al. 2020).

    >>> _time_embedding(torch.tensor([0.0]), 4)
    tensor([[0., 0., 1., 1.]])
    """
    half = dim // 2
    frequency = torch.exp(-math.log(10_000) * torch.arange(half, device=t.device) / max(half - 1, 1))
    angle = t.float()[:, None] * frequency
    return torch.cat([angle.sin(), angle.cos()], dim=1)


def _norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(math.gcd(channels, 8), channels)


class _Attention(nn.Module):
    """Self-attention over the pixels, normalized before, added after."""

    def __init__(self, channels: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm = _norm(channels)
        self.mix = nn.Conv2d(channels, 3 * channels, 1)
        self.out = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        n, c, h, w = x.shape
        q, k, v = self.mix(self.norm(x)).reshape(n, 3, self.heads, c // self.heads, h * w).unbind(1)
        mixed = F.scaled_dot_product_attention(*(a.transpose(-1, -2) for a in (q, k, v)))
        mixed = mixed.transpose(-1, -2).reshape(n, c, h, w)
        return x + self.out(mixed)


class _Block(nn.Module):
    """A residual block that is told the time, with or without attention."""

    def __init__(self, c_in: int, c_out: int, told: int, dropout: float, attend: bool) -> None:
        super().__init__()
        self.first = nn.Sequential(_norm(c_in), nn.SiLU(), nn.Conv2d(c_in, c_out, 3, padding=1))
        self.time = nn.Linear(told, c_out)
        self.second = nn.Sequential(
            _norm(c_out), nn.SiLU(), nn.Dropout(dropout), nn.Conv2d(c_out, c_out, 3, padding=1)
        )
        self.skip: nn.Module = nn.Identity() if c_in == c_out else nn.Conv2d(c_in, c_out, 1)
        self.attend: nn.Module = _Attention(c_out) if attend else nn.Identity()

    def forward(self, x: Tensor, told: Tensor) -> Tensor:
        hidden = self.first(x) + self.time(told)[:, :, None, None]
        return self.attend(self.second(hidden) + self.skip(x))


class UNet(nn.Module):
    """ε_θ(x_t, t): residual blocks over several resolutions, joined by skips (Nicoletti et al., App. J.1).

    Parameters
    ----------
    input_shape : (channels, height, width)
        Any size: a level halves it, rounding up, and the way up returns to the size of its skip.
    preset : {"paper", "small", "tiny"}
    n_classes : int
        Classes to condition on; 0 for none.

    >>> UNet((1, 14, 14), "tiny")(torch.zeros(2, 1, 14, 14), torch.tensor([1, 9])).shape
    torch.Size([2, 1, 14, 14])
    """

    def __init__(self, input_shape: Sequence[int], preset: str = "small", n_classes: int = 0) -> None:
        super().__init__()
        plan = PRESETS[check_choice("preset", preset, PRESETS)]
        widths: tuple[int, ...] = plan["channels"]
        dropout = float(check_in_range("dropout", plan["dropout"], 0, 1, closed="left"))
        self.n_classes = check_integer("n_classes", n_classes, low=0)
        colors, height, width = (int(size) for size in input_shape)
        if min(height, width) < 2 ** (len(widths) - 1):
            raise ValueError(
                f"input_shape must be at least {2 ** (len(widths) - 1)} wide, got {(height, width)}"
            )
        self.base, told = widths[0], 4 * widths[0]
        self.time = nn.Sequential(nn.Linear(self.base, told), nn.SiLU(), nn.Linear(told, told), nn.SiLU())
        self.label = nn.Embedding(n_classes, told) if n_classes else None
        self.enter = nn.Conv2d(colors, widths[0], 3, padding=1)
        self.down = nn.ModuleList()
        skips, c = [widths[0]], widths[0]
        for level, wide in enumerate(widths):
            attend = level in plan["attention"]
            for _ in range(plan["down"]):
                self.down.append(_Block(c, wide, told, dropout, attend))
                c = wide
                skips.append(c)
            if level < len(widths) - 1:
                self.down.append(nn.Conv2d(c, c, 3, stride=2, padding=1))
                skips.append(c)
        self.middle = nn.ModuleList([_Block(c, c, told, dropout, True), _Block(c, c, told, dropout, False)])
        self.up = nn.ModuleList()
        for level, wide in reversed(list(enumerate(widths))):
            for _ in range(plan["down"] + 1):
                self.up.append(_Block(c + skips.pop(), wide, told, dropout, level in plan["attention"]))
                c = wide
        last = nn.Conv2d(c, colors, 3, padding=1)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)  # type: ignore[arg-type]
        self.leave = nn.Sequential(_norm(c), nn.SiLU(), last)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor, t: Tensor, labels: Tensor | None = None) -> Tensor:
        told = self.time(_time_embedding(t, self.base))
        if self.label is not None:
            if labels is None:
                raise ValueError("this network was made for classes: labels are needed")
            told = told + self.label(labels)
        x = self.enter(x.contiguous(memory_format=torch.channels_last))
        skips = [x]
        for layer in self.down:
            x = layer(x, told) if isinstance(layer, _Block) else layer(x)
            skips.append(x)
        for layer in self.middle:
            x = layer(x, told)
        for layer in self.up:
            skip = skips.pop()
            if x.shape[-2:] != skip.shape[-2:]:
                x = F.interpolate(x, size=skip.shape[-2:], mode="nearest")
            x = layer(torch.cat([x, skip], dim=1), told)
        return self.leave(x)
