"""Cross-entropy with its first polynomial coefficient changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy.typing as npt
import torch
from torch import Tensor

from equipoise._core.checks import check_in_range
from equipoise.losses import functional
from equipoise.losses._base import Loss, LossOptions
from equipoise.losses.functional.shared import (
    cross_entropy_of,
    is_soft,
    negative_log_likelihood,
    reduce_loss,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack


class PolyLoss(Loss):
    """Cross-entropy + ε(1 − p_y): Poly-1.

    Parameters
    ----------
    class_counts : array of shape (C,), optional
        Training samples of each class; checked against the logits if given.
    epsilon : float
        ε ≥ −1, what is added to the first coefficient of −log p_y = Σ (1 − p_y)^j / j; 0 is cross-entropy.
    **options : Any
        Options of :class:`~equipoise.losses.Loss`: ``reduction``, ``ignore_index``, ``validate`` and
        ``empty_classes``.

    References
    ----------
    Leng et al.: PolyLoss: A Polynomial Expansion Perspective of Classification Loss Functions, ICLR 2022.

    Examples
    --------
    >>> import torch
    >>> PolyLoss(epsilon=1.0)(torch.zeros(1, 2), torch.tensor([1]))
    tensor(1.1931)
    """

    aliases: ClassVar[tuple[str, ...]] = ("poly1",)
    soft_targets = True
    kernel_checks = True

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        epsilon: float = 1.0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, **options)
        self.epsilon = float(check_in_range("epsilon", epsilon, -1))

    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        if is_soft(target):
            each = functional.lq_loss(logits, target, q=1.0, reduction=reduction)
            return cross_entropy_of(logits, target, reduction) + self.epsilon * each
        surprise = negative_log_likelihood(logits, target)
        return reduce_loss(torch.sub(surprise, torch.expm1(-surprise), alpha=self.epsilon), reduction)

    def extra_repr(self) -> str:
        return f"epsilon={self.epsilon}, {super().extra_repr()}"
