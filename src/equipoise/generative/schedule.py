"""The noise schedule: how an image becomes noise, and the step back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from equipoise._core.checks import check_fraction, check_integer

_MOST_STEPS = 1_000_000


@dataclass(frozen=True)
class NoiseSchedule:
    """A linear schedule β_1 … β_T (Ho et al. 2020; Nicoletti et al., App. J.1).

    x_t = √ᾱ_t x_0 + √(1−ᾱ_t) ε with ᾱ_t = Π_{s≤t} (1−β_s), t = 1 … T.

    Attributes
    ----------
    first : float
        β_1.
    last : float
        β_T.
    steps : int
        T.

    Examples
    --------
    >>> NoiseSchedule().alpha_bar(torch.tensor([1000])).item() < 1e-4
    True
    """

    first: float = 1e-4
    last: float = 2e-2
    steps: int = 1000

    def __post_init__(self) -> None:
        check_fraction("first", self.first)
        check_fraction("last", self.last)
        check_integer("steps", self.steps, low=2, high=_MOST_STEPS)

    @cached_property
    def _table(self) -> Tensor:
        beta = torch.linspace(self.first, self.last, self.steps, dtype=torch.float64)
        return torch.cat([torch.ones(1, dtype=torch.float64), torch.cumprod(1 - beta, 0)])

    def alpha_bar(self, t: Tensor) -> Tensor:
        """ᾱ_t; t = 0 is the image itself.

        Parameters
        ----------
        t : Tensor of int
            Times from 0 to T.

        Returns
        -------
        Tensor
            ᾱ at each.
        """
        return self._table.to(t.device)[t]

    def add_noise(self, clean: Tensor, noise: Tensor, t: Tensor) -> Tensor:
        """x_t from x_0 and ε.

        Parameters
        ----------
        clean : Tensor of shape (n, …)
            x_0.
        noise : Tensor of shape (n, …)
            ε.
        t : Tensor of int of shape (n,)
            The time of each image.

        Returns
        -------
        Tensor of shape (n, …)
            x_t.
        """
        kept = self.alpha_bar(t).to(clean.dtype).to(clean.device).reshape(-1, *[1] * (clean.ndim - 1))
        return kept.sqrt() * clean + (1 - kept).sqrt() * noise

    def times(self, stride: int | None = None) -> list[int]:
        """T, …, 1: all of them, or ``stride`` evenly spaced ones for a quicker sampler.

        Parameters
        ----------
        stride : int, optional
            How many times; all by default.

        Returns
        -------
        list of int
            The times, falling.

        Examples
        --------
        >>> NoiseSchedule(steps=10).times(3)
        [10, 6, 1]
        """
        if stride is None or stride >= self.steps:
            return list(range(self.steps, 0, -1))
        check_integer("stride", stride, low=2)
        spaced = torch.linspace(self.steps, 1, stride, dtype=torch.float64).round().int().tolist()
        return sorted(set(spaced), reverse=True)

    def reverse(
        self, noisy: Tensor, predicted: Tensor, t: int, previous: int, fresh: Tensor, eta: float | None = None
    ) -> Tensor:
        """x_s from x_t, s < t, given the predicted noise: (x_t − β/√(1−ᾱ_t)·ε̂)/√α + σ·z, no noise into s = 0.

        α = ᾱ_t/ᾱ_s and β = 1 − α. For s = t − 1 they are the schedule's own and σ² = β, as in the paper. A longer
        step takes the variance of x_s given x_t and x_0, σ² = β(1−ᾱ_s)/(1−ᾱ_t) (Song et al. 2021, Eq 16 with
        η = 1): with β, which is far larger there, a walk of 30 steps blurs what the network knows by heart.

        With ``eta`` the step is Song et al.'s Eq 12, √ᾱ_s·x̂_0 + √(1−ᾱ_s−η²σ²)·ε̂ + ησ·z with that variance.

        Parameters
        ----------
        noisy : Tensor of shape (n, …)
            x_t.
        predicted : Tensor of shape (n, …)
            ε̂, the predicted noise.
        t : int
            The time of ``noisy``.
        previous : int
            s, the time to go to.
        fresh : Tensor of shape (n, …)
            z, new noise.
        eta : float, optional
            η, the noise as a share of the ancestral step's; 0 is DDIM.

        Returns
        -------
        Tensor of shape (n, …)
            x_s.
        """
        now, before = float(self._table[t]), float(self._table[previous])
        alpha = now / before
        beta = 1 - alpha
        posterior = beta * (1 - before) / (1 - now)
        if eta is not None:
            variance = eta**2 * posterior
            clean = (noisy - (1 - now) ** 0.5 * predicted) / now**0.5
            mean = before**0.5 * clean + max(1 - before - variance, 0.0) ** 0.5 * predicted
        else:
            variance = beta if previous == t - 1 else posterior
            mean = (noisy - beta / (1 - now) ** 0.5 * predicted) / alpha**0.5
        return mean if previous == 0 or variance == 0 else mean + variance**0.5 * fresh
