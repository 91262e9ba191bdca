"""Margins on the true logit: LDAM, KPS, large-margin softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy.typing as npt
import torch
from torch import Tensor

from equipoise._core.checks import check_choice, check_in_range, check_integer, check_positive
from equipoise.losses import functional
from equipoise.losses._base import Loss, LossOptions
from equipoise.losses._links import Link

if TYPE_CHECKING:
    from typing_extensions import Unpack


class LDAMLoss(Loss):
    """Label-distribution-aware margin: cross-entropy of s·(cos_c − m_y·[c = y]), m ∝ n^(−1/4) (Cao et al.
    2019).

    Parameters
    ----------
    class_counts : array of shape (C,)
    max_margin : float
        The margin of the rarest class; 0 is cross-entropy.
    scale : float
        s, which turns margins of cosines into margins of logits.

    >>> LDAMLoss([16, 1]).margins
    tensor([0.2500, 0.5000])
    """

    needs_counts = True
    head: ClassVar[str] = "cosine"
    class_counts: Tensor
    margins: Tensor

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        max_margin: float = 0.5,
        scale: float = 30.0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, **options)
        self.max_margin = float(check_in_range("max_margin", max_margin, 0))
        self.scale = float(check_positive("scale", scale))
        rarity = (self.class_counts / self.class_counts.min()) ** -0.25
        self.register_buffer("margins", (self.max_margin * rarity).float())

    def per_sample(self, logits: Tensor, target: Tensor, **needs: Tensor) -> Tensor:
        return functional.ldam_loss(logits, target, self.margins, scale=self.scale, reduction="none")

    def link(self) -> Link:
        return Link(margins=tuple((self.scale * self.margins.cpu().double()).tolist()))

    def extra_repr(self) -> str:
        return f"max_margin={self.max_margin}, scale={self.scale}, {super().extra_repr()}"


class KPSLoss(Loss):
    """Key-point-sensitive loss: cross-entropy of k_c z_c − s·m_y·[c = y], z = s·cos (Li, Cheung & Hu 2023).

    k_c = log(b·n_c/n_min)/log b with base b = 50. The margin of a class is that of its mirror image in the
    ranking, which for an exponential profile is m_c = m_max·log(b·n_max/n_c)/log(b·n_max/n_min): that form
    is used, as it depends on no order of the classes.

    >>> loss = KPSLoss([100, 10, 1])
    >>> loss.class_scales, loss.margins
    (tensor([2.1772, 1.5886, 1.0000]), tensor([0.2297, 0.3648, 0.5000]))
    """

    needs_counts = True
    head: ClassVar[str] = "cosine"
    class_counts: Tensor
    class_scales: Tensor
    margins: Tensor

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        max_margin: float = 0.5,
        scale: float = 15.0,
        base: float = 50.0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, **options)
        self.max_margin = float(check_in_range("max_margin", max_margin, 0))
        self.scale = float(check_positive("scale", scale))
        self.base = float(check_in_range("base", base, 1, closed="right"))
        n = self.class_counts
        log_base = torch.log(torch.tensor(self.base, dtype=n.dtype))
        self.register_buffer("class_scales", ((n / n.min()).log() / log_base + 1).float())
        mirror = (n.max() / n).log() + log_base
        self.register_buffer("margins", (self.max_margin * mirror / mirror.max()).float())

    def per_sample(self, logits: Tensor, target: Tensor, **needs: Tensor) -> Tensor:
        return functional.kps_loss(
            logits, target, self.class_scales, self.margins, scale=self.scale, reduction="none"
        )

    def link(self) -> Link:
        margins = tuple((self.scale * self.margins.cpu().double()).tolist())
        return Link(scales=tuple(self.class_scales.cpu().double().tolist()), margins=margins)

    def extra_repr(self) -> str:
        return f"max_margin={self.max_margin}, scale={self.scale}, {super().extra_repr()}"


class LargeMarginLoss(Loss):
    """Large-margin softmax: ‖ω_y‖‖f‖ψ(θ_y) in place of the true logit (Liu et al. 2016).

    Parameters
    ----------
    margin : int or float
        m ≥ 1, whole, for the multiplicative form (1 is cross-entropy); any m ≥ 0 for the additive one.
    form : {"multiplicative", "additive"}
        ψ of the paper, or cos θ − m.
    blend : float
        λ at the start of training; the loss uses (ψ + λ cos θ)/(1 + λ), with λ falling to 0 over the first
        half.

    >>> LargeMarginLoss.requires == {"features", "head_weight"}
    True
    """

    requires: ClassVar[frozenset[str]] = frozenset({"features", "head_weight"})

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        margin: float = 2,
        form: str = "multiplicative",
        blend: float = 5.0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, **options)
        self.form = check_choice("form", form, ["multiplicative", "additive"])
        if form == "multiplicative":
            self.margin: float = check_integer("margin", margin, low=1)
        else:
            self.margin = float(check_in_range("margin", margin, 0))
        self.blend = float(check_in_range("blend", blend, 0))
        self.remaining = 0.0

    def start_epoch(self, epoch: int, epochs: int) -> None:
        self.remaining = self.blend * max(0.0, 1 - 2 * epoch / max(epochs, 1))

    def per_sample(self, logits: Tensor, target: Tensor, **needs: Tensor) -> Tensor:
        return functional.large_margin_loss(
            logits,
            target,
            needs["features"],
            needs["head_weight"],
            margin=self.margin,
            form=self.form,
            blend=self.remaining,
            reduction="none",
        )

    def extra_repr(self) -> str:
        return f"margin={self.margin}, form={self.form!r}, {super().extra_repr()}"
