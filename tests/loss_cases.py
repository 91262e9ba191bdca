"""Batches and losses for the tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from equipoise.losses import Loss, available_losses

NAMES = sorted(available_losses())


def counts_of(n_classes: int, ratio: float = 50.0) -> np.ndarray:
    """An exponential profile, without an order that would hide a dependence on it."""
    counts = np.round(1000 * ratio ** (-np.arange(n_classes) / max(n_classes - 1, 1))).astype(int)
    return np.random.default_rng(0).permutation(counts)


def make(name: str, n_classes: int, counts: Any = None, **params: Any) -> Loss:
    """A loss by name that draws no random labels, as equal calls must agree."""
    if name == "disturblabel":
        params.setdefault("rate", 0.0)
    return available_losses()[name](counts_of(n_classes) if counts is None else counts, **params)


def batch(
    n: int, n_classes: int, d: int = 5, seed: int = 0, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Logits, targets, and everything that any loss may require."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(n, d, generator=generator, dtype=dtype)
    weight = torch.randn(n_classes, d, generator=generator, dtype=dtype)
    target = torch.randint(n_classes, (n,), generator=generator)
    return features @ weight.T, target, {"features": features, "head_weight": weight}


def call(loss: Loss, logits: Tensor, target: Tensor, extras: dict[str, Tensor], **options: Any) -> Tensor:
    return loss(logits, target, **{name: extras[name] for name in loss.requires}, **options)
