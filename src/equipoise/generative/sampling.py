"""Ancestral sampling, whole or strided."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from equipoise._core.progress import track
from equipoise.generative.schedule import NoiseSchedule

Denoiser = Callable[..., Tensor]
"""``denoiser(x_t, t, labels)`` or ``denoiser(x_t, t)`` predicts the noise."""


@torch.inference_mode()
def sample(
    denoiser: Denoiser,
    n: int,
    shape: Sequence[int],
    schedule: NoiseSchedule,
    generator: torch.Generator,
    *,
    labels: Tensor | None = None,
    stride: int | None = None,
    batch_size: int = 250,
    verbose: bool | None = None,
) -> Tensor:
    """Draw images by walking back from noise (Ho et al. 2020, Algorithm 2).

    Parameters
    ----------
    denoiser : callable
        Predicts the noise.
    n : int
        How many images.
    shape : sequence of int
        Channels, height and width of one image.
    schedule : NoiseSchedule
        The one that the denoiser was trained with.
    generator : torch.Generator
        The source of all randomness.
    labels : Tensor of int of shape (n,), optional
        A class code for each image, for a conditional model.
    stride : int, optional
        The number of steps, for a quicker walk; all T by default.
    batch_size : int
        Images that are drawn together.
    verbose : bool, optional
        Whether to show a progress bar; by default if somebody is looking.

    Returns
    -------
    Tensor of shape (n, channels, height, width)
        The images, on the scale of the training images.

    Examples
    --------
    >>> schedule, generator = NoiseSchedule(steps=10), torch.Generator().manual_seed(0)
    >>> sample(lambda x, t, *labels: torch.zeros_like(x), 2, (1, 4, 4), schedule, generator).shape
    torch.Size([2, 1, 4, 4])
    """
    parts = []
    walk = schedule.times(stride)
    for start in range(0, n, batch_size):
        size = min(batch_size, n - start)
        asked = None if labels is None else labels[start : start + size]
        x = torch.randn(size, *shape, generator=generator)
        for t, previous in track(list(zip(walk, [*walk[1:], 0], strict=True)), "sampling", verbose=verbose):
            now = torch.full((size,), t)
            predicted = denoiser(x, now) if asked is None else denoiser(x, now, asked)
            fresh = torch.randn(x.shape, generator=generator) if previous else x
            x = schedule.reverse(x, predicted, t, previous, fresh)
        parts.append(x)
    return torch.cat(parts)
