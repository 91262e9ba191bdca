"""Margins on the true logit: LDAM, KPS, large-margin softmax."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, ClassVar

import numpy.typing as npt
import torch
from torch import Tensor

from equipoise._core.checks import check_choice, check_in_range, check_integer, check_positive
from equipoise.losses import functional
from equipoise.losses._base import Loss, LossOptions, untouchable
from equipoise.losses._links import Link
from equipoise.losses.functional.perturbation import margin_loss

if TYPE_CHECKING:
    from typing_extensions import Unpack

_ENOUGH = 32  # logits that may tell whether they are cosines
_LOOKS = (1, 100)  # batches whose logits are looked at: a network sets out with small ones
_FEW = 64  # classes whose shifts are quicker to add row by row than one by one


class _CosineLoss(Loss):
    """Margins of cosines: logits are s·cos, from a head that normalizes features and weights."""

    needs_counts = True
    kernel_checks = True
    head: ClassVar[str] = "cosine"
    class_counts: Tensor
    margins: Tensor

    def __init__(
        self,
        class_counts: npt.ArrayLike | None,
        max_margin: float,
        scale: float,
        input: str,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, **options)
        self.max_margin = float(check_in_range("max_margin", max_margin, 0))
        self.scale = float(check_positive("scale", scale))
        self.input = check_choice("input", input, ["logits", "cosine"])
        self._batches = 0

    def logits(self, given: Tensor) -> Tensor:
        """The logits s·cos, from cosines if ``input`` says so; values that cannot be what it says are warned of.

        Parameters
        ----------
        given : Tensor of shape (n, C)
            Logits or cosines, as ``input`` says.

        Returns
        -------
        Tensor of shape (n, C)
            The logits.
        """
        if self._batches < _LOOKS[-1] and not untouchable(given):
            self._batches += 1
            if self._batches in _LOOKS:
                self._look(given)
        return self.scale * given if self.input == "cosine" else given

    def _look(self, given: Tensor) -> None:
        largest = float(given.detach().abs().max()) if given.numel() else 0.0
        name, cosines = type(self).__name__, self.input == "cosine"
        head = "equipoise.networks.use_cosine_head"
        wanted = f"{name} wants cosines" if cosines else f"{name} wants logits {self.scale:g}·cos"
        if largest > 1.0001 * (1 if cosines else self.scale):
            advice = (
                f'if they are logits of a normalizing head, write {name}(..., input="logits")'
                if cosines
                else f"normalize the head with {head}(network, {self.scale:g}), or tell the loss the head's scale"
            )
            said = f"{wanted}, but got {largest:.4g}: {advice}"
        elif not cosines and given.numel() >= _ENOUGH and 0 < largest <= 1.0001 and self.scale > 1:
            said = (
                f"{wanted}, but all of these lie in [−1, 1]: if they are cosines, write "
                f'{name}(..., input="cosine"); otherwise normalize the head with {head}'
            )
        else:
            return
        self._batches = _LOOKS[-1]
        warnings.warn(said, UserWarning, stacklevel=7)

    def shift(self, dtype: torch.dtype) -> Tensor:
        """−s·m, what is added to the true logit of each class; on a diagonal if there are few classes.

        Parameters
        ----------
        dtype : torch.dtype
            The precision of the logits.

        Returns
        -------
        Tensor of shape (C,) or (C, C)
            The shifts.
        """
        return self.made_once(_shift, self.margins, self.scale, dtype)

    def _link(self, class_scales: Tensor | float) -> Link:
        """Logits are scaled by class, and by s if they are cosines; margins are taken from the true one."""
        scales = torch.ones_like(self.margins, dtype=torch.float64).cpu() * class_scales
        scales = scales * self.scale if self.input == "cosine" else scales
        same = bool((scales == 1).all())
        margins = tuple((self.scale * self.margins.cpu().double()).tolist())
        return Link(scales=() if same else tuple(scales.tolist()), margins=margins)

    def extra_repr(self) -> str:
        return f"max_margin={self.max_margin}, scale={self.scale}, {super().extra_repr()}"


def _shift(margins: Tensor, scale: float, dtype: torch.dtype) -> Tensor:
    shift = (margins * -scale).to(dtype)
    return shift.diag() if len(shift) <= _FEW else shift


class LDAMLoss(_CosineLoss):
    """Label-distribution-aware margin: cross-entropy of s·(cos_c − m_y·[c = y]), m ∝ n^(−1/4).

    Parameters
    ----------
    class_counts : array of shape (C,)
        Training samples of each class.
    max_margin : float
        The margin of the rarest class; 0 is cross-entropy.
    scale : float
        s, which turns margins of cosines into margins of logits.
    input : {"logits", "cosine"}
        What the loss is given: logits s·cos, as :class:`~equipoise.networks.CosineLinear` makes them, or the
        cosines themselves, as in the authors' code.
    **options : Any
        Options of :class:`~equipoise.losses.Loss`: ``reduction``, ``ignore_index``, ``validate`` and
        ``empty_classes``.

    References
    ----------
    Cao et al.: Learning Imbalanced Datasets with Label-Distribution-Aware Margin Loss, NeurIPS 2019.

    Examples
    --------
    >>> LDAMLoss([16, 1]).margins
    tensor([0.2500, 0.5000])
    """

    margins: Tensor

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        max_margin: float = 0.5,
        scale: float = 30.0,
        input: str = "logits",
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, max_margin, scale, input, **options)
        counts = self.class_counts.double()
        rarity = (counts / counts.min()) ** -0.25
        self.register_buffer("margins", (self.max_margin * rarity).float())

    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        return margin_loss(self.logits(logits), target, self.shift(logits.dtype), reduction=reduction)

    def link(self) -> Link:
        return self._link(1.0)


class KPSLoss(_CosineLoss):
    """Key-point-sensitive loss: cross-entropy of k_c z_c − s·m_y·[c = y], z = s·cos.

    k_c = log(b·n_c/n_min)/log b with base b = 50. The margin of a class is that of its mirror image in the
    ranking, which for an exponential profile is m_c = m_max·log(b·n_max/n_c)/log(b·n_max/n_min): that form
    is used, as it depends on no order of the classes.

    Parameters
    ----------
    class_counts : array of shape (C,)
        Training samples of each class.
    max_margin : float
        The margin of the rarest class.
    scale : float
        s.
    base : float
        b.
    input : {"logits", "cosine"}
        As for :class:`LDAMLoss`.
    **options : Any
        Options of :class:`~equipoise.losses.Loss`: ``reduction``, ``ignore_index``, ``validate`` and
        ``empty_classes``.

    References
    ----------
    Li, Cheung & Hu: Key Point Sensitive Loss for Long-Tailed Visual Recognition, TPAMI 2023.

    Examples
    --------
    >>> loss = KPSLoss([100, 10, 1])
    >>> loss.class_scales, loss.margins
    (tensor([2.1772, 1.5886, 1.0000]), tensor([0.2297, 0.3648, 0.5000]))
    """

    class_scales: Tensor
    margins: Tensor

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        max_margin: float = 0.5,
        scale: float = 15.0,
        base: float = 50.0,
        input: str = "logits",
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, max_margin, scale, input, **options)
        self.base = float(check_in_range("base", base, 1, closed="right"))
        n = self.class_counts.double()
        log_base = math.log(self.base)
        self.register_buffer("class_scales", ((n / n.min()).log() / log_base + 1).float())
        mirror = (n.max() / n).log() + log_base
        self.register_buffer("margins", (self.max_margin * mirror / mirror.max()).float())

    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        scaled, shift = self.logits(logits), self.shift(logits.dtype)
        return margin_loss(scaled, target, shift, self.class_scales, reduction=reduction)

    def link(self) -> Link:
        return self._link(self.class_scales.cpu().double())


class LargeMarginLoss(Loss):
    """Large-margin softmax: ‖ω_y‖‖f‖ψ(θ_y) in place of the true logit (Liu et al. 2016).

    Parameters
    ----------
    class_counts : array of shape (C,), optional
        Training samples of each class; checked against the logits if given.
    margin : int or float
        m ≥ 1, whole, for the multiplicative form (1 is cross-entropy); any m ≥ 0 for the additive one.
    form : {"multiplicative", "additive"}
        ψ of the paper, or cos θ − m.
    blend : float
        λ at the start of training; the loss uses (ψ + λ cos θ)/(1 + λ), with λ falling to 0 over the first
        half.
    **options : Any
        Options of :class:`~equipoise.losses.Loss`: ``reduction``, ``ignore_index``, ``validate`` and
        ``empty_classes``.

    References
    ----------
    Liu et al.: Large-margin softmax loss for convolutional neural networks, ICML 2016.

    Examples
    --------
    >>> LargeMarginLoss.requires == {"features", "head_weight"}
    True
    """

    requires: ClassVar[frozenset[str]] = frozenset({"features", "head_weight"})
    follows_epochs = True

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
        super().start_epoch(epoch, epochs)
        self.remaining = self.blend * max(0.0, 1 - 2 * epoch / max(epochs, 1))

    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        self.gathering(logits)  # it gathers nothing, but must be told of epochs
        return functional.large_margin_loss(
            logits,
            target,
            needs["features"],
            needs["head_weight"],
            margin=self.margin,
            form=self.form,
            blend=self.remaining,
            reduction=reduction,
        )

    def extra_repr(self) -> str:
        return f"margin={self.margin}, form={self.form!r}, {super().extra_repr()}"
