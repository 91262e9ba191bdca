"""The loss of Meta-ENum with nothing learned on a meta set."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy.typing as npt
import torch
from torch import Tensor

from equipoise._core.checks import FloatArray, check_choice, check_fraction, check_in_range
from equipoise.losses import functional
from equipoise.losses._base import Loss, LossOptions
from equipoise.losses._covariance import KeepsCovariance
from equipoise.losses._statistics import ClassStatistics
from equipoise.losses.adjustment import adjusted_prior, log_prior
from equipoise.losses.class_balanced import class_balanced_weight
from equipoise.losses.cross_entropy import reweighted_prior
from equipoise.losses.functional.shared import cross_entropy_of, negative_log_likelihood, promote

if TYPE_CHECKING:
    from typing_extensions import Unpack


class CombinedLoss(KeepsCovariance, Loss):
    """Class-balanced cross-entropy of z_c + τ₁ h(x, c) + τ₂ DS_yc (Wu & Li, Eq 20), without meta-learning.

    The scatter DS_yc comes from running covariances of each class's features. The gradient runs through it to
    the head's weights, which learn boundaries that cut each class where it is narrow. A warm-up with plain
    cross-entropy gives the network features worth measuring. The same loss with h and the covariances learned
    on a meta set is :class:`~equipoise.losses.MetaENumLoss`, which differs in nothing else.

    Parameters
    ----------
    class_counts : array of shape (C,)
        Training samples of each class.
    beta : float
        β of the effective number.
    tau1, tau2 : float
        τ₁ and τ₂.
    adjustment : float
        Also shift the logits by this many log-priors, as logit adjustment does; then ``beta=0`` leaves out
        the weights, which would correct for the prior a second time.
    offset : {"constant", "robust", "unlikely", "likely"}
        h at the classes c ≠ y, with p = p(c|x). ``"constant"`` is 1, a margin of τ₁. ``"robust"`` is g of
        Eq 19 in the place of h, as Table 11 has it: (1 − p)^r where p ≥ ``threshold``, (1 − p̄(c))^r below,
        p̄(c) being the class's mean over the epoch before. ``"unlikely"`` is (1 − p)^r, which falls with p as
        the text under Eq 20 says, and as h does where it was learned on Fashion-MNIST; on CIFAR-10 it rises.
        ``"likely"`` is p^r up to ``1 − threshold`` and 0 above, where c may be the true label (the text under
        Eq 22).
    r, threshold : float
        The exponent and the threshold of ``offset``.
    covariance : {"auto", "full", "diagonal"}
        C·d² or C·d numbers; ``"auto"`` keeps full matrices while they are small.
    warmup : float
        Part of the run with plain cross-entropy. A loop that does not call ``start_epoch`` has none.
    scatter_gradient : bool
        Let the gradient run through the scatter. Without it DS is a constant of each step.
    **options : Any
        Options of :class:`~equipoise.losses.Loss`: ``reduction``, ``ignore_index``, ``validate`` and
        ``empty_classes``.

    References
    ----------
    Wu & Li: Revisiting the Effective Number Theory for Imbalanced Learning, Eqs 16, 20 and Table 11.

    Examples
    --------
    >>> import torch
    >>> loss = CombinedLoss([10, 10], tau1=0, tau2=0)
    >>> loss(torch.zeros(1, 2), torch.tensor([1]), features=torch.ones(1, 3), head_weight=torch.eye(2, 3))
    tensor(0.6931)
    """

    requires: ClassVar[frozenset[str]] = frozenset({"features", "head_weight"})
    needs_counts = True
    follows_epochs = True
    class_counts: Tensor
    class_weight: Tensor
    log_prior: Tensor
    mean_probability: Tensor

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        beta: float = 0.9999,
        tau1: float = 1.0,
        tau2: float = 1.0,
        adjustment: float = 0.0,
        offset: str = "constant",
        r: float = 2.0,
        threshold: float = 0.2,
        covariance: str = "auto",
        warmup: float = 1 / 3,
        scatter_gradient: bool = True,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, **options)
        self.beta = float(beta)
        self.tau1, self.tau2 = float(check_in_range("tau1", tau1)), float(check_in_range("tau2", tau2))
        self.adjustment = float(check_in_range("adjustment", adjustment))
        self.offset = check_choice("offset", offset, ["constant", "robust", "unlikely", "likely"])
        self.r = float(check_in_range("r", r, 0))
        self.threshold = float(check_fraction("threshold", threshold))
        self.keep_covariance(covariance)
        self.warmup = float(check_in_range("warmup", warmup, 0, 1))
        self.scatter_gradient = bool(scatter_gradient)
        self.warming = False
        counts = self.class_counts.numpy()
        self.register_buffer("class_weight", class_balanced_weight(counts, beta))
        self.register_buffer("log_prior", log_prior(self.class_counts))
        self.register_buffer("mean_probability", torch.full((len(counts),), 1 / len(counts)))
        self.class_means = ClassStatistics(len(counts), pairs=False)

    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        features, head = promote(needs["features"]).detach(), needs["head_weight"]
        gathering = self.gathering(logits)
        if self.tau2:
            sigma = self.running_covariance(
                features, target, logits.shape[-1], gather=gathering, memory=self.class_counts
            )
        if self.warming:
            return cross_entropy_of(logits, target, reduction)
        h = self._offsets(logits.detach(), target, gathering)
        scatter: Tensor | float = 0.0
        if self.tau2:
            weight = head if self.scatter_gradient else head.detach()
            scatter = functional.data_scatter(weight, sigma, target)
        if self.adjustment:
            logits = logits + self.adjustment * self.log_prior.to(logits.dtype)
        return functional.combined_loss(
            logits, target, self.class_weight, offset=h, scatter=scatter, tau1=self.tau1, tau2=self.tau2,
            reduction=reduction,
        )  # fmt: skip

    def _offsets(self, logits: Tensor, target: Tensor, gathering: bool) -> Tensor | float:
        if self.offset == "constant":
            return 1.0
        p = torch.softmax(logits, dim=-1)
        if self.offset == "likely":
            return torch.where(p <= 1 - self.threshold, p**self.r, 0.0)
        if self.offset == "robust":
            if gathering:
                self.class_means.update(logits, target, negative_log_likelihood(logits, target))
            p = torch.where(p >= self.threshold, p, self.mean_probability.to(p.dtype))
        return (1 - p) ** self.r

    def start_epoch(self, epoch: int, epochs: int) -> None:
        super().start_epoch(epoch, epochs)
        self.warming = epoch < math.ceil(self.warmup * epochs)
        self.class_means.reset()

    def end_epoch(self) -> None:
        self.class_means.synchronize()
        self.mean_probability.copy_(self.class_means.mean_probability(self.mean_probability))

    def implied_prior(self, class_prior: npt.ArrayLike) -> FloatArray:
        weighted = reweighted_prior(class_prior, self.class_weight)
        return adjusted_prior(weighted, self.log_prior, self.adjustment)

    def extra_repr(self) -> str:
        """The settings that ``repr`` shows.

        Returns
        -------
        str
            The settings.
        """
        return f"beta={self.beta}, tau1={self.tau1}, tau2={self.tau2}, offset={self.offset!r}"
