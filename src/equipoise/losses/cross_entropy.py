"""Cross-entropy, plain and weighted."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from equipoise._core.checks import FloatArray, check_positive
from equipoise.losses import functional
from equipoise.losses._base import Loss, LossOptions
from equipoise.losses._links import Link
from equipoise.losses.functional.shared import cross_entropy_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


def reweighted_prior(class_prior: npt.ArrayLike, weight: Tensor) -> FloatArray:
    """The prior that weighing classes amounts to: π_c w_c, normalized."""
    mass = np.asarray(class_prior, dtype=np.float64) * weight.detach().cpu().double().numpy()
    return np.asarray(mass / mass.sum())


class CrossEntropyLoss(Loss):
    """Cross-entropy, −log p(y|x).

    Parameters
    ----------
    class_counts : array of shape (C,), optional
        Training samples of each class; checked against the logits if given.
    reduction : {"mean", "sum", "none"}
        As for :class:`~equipoise.losses.Loss`, like all options below.
    ignore_index : int
        Targets with this value take no part.
    validate : bool
        Whether to look at the values of targets and losses in every batch.
    empty_classes : {"error", "floor"}
        What to do with a count of zero.

    Examples
    --------
    >>> import torch
    >>> CrossEntropyLoss()(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.3863)
    """

    aliases: ClassVar[tuple[str, ...]] = ("ce",)
    soft_targets = True
    kernel_checks = True

    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        return cross_entropy_of(logits, target, reduction)

    def link(self) -> Link:
        return Link()


class WeightedCrossEntropyLoss(Loss):
    """Cross-entropy with one weight per class, −w_y log p(y|x).

    Parameters
    ----------
    class_counts : array of shape (C,), optional
        Sets the default weights n/(C·n_c), scikit-learn's ``"balanced"``.
    class_weight : array of shape (C,), optional
        Weights to use instead.
    **options : Any
        Options of :class:`~equipoise.losses.Loss`: ``reduction``, ``ignore_index``, ``validate`` and
        ``empty_classes``.

    Notes
    -----
    The mean divides by the number of samples. ``functional.cross_entropy`` divides by the sum of the
    weights, as torch.

    Examples
    --------
    >>> import torch
    >>> WeightedCrossEntropyLoss([3, 1]).class_weight
    tensor([0.6667, 2.0000])
    """

    aliases: ClassVar[tuple[str, ...]] = ("weighted_ce", "wce")
    soft_targets = True
    kernel_checks = True
    class_weight: Tensor

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        class_weight: npt.ArrayLike | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, **options)
        if class_weight is not None:
            weight = torch.as_tensor(check_positive("class_weight", class_weight))
        elif self.class_counts is not None:
            counts = self.class_counts.double()
            weight = counts.sum() / (counts.numel() * counts)
        else:
            raise ValueError("WeightedCrossEntropyLoss needs class_counts or class_weight, got neither")
        self.register_buffer("class_weight", weight.float())

    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        return functional.class_balanced_loss(logits, target, self.class_weight, reduction=reduction)

    def implied_prior(self, class_prior: npt.ArrayLike) -> FloatArray:
        return reweighted_prior(class_prior, self.class_weight)

    def link(self) -> Link:
        return Link()
