"""What losses learned on a meta set have in common.

A learned loss is a function of the logits, the head's weights and Ω. The dynamics of the samples (their
surprise, entropy, …) enter as constants, as in Shu et al. 2019; so do the features, through the covariances.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass

import numpy.typing as npt
import torch
from torch import Tensor, nn

from equipoise._core.checks import FloatArray, check_in_range
from equipoise.losses._base import check_class_counts, counts_buffer
from equipoise.losses._covariance import RunningCovariance, check_covariance
from equipoise.losses.class_balanced import class_balanced_weight
from equipoise.losses.cross_entropy import reweighted_prior


@dataclass
class SeenBatch:
    """A batch as a learned loss sees it: all of it constant, over the rows of all processes."""

    logits: Tensor
    target: Tensor
    features: Tensor
    index: Tensor
    weight: Tensor | None = None
    dynamics: Tensor | None = None


class LearnedLoss(nn.Module, abc.ABC):
    """A loss L(logits, head weights; Ω).

    Ω is the modules' parameters, and for those with a covariance a Σ of each class: it is estimated anew
    for every step, corrected by the meta gradient, and lasts that step.

    Parameters
    ----------
    class_counts : array of shape (C,)
        Training samples of each class.
    beta : float
        β of the effective number that weighs the classes.
    """

    class_weight: Tensor
    class_counts: Tensor

    def __init__(self, class_counts: npt.ArrayLike, *, beta: float = 0.9999) -> None:
        super().__init__()
        counts = check_class_counts(class_counts, "error")
        self.register_buffer("class_counts", counts_buffer(counts))
        self.register_buffer("class_weight", class_balanced_weight(counts, beta))
        self.progress = 1.0
        self.sigma: Tensor | None = None

    @property
    def learns(self) -> bool:
        """Whether there is anything to learn on the meta set."""
        return next(self.parameters(), None) is not None

    def prepare(self, n_features: int, n_rows: int) -> None:
        """Make what depends on the network's width and the number of training rows.

        Parameters
        ----------
        n_features : int
            The width of the network's features.
        n_rows : int
            The number of training rows.
        """

    def start_epoch(self, epoch: int, epochs: int) -> None:
        """An epoch begins. The training loop calls it.

        Parameters
        ----------
        epoch : int
            The number of the epoch, from 0.
        epochs : int
            How many there are.
        """
        self.progress = (epoch + 1) / max(epochs, 1)

    def observe(self, seen: SeenBatch, *, training: bool = True) -> None:
        """Take a batch into the running statistics (if it is one of training) and add its dynamics.

        Parameters
        ----------
        seen : SeenBatch
            The batch.
        training : bool
            Whether it is a batch of training rows, not of the meta set.
        """

    def begin(self) -> list[Tensor]:
        """The Σ of this step as leaves; none if the loss has no covariances.

        Returns
        -------
        list of Tensor
            The leaves that the meta gradient is taken with respect to.
        """
        return []

    def learn(self, gradients: Sequence[Tensor | None]) -> None:
        """Correct the Σ of this step by their meta gradients.

        Parameters
        ----------
        gradients : sequence of Tensor or None
            The meta gradients of what :meth:`begin` returned, in that order.
        """

    @abc.abstractmethod
    def forward(self, logits: Tensor, seen: SeenBatch, head_weight: Tensor) -> Tensor:
        """The mean loss of a batch.

        Parameters
        ----------
        logits : Tensor of shape (n, C)
            Raw logits.
        seen : SeenBatch
            The batch, with its targets and whatever :meth:`observe` added.
        head_weight : Tensor of shape (C, d)
            The weights of the network's linear head.

        Returns
        -------
        Tensor
            The mean loss, a scalar.
        """

    def implied_prior(self, class_prior: npt.ArrayLike) -> FloatArray:
        """The prior of the posterior that minimizing this loss trains.

        Parameters
        ----------
        class_prior : array of shape (C,)
            The class shares of the training data.

        Returns
        -------
        array of shape (C,)
            The class shares under which the trained posterior is right.
        """
        return reweighted_prior(class_prior, self.class_weight)


class LossWithCovariance(LearnedLoss):
    """A learned loss with a covariance of each class, which remembers as many samples as the class has."""

    uses_sigma = True
    fades = True

    def __init__(
        self,
        class_counts: npt.ArrayLike,
        *,
        beta: float = 0.9999,
        covariance: str = "auto",
        sigma_lr: float = 100.0,
    ) -> None:
        super().__init__(class_counts, beta=beta)
        self.covariance = check_covariance(covariance)
        self.sigma_lr = float(check_in_range("sigma_lr", sigma_lr, 0))
        self.statistics: RunningCovariance | None = None

    @property
    def learns(self) -> bool:
        """Whether anything is learned on the meta set."""
        return (self.uses_sigma and self.sigma_lr > 0) or super().learns

    def prepare(self, n_features: int, n_rows: int) -> None:
        if self.uses_sigma and self.statistics is None:
            memory = self.class_counts if self.fades else None
            self.statistics = RunningCovariance(
                len(self.class_counts), n_features, self.covariance, memory, self.class_weight
            )

    def observe(self, seen: SeenBatch, *, training: bool = True) -> None:
        if training and self.statistics is not None:
            self.statistics.update(seen.features, seen.target)

    def begin(self) -> list[Tensor]:
        if self.statistics is None:
            return []
        self.sigma = self.statistics.sigma.clone().requires_grad_()
        return [self.sigma]

    def learn(self, gradients: Sequence[Tensor | None]) -> None:
        if self.sigma is None:
            return
        with torch.no_grad():
            (gradient,) = gradients
            moved = self.sigma if gradient is None else nearest_psd(self.sigma - self.sigma_lr * gradient)
            self.sigma = moved.detach()


def nearest_psd(sigma: Tensor) -> Tensor:
    """Each matrix (or diagonal) with its negative eigenvalues set to zero.

    >>> nearest_psd(torch.tensor([[[1.0, 0.0], [0.0, -1.0]]]))
    tensor([[[1., 0.],
             [0., 0.]]])
    """
    if sigma.ndim == 2:
        return sigma.clamp_min(0)
    sigma = (sigma + sigma.mT) / 2
    scale = sigma.diagonal(dim1=1, dim2=2).mean(1).clamp_min(0)
    rounding = torch.finfo(sigma.dtype)
    ridge = (10 * rounding.eps * scale + rounding.tiny)[:, None, None] * torch.eye(sigma.shape[1]).to(sigma)
    # Cholesky is a tenth of the price of eigenvalues and settles the usual case.
    broken = torch.linalg.cholesky_ex(sigma + ridge).info.nonzero().flatten()
    if len(broken):
        values, vectors = torch.linalg.eigh(sigma[broken])
        sigma = sigma.index_copy(0, broken, (vectors * values.clamp_min(0)[:, None, :]) @ vectors.mT)
    return sigma
