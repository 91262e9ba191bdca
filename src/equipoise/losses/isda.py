"""Implicit semantic data augmentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy.typing as npt
import torch
from torch import Tensor

from equipoise._core.checks import check_choice, check_in_range
from equipoise.losses import functional
from equipoise.losses._base import Loss, LossOptions
from equipoise.losses._statistics import LazyBuffers

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ISDALoss(LazyBuffers, Loss):
    """Cross-entropy of z_c + ½λ(t/T)·(ω_c−ω_y)ᵀΣ_y(ω_c−ω_y) (Wang et al. 2021).

    Σ_y is the running covariance of class y's features over all batches seen. λ grows in proportion to the
    epoch t of T.

    Parameters
    ----------
    class_counts : array of shape (C,), optional
        Checked against the logits if given.
    strength : float
        λ at the end of training.
    covariance : {"full", "diagonal"}
        Full matrices need C·d² numbers; the diagonal C·d.

    >>> sorted(ISDALoss.requires)
    ['features', 'head_weight']
    """

    requires: ClassVar[frozenset[str]] = frozenset({"features", "head_weight"})
    count: Tensor | None
    mean: Tensor | None
    sigma: Tensor | None

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        strength: float = 0.5,
        covariance: str = "full",
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, **options)
        self.strength = float(check_in_range("strength", strength, 0))
        self.covariance = check_choice("covariance", covariance, ["full", "diagonal"])
        self.progress = 1.0
        for name in ("count", "mean", "sigma"):
            self.register_buffer(name, None)

    def start_epoch(self, epoch: int, epochs: int) -> None:
        self.progress = (epoch + 1) / max(epochs, 1)

    def per_sample(self, logits: Tensor, target: Tensor, **needs: Tensor) -> Tensor:
        features, head_weight = functional.promote(needs["features"]), needs["head_weight"]
        sigma = self._running(features.detach(), target, logits.shape[-1])
        strength = self.strength * self.progress
        return functional.isda_loss(logits, target, head_weight, sigma, strength=strength, reduction="none")

    @torch.no_grad()
    def _running(self, features: Tensor, target: Tensor, n_classes: int) -> Tensor:
        d = features.shape[1]
        if self.count is None or self.mean is None or self.sigma is None:
            shape = (n_classes, d, d) if self.covariance == "full" else (n_classes, d)
            self.count, self.mean, self.sigma = (
                features.new_zeros(n_classes),
                features.new_zeros(n_classes, d),
                features.new_zeros(shape),
            )
        if self.gathering and target.numel():
            update_covariance_(self.count, self.mean, self.sigma, features, target)
        return self.sigma


def update_covariance_(count: Tensor, mean: Tensor, sigma: Tensor, features: Tensor, target: Tensor) -> None:
    """Merge a batch into running class means and covariances, in place (Chan, Golub & LeVeque 1983)."""
    classes, row = torch.unique(target, return_inverse=True)
    n_new = features.new_zeros(classes.numel()).index_add_(0, row, torch.ones_like(features[:, 0]))
    new_mean = features.new_zeros(classes.numel(), features.shape[1]).index_add_(0, row, features)
    new_mean /= n_new[:, None]
    centered = features - new_mean[row]
    shift = new_mean - mean[classes]
    total = count[classes] + n_new
    old, new = count[classes] / total, n_new / total
    if sigma.ndim == 2:
        spread = torch.zeros_like(new_mean).index_add_(0, row, centered.square()) / n_new[:, None]
        between = (old * new)[:, None] * shift.square()
        sigma[classes] = old[:, None] * sigma[classes] + new[:, None] * spread + between
    else:
        spread = torch.stack([centered[row == k].T @ centered[row == k] for k in range(classes.numel())])
        between = (old * new)[:, None, None] * shift[:, :, None] * shift[:, None, :]
        weight = (new / n_new)[:, None, None]
        sigma[classes] = old[:, None, None] * sigma[classes] + weight * spread + between
    mean[classes] += new[:, None] * shift
    count[classes] = total
