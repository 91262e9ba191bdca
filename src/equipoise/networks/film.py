"""Feature-wise linear modulation: a network that is told the loss it will be judged by."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from equipoise._core.checks import check_integer


class FiLM(nn.Module):
    """f ↦ σ(λ)·f + μ(λ), with two small networks for σ and μ (Lieberman et al. §4.2; Perez et al. 2018).

    Parameters
    ----------
    n_params : int
        Length of λ.
    channels : int
        Length of f.
    hidden : int
        Width of the hidden layer; the authors take 128.
    residual : bool
        Center σ at 1 and start from the identity, so that an untrained modulation changes nothing. The
        authors use torch's default initialization (``False``).

    Examples
    --------
    >>> film = FiLM(2, 5)
    >>> f = torch.randn(3, 5)
    >>> torch.equal(film(f, torch.rand(2)), f)
    True
    """

    def __init__(self, n_params: int, channels: int, hidden: int = 128, residual: bool = True) -> None:
        super().__init__()
        check_integer("n_params", n_params, low=1)
        check_integer("hidden", hidden, low=1)
        self.residual = residual
        self.scale = _small_mlp(n_params, hidden, channels, zero=residual)
        self.shift = _small_mlp(n_params, hidden, channels, zero=residual)

    def forward(self, features: Tensor, params: Tensor) -> Tensor:
        """Features, scaled and shifted by what two small networks make of λ.

        Parameters
        ----------
        features : Tensor of shape (n, d)
            The backbone's features.
        params : Tensor of shape (p,) or (n, p)
            λ, one for all rows or one a row.

        Returns
        -------
        Tensor of shape (n, d)
            The modulated features.
        """
        scale = self.scale(params)
        if self.residual:
            scale = 1 + scale
        return torch.addcmul(self.shift(params).to(features.dtype), features, scale.to(features.dtype))


def _small_mlp(n_in: int, hidden: int, n_out: int, zero: bool) -> nn.Sequential:
    last = nn.Linear(hidden, n_out)
    if zero:
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(n_in, hidden), nn.ReLU(), last)


class _Answer(nn.Module):
    """What follows the backbone, as a module of its own."""

    def __init__(self, network: ConditionalNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Tensor, params: Tensor) -> Tensor:
        return self.network.answer(features, params)


class ConditionalNetwork(nn.Module):
    """A network whose features are modulated by λ before the head.

    The modulation sits after the backbone, so many λ cost one backbone pass.

    Parameters
    ----------
    network : nn.Module
        With ``features(x)`` and a linear ``head``.
    default : sequence of float
        The λ that is used where none is given.
    modulate : bool
        ``False`` is the ablation: λ is drawn for the loss but the network does not see it (Eq 8).
    hidden : int
        The width of the modulating networks.
    residual : bool
        Whether the modulation starts from the identity: the scale is 1 plus what the network says.
    center, spread : sequences of float, optional
        Subtracted from λ and divided by before the modulation sees it; by default it sees λ as it is.

    Examples
    --------
    >>> from equipoise.networks import build_network
    >>> net = ConditionalNetwork(build_network("mlp", (4,), 2), default=[0.2, 1.0])
    >>> net((torch.zeros(3, 4), torch.tensor([0.5, 2.0]))).shape
    torch.Size([3, 2])
    """

    default: Tensor
    center: Tensor
    spread: Tensor

    def __init__(
        self,
        network: nn.Module,
        default: Any,
        *,
        modulate: bool = True,
        hidden: int = 128,
        residual: bool = True,
        center: Any = None,
        spread: Any = None,
    ) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("default", torch.as_tensor(default, dtype=torch.float32).reshape(-1))
        for name, value, plain in (("center", center, 0.0), ("spread", spread, 1.0)):
            given = torch.full_like(self.default, plain) if value is None else torch.as_tensor(value)
            self.register_buffer(name, given.to(self.default), persistent=False)
        channels = int(self.head.in_features)
        self.film = FiLM(len(self.default), channels, hidden, residual) if modulate else None

    @property
    def head(self) -> Any:
        """The network's linear head."""
        return self.network.head

    @head.setter
    def head(self, head: nn.Module) -> None:
        self.network.head = head

    def features(self, x: Tensor) -> Tensor:
        """The backbone's features, which do not depend on λ.

        Parameters
        ----------
        x : Tensor of shape (n, …)
            A batch of inputs.

        Returns
        -------
        Tensor of shape (n, d)
            The features.
        """
        return self.network.features(x)  # type: ignore[operator]

    def answer(self, features: Tensor, params: Tensor | None = None) -> Tensor:
        """Logits from features, under λ of shape (d,) or (n, d).

        Parameters
        ----------
        features : Tensor of shape (n, d)
            The backbone's features.
        params : Tensor of shape (p,) or (n, p), optional
            λ; the default one if none is given.

        Returns
        -------
        Tensor of shape (n, C)
            The logits.
        """
        if self.film is not None:
            told = self.default if params is None else params
            features = self.film(features, (told - self.center) / self.spread)
        return self.head(features)

    @torch.inference_mode()
    def exact_answer(self, features: Tensor, params: Tensor) -> Tensor:
        """The same in double precision, so that a row's answer does not depend on which rows stand beside it.

        Parameters
        ----------
        features : Tensor of shape (n, d)
            The backbone's features.
        params : Tensor of shape (p,) or (n, p)
            λ.

        Returns
        -------
        Tensor of shape (n, C)
            The logits, in double precision.
        """
        small = {
            f"network.{name}": value.double()
            for name, value in self.state_dict().items()
            if name.startswith(("film.", "network.head."))
        }
        return functional_call(_Answer(self), small, (features.double(), params.double()))

    def forward(self, x: Tensor | tuple[Tensor, Tensor]) -> Tensor:
        """The logits of a batch.

        Parameters
        ----------
        x : Tensor or pair of Tensor
            A batch, or a pair of a batch and λ.

        Returns
        -------
        Tensor of shape (n, C)
            The logits.
        """
        inputs, params = x if isinstance(x, (tuple, list)) else (x, None)
        return self.answer(self.features(inputs), params)
