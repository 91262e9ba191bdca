"""The focal loss, softmax and sigmoid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from equipoise._core.checks import FloatArray, check_in_range
from equipoise.losses import functional
from equipoise.losses._base import Loss, LossOptions
from equipoise.losses._links import Link
from equipoise.losses.cross_entropy import reweighted_prior
from equipoise.losses.functional.shared import reduce_loss

if TYPE_CHECKING:
    from typing_extensions import Unpack


class FocalLoss(Loss):
    """−α_y (1 − p_y)^φ log p_y (Lin et al. 2017; Lieberman et al., Eq 2).

    Parameters
    ----------
    class_counts : array, optional
        Not used by the equation; checked against the logits if given.
    gamma, phi : float
        The focus, under the name that Lin et al. give it and the one of Lieberman et al.; 2 by default, and 0
        is cross-entropy. Give one of them.
    alpha : float or array of shape (C,), optional
        One weight per class; a number a stands for (1 − a, a) in a binary problem.
    **options : Any
        Options of :class:`~equipoise.losses.Loss`: ``reduction``, ``ignore_index``, ``validate`` and
        ``empty_classes``.

    References
    ----------
    Lin et al.: Focal loss for dense object detection, ICCV 2017; Lieberman et al., Eq 2.

    Examples
    --------
    >>> import torch
    >>> FocalLoss(gamma=2)(torch.zeros(1, 2), torch.tensor([1]))
    tensor(0.1733)
    """

    soft_targets = True
    kernel_checks = True
    rowwise = frozenset({"phi", "alpha"})
    alpha: Tensor | None

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        gamma: float | None = None,
        phi: float | None = None,
        alpha: npt.ArrayLike | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        if isinstance(class_counts, (int, float)):
            raise TypeError(f"FocalLoss takes its focus by name, FocalLoss(gamma={class_counts!r})")
        super().__init__(class_counts, **options)
        self.phi = focus(gamma, phi, 2.0)
        self.register_buffer("alpha", _class_alpha(alpha))

    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        alpha = self.alpha  # once: a module looks long for a buffer
        if alpha is not None and alpha.ndim == 2:  # one pair of weights a row
            each = functional.focal_loss(logits, target, phi=self.phi, reduction="none")
            weight = alpha.to(logits.dtype).gather(1, target.unsqueeze(1)).squeeze(1)
            return reduce_loss(weight * each, reduction)
        return functional.focal_loss(logits, target, phi=self.phi, alpha=alpha, reduction=reduction)

    def set_rows(self, **values: Tensor) -> None:
        if "phi" in values:
            self.phi = values["phi"]  # type: ignore[assignment]
        if "alpha" in values:
            self.alpha = torch.stack([1 - values["alpha"], values["alpha"]], dim=1)

    def implied_prior(self, class_prior: npt.ArrayLike) -> FloatArray:
        if self.alpha is None:
            return super().implied_prior(class_prior)
        return reweighted_prior(class_prior, self.alpha)

    def link(self) -> Link:
        return Link(focus=self.phi)

    def extra_repr(self) -> str:
        return f"phi={self.phi}, {super().extra_repr()}"


def focus(gamma: float | None, phi: float | None, default: float) -> float:
    """The focus of the focal loss, which has two names."""
    if gamma is not None and phi is not None:
        raise TypeError(f"gamma and phi name the same number; give one, got {gamma!r} and {phi!r}")
    given = {"phi": phi} if gamma is None else {"gamma": gamma}
    ((name, value),) = given.items()
    return float(check_in_range(name, default if value is None else value, 0))


def _class_alpha(alpha: npt.ArrayLike | None) -> Tensor | None:
    if alpha is None:
        return None
    values = check_in_range("alpha", alpha, 0)
    if values.ndim == 0:
        values = check_in_range("alpha", alpha, 0, 1)
        values = np.stack([1 - values, values])
    return torch.as_tensor(values, dtype=torch.float32)
