"""The class-preserving auto-encoder: encoder, decoder, critic, mixer and a linear classifier on the latent.

Tables 16–19 of Mondal et al. (2023). ``size="paper"`` is theirs; ``size="small"`` keeps the shapes with fewer
channels, for training on a CPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from equipoise._core.checks import check_choice, check_in_range, check_integer
from equipoise.networks.base import FeaturesAndHead, build_network, check_image_shape


@dataclass(frozen=True)
class _Widths:
    """Channels of the two convolutions (or widths of the two layers), of the dense layers, of the mixer."""

    first: int
    second: int
    dense: int
    mixer: int
    dropout: float


_IMAGE = {"paper": _Widths(64, 128, 1024, 1024, 0.4), "small": _Widths(32, 64, 256, 128, 0.2)}
_TABLE = {"paper": _Widths(512, 256, 512, 512, 0.4), "small": _Widths(128, 64, 128, 64, 0.2)}


_LARGEST_MAP = 16  # before a dense layer; images of up to 64 pixels a side are halved twice, as in the paper


class Autoencoder(FeaturesAndHead):
    """Encoder E, decoder D, critic C, mixer M and linear head L, for images or tables.

    Parameters
    ----------
    input_shape : (channels, height, width) or (columns,)
        Images must have values in [0, 1]: the decoder ends in a sigmoid. Tables are decoded without one. Images of
        more than 64 pixels a side are halved more often than the paper's, until their maps have 16 at most.
    n_classes : int
        Number of logits. Decoder, critic and mixer are told the class.
    latent : int, optional
        m, the width of the latent: 64 for images and 8 for tables by default. The paper has 64 for gray images,
        128 or 256 for color and 8 for tables.
    size : {"small", "paper"}
        Channels for a CPU, or the paper's.
    n_mixed : int
        t, how many latents a mix has.
    dropout : float, optional
        Share dropped in encoder and mixer; 0.4 in the paper, 0.2 where small.
    critic_told : bool
        Whether the critic is told the class, as in the authors' runs; Eq 5 and Table 17 have one that is not.
    encoder : module, name or factory, optional
        In place of the paper's, as for :func:`~equipoise.networks.build_network`; its head gives the latent.

    Examples
    --------
    >>> net = Autoencoder((1, 28, 28), 10, latent=16)
    >>> z = net.features(torch.zeros(4, 1, 28, 28))
    >>> z.shape, net.decode(z, torch.arange(4)).shape
    (torch.Size([4, 16]), torch.Size([4, 1, 28, 28]))
    >>> weights = net.mix_weights(z.reshape(2, 2, 16), torch.tensor([0, 1]))
    >>> torch.allclose(weights.sum(dim=1), torch.ones(2))
    True
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        n_classes: int,
        *,
        latent: int | None = None,
        size: str = "small",
        n_mixed: int = 2,
        dropout: float | None = None,
        critic_told: bool = True,
        encoder: Any = None,
    ) -> None:
        check_choice("size", size, _IMAGE)
        image = len(input_shape) > 1
        self_latent = check_integer("latent", (64 if image else 8) if latent is None else latent, low=1)
        super().__init__(self_latent, n_classes)
        self.input_shape = tuple(int(width) for width in input_shape)
        self.n_classes, self.latent = n_classes, self_latent
        self.n_mixed = check_integer("n_mixed", n_mixed, low=2)
        self.critic_told = critic_told
        told = n_classes if critic_told else 0
        widths = (_IMAGE if image else _TABLE)[size]
        dropped = float(
            check_in_range("dropout", widths.dropout if dropout is None else dropout, 0, 1, closed="left")
        )
        if image:
            shape = check_image_shape(input_shape, 4)
            self.encoder: nn.Module = _image_encoder(shape, self.latent, widths, dropped)
            self.decoder: nn.Module = _ImageDecoder(shape, self.latent + n_classes, widths)
            self.critic: nn.Module = _Critic(
                nn.Sequential(*_image_maps(shape, widths)), shape, told, (widths.dense,)
            )
        else:
            columns = self.input_shape[0]
            self.encoder = nn.Sequential(
                *_dense([columns, widths.first, widths.second], nn.LeakyReLU(0.2), dropped),
                nn.Linear(widths.second, self.latent),
            )
            self.decoder = nn.Sequential(
                *_dense([self.latent + n_classes, widths.first, widths.second], nn.ReLU()),
                nn.Linear(widths.second, columns),
            )
            self.critic = _Critic(nn.Identity(), self.input_shape, told, (widths.dense,) * 3)
        if encoder is not None:
            self.encoder = build_network(encoder, self.input_shape, self.latent)
            _check_width(self.encoder, self.input_shape, self.latent)
        mixed = self.latent * (self.n_mixed + 1) + n_classes
        self.mixer = nn.Sequential(
            *_dense([mixed, *(widths.mixer,) * 4], nn.LeakyReLU(0.2), dropped),
            nn.Linear(widths.mixer, self.n_mixed),
        )
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def features(self, x: Tensor) -> Tensor:
        """The latent z = E(x).

        Parameters
        ----------
        x : Tensor of shape (n, …)
            A batch of inputs.

        Returns
        -------
        Tensor of shape (n, m)
            The latents.
        """
        return self.encoder(x)

    def decode(self, z: Tensor, codes: Tensor) -> Tensor:
        """D(z, y): a sample of class ``codes`` from each latent.

        Parameters
        ----------
        z : Tensor of shape (n, m)
            Latents.
        codes : Tensor of shape (n,)
            The class of each sample.

        Returns
        -------
        Tensor of shape (n, …)
            The samples.
        """
        return self.decoder(torch.cat([z, self._told(codes)], dim=1))

    def criticize(self, x: Tensor, codes: Tensor) -> Tensor:
        """C(x, y) or C(x), one number per sample, not bounded.

        Parameters
        ----------
        x : Tensor of shape (n, …)
            Samples.
        codes : Tensor of shape (n,)
            The class of each sample.

        Returns
        -------
        Tensor of shape (n,)
            The verdicts.
        """
        return self.critic(x, self._told(codes)[:, : None if self.critic_told else 0])

    def mix_weights(self, groups: Tensor, codes: Tensor, noise: Tensor | None = None) -> Tensor:
        """α = M(z₁, …, z_t, noise, y) for groups of latents (n, t, m) of one class each: rows that sum to 1.

        Parameters
        ----------
        groups : Tensor of shape (n, t, m)
            t latents of one class in each row.
        codes : Tensor of shape (n,)
            The class of each sample.
        noise : Tensor of shape (n, m), optional
            What makes the weights random; drawn by default.

        Returns
        -------
        Tensor of shape (n, t)
            The weights.
        """
        if noise is None:
            noise = torch.randn(len(groups), self.latent, device=groups.device, dtype=groups.dtype)
        told = torch.cat([groups.flatten(1), noise, self._told(codes)], dim=1)
        return F.softmax(self.mixer(told), dim=1)

    def _told(self, codes: Tensor) -> Tensor:
        return F.one_hot(codes, self.n_classes).to(self.head.weight.dtype)


