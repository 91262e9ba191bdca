"""The center loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy.typing as npt
import torch
from torch import Tensor

from equipoise._core.checks import check_in_range
from equipoise.losses import functional
from equipoise.losses._base import Loss, LossOptions
from equipoise.losses._statistics import LazyBuffers
from equipoise.losses.functional.shared import promote

if TYPE_CHECKING:
    from typing_extensions import Unpack


class CenterLoss(LazyBuffers, Loss):
    """Cross-entropy + λ‖f(x) − c_y‖² with centers that follow their class (Wen et al. 2016; Wu & Li §5.2).

    Parameters
    ----------
    class_counts : array of shape (C,), optional
        Training samples of each class; checked against the logits if given.
    strength : float
        λ.
    rate : float
        How far centers move in a batch: c ← c + rate·Σ(f − c)/(1 + n) over the class's n samples in it (Wen
        et al., Eq 4).
    **options : Any
        Options of :class:`~equipoise.losses.Loss`: ``reduction``, ``ignore_index``, ``validate`` and
        ``empty_classes``.

    References
    ----------
    Wen et al.: A discriminative feature learning approach for deep face recognition, ECCV 2016, Eqs 2
    and 4; Wu & Li, section 5.2.

    Examples
    --------
    >>> import torch
    >>> loss = CenterLoss(strength=1.0).eval()
    >>> loss(torch.zeros(1, 2), torch.tensor([1]), features=torch.tensor([[1.0, 1.0]]))
    tensor(2.6931)
    """

    requires: ClassVar[frozenset[str]] = frozenset({"features"})
    centers: Tensor | None

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        strength: float = 0.01,
        rate: float = 0.5,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, **options)
        self.strength = float(check_in_range("strength", strength, 0))
        self.rate = float(check_in_range("rate", rate, 0, 1))
        self.register_buffer("centers", None)

    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        features = promote(needs["features"])
        if self.centers is None:
            self.centers = features.new_zeros(logits.shape[-1], features.shape[1])
        centers = self.centers.clone() if self.training else self.centers
        loss = functional.center_loss(
            logits, target, features, centers, strength=self.strength, reduction=reduction
        )
        if self.gathering(logits):
            self._move(features.detach(), target)
        return loss

    @torch.no_grad()
    def _move(self, features: Tensor, target: Tensor) -> None:
        if self.centers is None:
            return
        count = self.centers.new_ones(self.centers.shape[0])
        count.index_add_(0, target, torch.ones_like(features[:, 0]))
        pull = torch.zeros_like(self.centers).index_add_(0, target, features - self.centers[target])
        self.centers += self.rate * pull / count[:, None]

    def extra_repr(self) -> str:
        """The settings that ``repr`` shows.

        Returns
        -------
        str
            The settings.
        """
        return f"strength={self.strength}, rate={self.rate}, {super().extra_repr()}"
