"""Class-level logit perturbation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import rankdata
from torch import Tensor

from equipoise._core.checks import FloatArray, check_fraction, check_in_range, check_positive
from equipoise.losses import functional
from equipoise.losses._base import Loss, LossOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack


def _perturbation_bounds(
    class_counts: npt.ArrayLike, split: float, bound: float, spread: float
) -> FloatArray:
    """Signed bounds a class: negative (hold back) for the head, positive (augment) for the tail.

    With rank c = 1 … C by falling count and τ = split·C, the length is ε + Δε(τ − c)/τ in the head (c < τ)
    and ε + Δε(c − τ)/(C − τ) in the tail (Li et al. 2022). Classes of equal count share their mean rank.

    >>> _perturbation_bounds([1000, 100, 10, 1], split=0.5, bound=0.0, spread=2.0)
    array([-1.,  0.,  1.,  2.])
    """
    rank = rankdata(-np.asarray(class_counts), method="average")
    border = split * rank.size
    head = (border - rank) / border
    tail = (rank - border) / (rank.size - border)
    return np.where(rank < border, -(bound + spread * head), bound + spread * tail)


class LPLLoss(Loss):
    """Cross-entropy of logits moved along each class's mean gradient: down for head, up for tail (Li et al.
    2022).

    Parameters
    ----------
    class_counts : array of shape (C,)
        Training samples of each class.
    split : float or "prediction"
        Fraction of the classes that count as head. ``"prediction"`` is for data whose classes are equally
        frequent: in each batch, classes predicted worse than the average are augmented and the others held
        back; see :func:`~equipoise.losses.functional.prediction_bounds`.
    bound, spread : float
        ε and Δε of the paper.
    step_size : float, optional
        α of the paper's repeated steps. By default one step of the bound's whole length, which costs one
        softmax.
    **options : Any
        Options of :class:`~equipoise.losses.Loss`: ``reduction``, ``ignore_index``, ``validate`` and
        ``empty_classes``.

    References
    ----------
    Li, Su, Wu & Zhang: Logit perturbation, AAAI 2022.

    Examples
    --------
    >>> LPLLoss([1000, 100, 10, 1]).bounds
    tensor([-1.2500,  0.0000,  1.2500,  2.5000])
    """

    needs_counts = True
    class_counts: Tensor
    bounds: Tensor

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        split: float | str = 0.5,
        bound: float = 0.0,
        spread: float = 2.5,
        step_size: float | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, **options)
        self.split = split if split == "prediction" else float(check_fraction("split", split))
        self.bound = float(check_in_range("bound", bound, 0))
        self.spread = float(check_in_range("spread", spread, 0))
        self.step_size = None if step_size is None else float(check_positive("step_size", step_size))
        if isinstance(self.split, str):
            bounds = np.full(self.class_counts.numel(), self.bound + self.spread)  # the largest they can be
        else:
            bounds = _perturbation_bounds(self.class_counts.numpy(), self.split, self.bound, self.spread)
        self.steps = None if self.step_size is None else math.ceil(np.abs(bounds).max() / self.step_size)
        self.register_buffer("bounds", torch.as_tensor(bounds, dtype=torch.float32))

    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        bounds = self.bounds
        if self.split == "prediction":
            bounds = functional.prediction_bounds(logits.detach(), target, self.bound, self.spread)
        return functional.lpl_loss(
            logits, target, bounds, step_size=self.step_size, steps=self.steps, reduction=reduction
        )

    def extra_repr(self) -> str:
        return f"split={self.split}, bound={self.bound}, spread={self.spread}, step_size={self.step_size}"
