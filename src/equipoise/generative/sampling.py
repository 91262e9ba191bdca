"""Sampling: the ancestral walk back from noise, whole or strided, and DDIM's with little noise or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from equipoise._core.checks import check_in_range, check_integer, check_type
from equipoise._core.progress import track
from equipoise.generative.schedule import NoiseSchedule

_Denoiser = Callable[..., Tensor]
"""``denoiser(x_t, t, labels)`` or ``denoiser(x_t, t)`` predicts the noise."""


@torch.inference_mode()
def sample(
    denoiser: _Denoiser,
    n: int,
    shape: Sequence[int],
    schedule: NoiseSchedule,
    generator: torch.Generator,
    *,
    labels: Tensor | None = None,
    stride: int | None = None,
    eta: float | None = None,
    guidance: float = 0.0,
    null_label: int | None = None,
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
        Of one image.
    schedule : NoiseSchedule
        The one it was trained with.
    generator : torch.Generator
        All randomness, drawn on the CPU.
    labels : Tensor, optional
        A class code for each image, for a conditional model.
    stride : int, optional
        Number of steps, for a quicker walk; all T by default.
    eta : float, optional
        Noise of a step as a share of the ancestral one's (Song et al. 2021, Eq 16): 0 is DDIM, in which the first
        noise alone decides the image, and 20 to 50 steps are enough. By default the paper's ancestral sampler.
    guidance : float
        w of classifier-free guidance, (1 + w)·ε(x, class) − w·ε(x): 0 draws from the classes as they were learned,
        more draws what is typical of them.
    null_label : int, optional
        The code that stands for "no class"; guidance needs it.
    batch_size : int
        Images at a time.
    verbose : bool, optional
        Show a progress bar; by default where somebody is looking.

    Returns
    -------
    Tensor of shape (n, channels, height, width)
        The images, on the scale of the training images and on the CPU.

    References
    ----------
    Ho, Jain, Abbeel, NeurIPS 2020. Song, Meng, Ermon, ICLR 2021 (DDIM). Ho and Salimans, 2022, Eq 6 (guidance).

    Examples
    --------
    >>> schedule, generator = NoiseSchedule(steps=10), torch.Generator().manual_seed(0)
    >>> sample(lambda x, t, *labels: torch.zeros_like(x), 2, (1, 4, 4), schedule, generator).shape
    torch.Size([2, 1, 4, 4])
    """
    if eta is not None:
        check_in_range("eta", eta, 0, 1)
    if check_in_range("guidance", guidance, 0) > 0 and (labels is None or null_label is None):
        raise ValueError("guidance needs labels, and a model trained with label_dropout > 0")
    device = denoiser_device(denoiser)
    parts = []
    walk = check_type("schedule", schedule, NoiseSchedule).times(stride)
    check_integer("n", n, low=0)
    check_integer("batch_size", batch_size, low=1)
    for start in range(0, n, batch_size):
        size = min(batch_size, n - start)
        asked = None if labels is None else labels[start : start + size].to(device)
        x = torch.randn(size, *shape, generator=generator).to(device)
        for t, previous in track(list(zip(walk, [*walk[1:], 0], strict=True)), "sampling", verbose=verbose):
            predicted = _noise(
                denoiser, x, torch.full((size,), t, device=device), asked, guidance, null_label
            )
            fresh = torch.randn(x.shape, generator=generator).to(device) if previous and eta != 0 else x
            x = schedule.reverse(x, predicted, t, previous, fresh, eta)
        parts.append(x.cpu())
    return torch.cat(parts)


def _noise(
    denoiser: _Denoiser, x: Tensor, now: Tensor, asked: Tensor | None, guidance: float, null: int | None
) -> Tensor:
    if asked is None:
        return denoiser(x, now)
    told = denoiser(x, now, asked)
    if not guidance:
        return told
    assert null is not None
    return (1 + guidance) * told - guidance * denoiser(x, now, torch.full_like(asked, null))


def denoiser_device(denoiser: Any) -> torch.device:
    """Where a network's weights are; the CPU for any other function."""
    first = next(denoiser.parameters(), None) if isinstance(denoiser, nn.Module) else None
    return torch.device("cpu") if first is None else first.device
