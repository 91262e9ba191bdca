"""Implicit semantic data augmentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy.typing as npt
from torch import Tensor

from equipoise._core.checks import check_in_range
from equipoise.losses import functional
from equipoise.losses._base import Loss, LossOptions
from equipoise.losses._covariance import KeepsCovariance
from equipoise.losses.functional.shared import promote

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ISDALoss(KeepsCovariance, Loss):
    """Cross-entropy of z_c + ½λ(t/T)·(ω_c−ω_y)ᵀΣ_y(ω_c−ω_y) (Wang et al. 2021).

    Σ_y is the running covariance of class y's features over all batches seen. λ grows in proportion to the
    epoch t of T.

    Parameters
    ----------
    class_counts : array of shape (C,), optional
        Checked against the logits if given.
    strength : float
        λ at the end of training.
    covariance : {"auto", "full", "diagonal"}
        Full matrices need C·d² numbers, the diagonal C·d; ``"auto"`` keeps full ones while they are small.
    **options : Any
        Options of :class:`~equipoise.losses.Loss`: ``reduction``, ``ignore_index``, ``validate`` and
        ``empty_classes``.

    References
    ----------
    Wang et al.: Regularizing deep networks with semantic data augmentation, TPAMI 2021.

    Examples
    --------
    >>> sorted(ISDALoss.requires)
    ['features', 'head_weight']
    """

    requires: ClassVar[frozenset[str]] = frozenset({"features", "head_weight"})
    follows_epochs = True

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        strength: float = 0.5,
        covariance: str = "auto",
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, **options)
        self.strength = float(check_in_range("strength", strength, 0))
        self.keep_covariance(covariance)
        self.progress = 1.0

    def start_epoch(self, epoch: int, epochs: int) -> None:
        super().start_epoch(epoch, epochs)
        self.progress = (epoch + 1) / max(epochs, 1)

    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        features = promote(needs["features"]).detach()
        sigma = self.running_covariance(features, target, logits.shape[-1], gather=self.gathering(logits))
        return functional.isda_loss(
            logits,
            target,
            needs["head_weight"],
            sigma,
            strength=self.strength * self.progress,
            reduction=reduction,
        )

    def extra_repr(self) -> str:
        """The settings that ``repr`` shows.

        Returns
        -------
        str
            The settings.
        """
        return f"strength={self.strength}, covariance={self.covariance!r}, {super().extra_repr()}"
