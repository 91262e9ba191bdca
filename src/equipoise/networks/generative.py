"""The deep generative classifier: one latent behind both the sample and its label."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from equipoise._core.checks import check_integer
from equipoise.networks.encoders import check_widths, decoder, encoder


class GenerativeNetwork(nn.Module):
    """q(z|x, y), p(x|z), p(y|z) and a mixture prior p(z) with a component per class (Wang et al. 2020).

    Parameters
    ----------
    input_shape : (channels, height, width) with values in [0, 1], or (columns,)
    n_classes, latent : int
    widths : sequence of int
        Of the encoder; the decoder mirrors it.
    n_draws : int
        Latents a class that a prediction looks at.
    clf_weight, kl_weight : float
        Weights of −log p(y|z) and of the divergence, beside ½‖x − x̂‖².

    Examples
    --------
    >>> net = GenerativeNetwork((4,), 3, latent=2, widths=(8,), n_draws=2)
    >>> net(torch.zeros(5, 4)).shape
    torch.Size([5, 3])
    """

    noise: Tensor

    def __init__(
        self,
        input_shape: Sequence[int],
        n_classes: int,
        *,
        latent: int = 64,
        widths: Sequence[int] = (32, 64),
        n_draws: int = 10,
        clf_weight: float = 10.0,
        kl_weight: float = 1e-4,
    ) -> None:
        super().__init__()
        self.n_classes, self.latent = n_classes, check_integer("latent", latent, low=1)
        self.clf_weight, self.kl_weight = clf_weight, kl_weight
        check_widths(widths)
        hidden = 2 * widths[-1]
        self.body = encoder(input_shape, hidden, widths)
        self.posterior = nn.Sequential(
            nn.Linear(hidden + n_classes, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, 2 * self.latent)
        )
        last = "sigmoid" if len(input_shape) > 1 else "none"
        self.decoder = decoder(input_shape, self.latent, widths, last=last)
        self.head = nn.Linear(self.latent, n_classes)
        self.prior_mean = nn.Parameter(torch.randn(n_classes, self.latent))
        self.prior_log_scale = nn.Parameter(torch.zeros(n_classes, self.latent))
        generator = torch.Generator().manual_seed(0)
        draws = check_integer("n_draws", n_draws, low=1)
        self.register_buffer("noise", torch.randn(draws, self.latent, generator=generator))

    def _posterior(self, hidden: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        told = F.one_hot(codes, self.n_classes).to(hidden)
        mean, log_scale = self.posterior(torch.cat([hidden, told], dim=1)).chunk(2, dim=1)
        return mean, log_scale.clamp(-7, 4)

    def _terms(self, x: Tensor, codes: Tensor, hidden: Tensor, noise: Tensor) -> Tensor:
        """½‖x − x̂‖² + a·CE + b·(log q(z|x, y) − log p(z)) of each sample, with z = μ + σ·noise."""
        mean, log_scale = self._posterior(hidden, codes)
        z = mean + log_scale.exp() * noise
        rebuilt = 0.5 * ((self.decoder(z) - x) ** 2).flatten(1).sum(dim=1)
        wrong = F.cross_entropy(self.head(z), codes, reduction="none")
        log_q = _log_normal(noise, torch.zeros_like(noise), torch.zeros_like(noise)) - log_scale.sum(dim=1)
        of_class = _log_normal(z.unsqueeze(1), self.prior_mean, self.prior_log_scale)
        log_p = of_class.logsumexp(dim=1) - math.log(self.n_classes)
        return rebuilt + self.clf_weight * wrong + self.kl_weight * (log_q - log_p)

    def objective(self, x: Tensor, codes: Tensor) -> Tensor:
        """The mean over a batch, with a fresh draw of z."""
        noise = torch.randn(len(x), self.latent, device=x.device)
        return self._terms(x, codes, self.body(x), noise).mean()

    def forward(self, x: Tensor) -> Tensor:
        """log p(x, y) for every y, up to a constant: log-mean-exp over draws of minus the objective's terms."""
        hidden, scores = self.body(x), []
        for code in range(self.n_classes):
            codes = torch.full((len(x),), code, device=x.device)
            draws = [-self._terms(x, codes, hidden, noise.expand(len(x), -1)) for noise in self.noise]
            scores.append(torch.stack(draws).logsumexp(dim=0) - math.log(len(self.noise)))
        return torch.stack(scores, dim=1)


def _log_normal(x: Tensor, mean: Tensor, log_scale: Tensor) -> Tensor:
    standard = (x - mean) * (-log_scale).exp()
    return (-0.5 * standard**2 - log_scale - 0.5 * math.log(2 * math.pi)).sum(dim=-1)
