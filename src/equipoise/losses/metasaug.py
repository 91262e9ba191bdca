"""MetaSAug: semantic augmentation with covariances that are corrected on a meta set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy.typing as npt
from torch import Tensor

from equipoise._core.checks import check_choice, check_positive
from equipoise.losses import functional
from equipoise.losses._learned import LossWithCovariance, SeenBatch
from equipoise.losses.functional.shared import negative_log_likelihood, reduce_loss


class MetaSAugLoss(LossWithCovariance):
    """Class-balanced ISDA whose covariances are corrected by meta gradients (Li et al. 2021).

    Parameters
    ----------
    class_counts : array of shape (C,)
        Training samples of each class.
    strength : float
        λ of ISDA at the end of training; it grows in proportion to the epoch.
    beta : float
        β of the effective number that weighs the classes.
    covariance : {"auto", "full", "diagonal"}
        As for :class:`MetaENumLoss`.
    sigma_lr : float
        The step of Σ along the meta gradient, as for :class:`MetaENumLoss`.
    preset : {"default", "paper"}
        ``"paper"`` is the authors' own training in what it does otherwise: a class remembers all samples it
        ever had, a batch enters its covariances after it was trained on, the learned covariances are the ones
        that go on, and the mean divides by the sum of the class weights in the batch.

    References
    ----------
    Li et al.: MetaSAug: Meta Semantic Augmentation for Long-Tailed Visual Recognition, CVPR 2021.

    Examples
    --------
    >>> MetaSAugLoss([9, 1]).covariance
    'auto'
    """

    def __init__(
        self,
        class_counts: npt.ArrayLike,
        *,
        strength: float = 0.5,
        beta: float = 0.9999,
        covariance: str = "auto",
        sigma_lr: float = 100.0,
        preset: str = "default",
    ) -> None:
        super().__init__(class_counts, beta=beta, covariance=covariance, sigma_lr=sigma_lr)
        self.as_published = check_choice("preset", preset, ["default", "paper"]) == "paper"
        self.fades = not self.as_published
        self._waiting: SeenBatch | None = None
        self.strength = float(check_positive("strength", strength))

    def observe(self, seen: SeenBatch, *, training: bool = True) -> None:
        if not (training and self.as_published):
            super().observe(seen, training=training)
            return
        if self._waiting is not None:
            super().observe(self._waiting)
        self._waiting = seen

    def learn(self, gradients: Sequence[Tensor | None]) -> None:
        super().learn(gradients)
        if self.as_published and self.statistics is not None and self.sigma is not None:
            self.statistics.sigma.copy_(self.sigma)

    def forward(self, logits: Tensor, seen: SeenBatch, head_weight: Tensor) -> Tensor:
        if self.sigma is None:
            each = negative_log_likelihood(logits, seen.target)
        else:
            weight = head_weight.to(self.sigma.dtype)
            strength = self.strength * self.progress
            each = functional.isda_loss(
                logits, seen.target, weight, self.sigma, strength=strength, reduction="none"
            )
        weight = self.class_weight.to(each.dtype)[seen.target]
        if self.as_published:
            return reduce_loss(each, "mean", weight if seen.weight is None else weight * seen.weight)
        return reduce_loss(weight * each, "mean", seen.weight)
