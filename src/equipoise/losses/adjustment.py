"""Logits shifted and scaled by the prior: logit adjustment and vector scaling."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from equipoise._core.checks import FloatArray, check_in_range
from equipoise.losses import functional
from equipoise.losses._base import Loss, LossOptions
from equipoise.losses._links import Link
from equipoise.losses.functional.perturbation import affine_loss, vs_terms

if TYPE_CHECKING:
    from typing_extensions import Unpack


def log_prior(class_counts: Tensor) -> Tensor:
    counts = class_counts.double()
    return (counts / counts.sum()).log().float()


def adjusted_prior(class_prior: npt.ArrayLike, log_prior: Tensor, tau: float) -> FloatArray:
    """p·π^(−τ), normalized: where z + τ log π is the log-posterior under the prior p, z is that under this one.

    The counts' prior π need not be the prior p that training sees (a sampler changes p, not π).
    """
    prior = np.asarray(class_prior, dtype=np.float64)
    log_mass = np.log(np.where(prior > 0, prior, 1.0)) - tau * log_prior.detach().cpu().double().numpy()
    mass = np.where(prior > 0, np.exp(log_mass - log_mass[prior > 0].max()), 0.0)
    return np.asarray(mass / mass.sum())


class LogitAdjustedLoss(Loss):
    """Cross-entropy of z_c + τ log π_c (Menon et al. 2021).

    The raw logits then are posteriors under the prior π^(1−τ): the uniform one for τ = 1, which is also known
    as balanced softmax (Ren et al. 2020).

    Parameters
    ----------
    class_counts : array of shape (C,)
        Training samples of each class, whose shares are the prior π.
    tau : float
        τ, the strength of the adjustment; 0 leaves the logits as they are.
    **options : Any
        Options of :class:`~equipoise.losses.Loss`: ``reduction``, ``ignore_index``, ``validate`` and
        ``empty_classes``.

    References
    ----------
    Menon et al.: Long-tail learning via logit adjustment, ICLR 2021, Eq 10.

    Examples
    --------
    >>> import torch
    >>> LogitAdjustedLoss([9, 1])(torch.zeros(1, 2), torch.tensor([1]))
    tensor(2.3026)
    """

    aliases: ClassVar[tuple[str, ...]] = ("la", "logit_adjustment", "balanced_softmax")
    rowwise = frozenset({"tau"})
    needs_counts = True
    soft_targets = True
    kernel_checks = True
    class_counts: Tensor
    log_prior: Tensor

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        tau: float = 1.0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, **options)
        self.tau = float(check_in_range("tau", tau))
        self.register_buffer("log_prior", log_prior(self.class_counts))

    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        return functional.logit_adjusted_loss(
            logits, target, self.log_prior, tau=self.tau, reduction=reduction
        )

    def implied_prior(self, class_prior: npt.ArrayLike) -> FloatArray:
        return adjusted_prior(class_prior, self.log_prior, self.tau)

    def link(self) -> Link:
        return Link()

    def extra_repr(self) -> str:
        return f"tau={self.tau}, {super().extra_repr()}"


def _vs_terms(log_prior: Tensor, gamma: float, tau: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    return vs_terms(log_prior.to(dtype), gamma, tau)


class VSLoss(Loss):
    """Vector-scaling loss: cross-entropy of (n_c/n_max)^γ z_c + τ log π_c (Kini et al. 2021; Lieberman et
    al., Eq 3).

    ``implied_prior`` accounts for τ, and ``link`` for the scales γ.

    Parameters
    ----------
    class_counts : array of shape (C,)
        Training samples of each class, whose shares are the prior π.
    gamma : float
        γ, the exponent of the scales; 0 leaves the logits as they are.
    tau : float
        τ, the strength of the adjustment; 0 leaves the logits as they are.
    **options : Any
        Options of :class:`~equipoise.losses.Loss`: ``reduction``, ``ignore_index``, ``validate`` and
        ``empty_classes``.

    References
    ----------
    Kini et al.: Label-imbalanced and group-sensitive classification under overparameterization,
    NeurIPS 2021; Lieberman et al., Eqs 3, 21 and 22.

    Examples
    --------
    >>> import torch
    >>> VSLoss([9, 1], gamma=0, tau=0)(torch.zeros(1, 2), torch.tensor([1]))
    tensor(0.6931)
    """

    aliases: ClassVar[tuple[str, ...]] = ("vector_scaling",)
    rowwise = frozenset({"gamma", "tau"})
    needs_counts = True
    soft_targets = True
    kernel_checks = True
    class_counts: Tensor
    log_prior: Tensor

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        gamma: float = 0.2,
        tau: float = 1.0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, **options)
        self.gamma = float(check_in_range("gamma", gamma, 0))
        self.tau = float(check_in_range("tau", tau))
        self.register_buffer("log_prior", log_prior(self.class_counts))

    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        scale, shift = self.made_once(_vs_terms, self.log_prior, self.gamma, self.tau, logits.dtype)
        return affine_loss(logits, target, scale, shift, reduction=reduction)

    def implied_prior(self, class_prior: npt.ArrayLike) -> FloatArray:
        return adjusted_prior(class_prior, self.log_prior, self.tau)

    def link(self) -> Link:
        """softmax(Δ∘z), the scaled logits, under the prior that τ implies.

        Returns
        -------
        Link
            The link.
        """
        log_prior = self.log_prior.detach().cpu().double().numpy()
        return Link(scales=tuple(np.exp(self.gamma * (log_prior - log_prior.max())).tolist()))

    def extra_repr(self) -> str:
        return f"gamma={self.gamma}, tau={self.tau}, {super().extra_repr()}"