def _dense(widths: Sequence[int], activation: nn.Module, dropout: float = 0.0) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(widths):
        layers += [nn.Linear(fan_in, fan_out), nn.BatchNorm1d(fan_out), activation]
        if dropout:
            layers.append(nn.Dropout(dropout))
    return layers


def _map_sizes(height: int, width: int) -> list[tuple[int, int]]:
    """Sides of the maps: halved twice, and again until they are small enough for a dense layer."""
    sizes = [(height, width)]
    while len(sizes) < 3 or max(sizes[-1]) > _LARGEST_MAP:
        sizes.append(((sizes[-1][0] + 1) // 2, (sizes[-1][1] + 1) // 2))
    return sizes


def _down(fan_in: int, fan_out: int, size: tuple[int, int]) -> list[nn.Module]:
    """4×4 convolution of stride 2 to ⌈h/2⌉ × ⌈w/2⌉ ("same" padding)."""
    odd = (size[1] % 2, size[0] % 2)
    pad: list[nn.Module] = [nn.ZeroPad2d((0, odd[0], 0, odd[1]))] if any(odd) else []
    return [*pad, nn.Conv2d(fan_in, fan_out, 4, stride=2, padding=1)]


def _image_maps(
    shape: tuple[int, int, int], widths: _Widths, *, normalize: bool = False, dropout: float = 0.0
) -> list[nn.Module]:
    channels, height, width = shape
    layers: list[nn.Module] = []
    for place, size in enumerate(_map_sizes(height, width)[:-1]):
        fan_out = widths.second if place else widths.first
        layers += _down(channels, fan_out, size)
        if normalize:
            layers.append(nn.BatchNorm2d(fan_out))
        layers.append(nn.LeakyReLU(0.2))
        if dropout:
            layers.append(nn.Dropout(dropout))
        channels = fan_out
    return layers


def _check_width(encoder: nn.Module, shape: tuple[int, ...], latent: int) -> None:
    """An encoder of the user's own gives latents of the width that all other parts take."""
    trained = encoder.training
    try:
        with torch.inference_mode():
            made = encoder.eval()(torch.zeros(1, *shape))
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(f"the encoder cannot take samples of shape {shape}: {reason}") from error
    encoder.train(trained)
    if not isinstance(made, Tensor):
        raise TypeError(f"the encoder must return a tensor, got {type(made).__name__}")
    found = tuple(made.shape)
    if found != (1, latent):
        raise ValueError(
            f"the encoder must turn a sample into {latent} numbers, got the shape {found[1:]}; "
            "set latent to its width, or take another encoder"
        )


def _image_encoder(shape: tuple[int, int, int], latent: int, widths: _Widths, dropout: float) -> nn.Module:
    flat = widths.second * math.prod(_map_sizes(*shape[1:])[-1])
    return nn.Sequential(
        *_image_maps(shape, widths, normalize=True, dropout=dropout),
        nn.Flatten(),
        *_dense([flat, widths.dense], nn.LeakyReLU(0.2), dropout),
        nn.Linear(widths.dense, latent),
    )


class _ImageDecoder(nn.Module):
    def __init__(self, shape: tuple[int, int, int], fan_in: int, widths: _Widths) -> None:
        super().__init__()
        channels, self.height, self.width = shape
        sizes = _map_sizes(self.height, self.width)
        self.start = (widths.second, *sizes[-1])
        self.dense = nn.Sequential(*_dense([fan_in, widths.dense, math.prod(self.start)], nn.ReLU()))
        ups: list[nn.Module] = []
        for _ in sizes[2:]:
            up = nn.ConvTranspose2d(widths.second, widths.second, 4, stride=2, padding=1)
            ups += [up, nn.BatchNorm2d(widths.second), nn.ReLU()]
        self.maps = nn.Sequential(
            *ups,
            nn.ConvTranspose2d(widths.second, widths.first, 4, stride=2, padding=1),
            nn.BatchNorm2d(widths.first),
            nn.ELU(),
            nn.Conv2d(widths.first, channels, 3, padding=1),
            nn.Sigmoid(),
        )

    def forward(self, z: Tensor) -> Tensor:
        maps: Tensor = self.maps(self.dense(z).reshape(len(z), *self.start))
        return maps[:, :, : self.height, : self.width]


class _Critic(nn.Module):
    """No batch norm: the gradient penalty is one of each sample alone."""

    def __init__(self, maps: nn.Module, shape: tuple[int, ...], n_told: int, dense: tuple[int, ...]) -> None:
        super().__init__()
        self.maps = maps
        with torch.no_grad():
            flat = maps(torch.zeros(1, *shape)).numel()
        layers: list[nn.Module] = []
        for fan_in, fan_out in pairwise((flat + n_told, *dense)):
            layers += [nn.Linear(fan_in, fan_out), nn.LeakyReLU(0.2)]
        self.dense = nn.Sequential(*layers, nn.Linear(dense[-1], 1))

    def forward(self, x: Tensor, told: Tensor) -> Tensor:
        seen = self.maps(x).flatten(1)
        return self.dense(torch.cat([seen, told], dim=1)).squeeze(1)
