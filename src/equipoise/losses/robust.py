"""Losses for labels that may be wrong: Lq and DisturbLabel."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from equipoise._core.checks import check_in_range
from equipoise._core.random import derive_seed
from equipoise.losses import functional
from equipoise.losses._base import Loss, LossOptions, untouchable
from equipoise.losses._links import Link
from equipoise.losses.functional.shared import cross_entropy_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


class LqLoss(Loss):
    """(1 − p_y^q)/q, between cross-entropy (q → 0) and the mean absolute error (q = 1) (Zhang & Sabuncu
    2018).

    Parameters
    ----------
    class_counts : array of shape (C,), optional
        Training samples of each class; checked against the logits if given.
    q : float
        q in [0, 1].
    **options : Any
        Options of :class:`~equipoise.losses.Loss`: ``reduction``, ``ignore_index``, ``validate`` and
        ``empty_classes``.

    References
    ----------
    Zhang & Sabuncu: Generalized cross entropy loss for training deep neural networks with noisy
    labels, NeurIPS 2018.

    Examples
    --------
    >>> import torch
    >>> LqLoss(q=1)(torch.zeros(1, 4), torch.tensor([0]))
    tensor(0.7500)
    """

    aliases: ClassVar[tuple[str, ...]] = ("gce", "generalized_cross_entropy")
    soft_targets = True
    kernel_checks = True

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        q: float = 0.4,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, **options)
        self.q = float(check_in_range("q", q, 0, 1))

    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        return functional.lq_loss(logits, target, q=self.q, reduction=reduction)

    def link(self) -> Link | None:
        """None for q = 1, the mean absolute error, which is minimized by the likeliest class alone.

        Returns
        -------
        Link or None
            The link.
        """
        return Link(power=self.q) if self.q < 1 else None

    def extra_repr(self) -> str:
        return f"q={self.q}, {super().extra_repr()}"


class DisturbLabelLoss(Loss):
    """Cross-entropy with a share of the labels redrawn uniformly in each training batch (Xie et al. 2016).

    Compiled code and ``torch.func`` transforms cannot draw labels that follow from the seed. There the loss
    takes its mean over all draws, which is cross-entropy with the labels smoothed by α.

    Parameters
    ----------
    class_counts : array of shape (C,), optional
        Training samples of each class; checked against the logits if given.
    rate : float
        α, the probability that a label is redrawn (it may fall on itself).
    seed : int
        Draws are a function of the seed and of the number of batches seen, which is saved with the state.
    **options : Any
        Options of :class:`~equipoise.losses.Loss`: ``reduction``, ``ignore_index``, ``validate`` and
        ``empty_classes``.

    References
    ----------
    Xie et al.: DisturbLabel: regularizing CNN on the loss layer, CVPR 2016.

    Examples
    --------
    >>> import torch
    >>> loss = DisturbLabelLoss(rate=0.0)
    >>> loss(torch.zeros(1, 2), torch.tensor([1]))
    tensor(0.6931)
    """

    step: Tensor

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        rate: float = 0.05,
        seed: int = 0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, **options)
        self.rate = float(check_in_range("rate", rate, 0, 1))
        self.seed = int(seed)
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))

    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        if self.training and self.rate > 0:
            if untouchable(logits):
                return F.cross_entropy(logits, target, reduction=reduction, label_smoothing=self.rate)
            step = int(self.step) - (not self.gathers)  # a second pass sees the first one's labels
            generator = torch.Generator().manual_seed(derive_seed(self.seed, "disturb", step))
            uniform, draw = torch.rand(2, target.numel(), generator=generator).to(target.device)
            target = functional.disturb_target(target, logits.shape[-1], uniform, draw, rate=self.rate)
            self.step += self.gathers
        return cross_entropy_of(logits, target, reduction)

    def implied_prior(self, class_prior: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Redrawing mixes the labels' prior with the uniform one.

        Parameters
        ----------
        class_prior : array of shape (C,)
            The class shares of the training data.

        Returns
        -------
        array of shape (C,)
            The mixture of both.
        """
        prior = np.asarray(class_prior, dtype=np.float64)
        return (1 - self.rate) * prior + self.rate / prior.size

    def extra_repr(self) -> str:
        return f"rate={self.rate}, {super().extra_repr()}"
