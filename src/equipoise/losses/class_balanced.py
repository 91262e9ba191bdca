"""Weights from effective numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from equipoise._core.checks import FloatArray, check_in_range
from equipoise.losses import functional
from equipoise.losses._base import Loss, LossOptions
from equipoise.losses._links import Link
from equipoise.losses.cross_entropy import reweighted_prior
from equipoise.losses.focal import focus
from equipoise.theory.effective_number import effective_number

if TYPE_CHECKING:
    from typing_extensions import Unpack


def class_balanced_weight(class_counts: npt.ArrayLike, beta: float) -> Tensor:
    """(1−β)/(1−β^n), normalized to sum to the number of classes, as float32."""
    check_in_range("beta", beta, 0, 1)
    weight = 1 / effective_number(class_counts, beta)
    return torch.as_tensor(np.asarray(weight * weight.size / weight.sum()), dtype=torch.float32)


class ClassBalancedLoss(Loss):
    """Class-balanced cross-entropy, or focal loss if φ > 0 (Cui et al. 2019; Wu & Li, Eq 1).

    Parameters
    ----------
    class_counts : array of shape (C,)
        Training samples of each class.
    beta : float
        β in [0, 1]: 0 weighs all classes alike, 1 by 1/n.
    gamma, phi : float
        The focus of the focal loss, as for :class:`~equipoise.losses.FocalLoss`; 0, the default, is
        cross-entropy.
    **options : Any
        Options of :class:`~equipoise.losses.Loss`: ``reduction``, ``ignore_index``, ``validate`` and
        ``empty_classes``.

    References
    ----------
    Cui et al.: Class-balanced loss based on effective number of samples, CVPR 2019; Wu & Li, Eq 1.

    Examples
    --------
    >>> ClassBalancedLoss([100, 1], beta=1.0).class_weight
    tensor([0.0198, 1.9802])
    """

    aliases: ClassVar[tuple[str, ...]] = ("cb",)
    needs_counts = True
    soft_targets = True
    kernel_checks = True
    class_counts: Tensor
    class_weight: Tensor

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        beta: float = 0.9999,
        gamma: float | None = None,
        phi: float | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, **options)
        self.beta = float(beta)
        self.phi = focus(gamma, phi, 0.0)
        self.register_buffer("class_weight", class_balanced_weight(self.class_counts.numpy(), beta))

    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        return functional.class_balanced_loss(
            logits, target, self.class_weight, phi=self.phi, reduction=reduction
        )

    def implied_prior(self, class_prior: npt.ArrayLike) -> FloatArray:
        return reweighted_prior(class_prior, self.class_weight)

    def link(self) -> Link:
        return Link(focus=self.phi)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, phi={self.phi}, {super().extra_repr()}"
