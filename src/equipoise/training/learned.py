"""Losses with parts Ω that are learned on a meta set: Meta-ENum, Meta-Weight-Net and MetaSAug.

A learned loss is a function of the logits, the head's weights and Ω. The dynamics of the samples (their
surprise, entropy, …) enter as constants, as in Shu et al. 2019; so do the features, through the covariances.
"""

from __future__ import annotations

import abc
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from equipoise._core.checks import FloatArray, check_choice, check_in_range, check_integer, check_positive
from equipoise.losses import functional
from equipoise.losses._base import check_class_counts
from equipoise.losses.class_balanced import class_balanced_weight
from equipoise.losses.cross_entropy import reweighted_prior
from equipoise.losses.functional.shared import negative_log_likelihood, reduce_loss
from equipoise.training.metaset import ForgettingCounter


@dataclass
class Seen:
    """A batch as a learned loss sees it: all of it constant, over the rows of all processes."""

    logits: Tensor
    target: Tensor
    features: Tensor
    index: Tensor
    weight: Tensor | None = None
    dynamics: Tensor | None = None


def training_dynamics(logits: Tensor, target: Tensor, forgetting: Tensor | None = None) -> Tensor:
    """Loss, prediction, uncertainty, margin and forgetting of every (sample, class) (Wu & Li §4.2.2).

    Returns
    -------
    Tensor of shape (n, C, 5)
        −log p(y|x), p(z|x), the entropy of p(·|x), ν_y − ν_z, and the share of earlier visits with a
        negative margin (0 without ``forgetting``).

    >>> training_dynamics(torch.zeros(1, 2), torch.tensor([0]))[0, 1]
    tensor([0.6931, 0.5000, 0.6931, 0.0000, 0.0000])
    """
    log_p = torch.log_softmax(logits, dim=1)
    p = log_p.exp()
    surprise = -log_p.gather(1, target[:, None]).expand_as(p)
    entropy = -(p * log_p).sum(1, keepdim=True).expand_as(p)
    margin = logits.gather(1, target[:, None]) - logits
    forgotten = torch.zeros_like(p) if forgetting is None else forgetting.to(p.dtype)
    return torch.stack([surprise, p, entropy, margin, forgotten], dim=-1)


class RunningCovariance(nn.Module):
    """Class means and covariances of features, over the last epoch or so.

    A class remembers at most as many samples as it has, so what an old network gave fades.
    """

    memory: Tensor
    count: Tensor
    mean: Tensor
    sigma: Tensor

    def __init__(self, class_counts: Tensor, n_features: int, covariance: str) -> None:
        super().__init__()
        n_classes = len(class_counts)
        shape = (n_classes, n_features) + ((n_features,) if covariance == "full" else ())
        self.register_buffer("memory", class_counts, persistent=False)
        self.register_buffer("count", torch.zeros(n_classes))
        self.register_buffer("mean", torch.zeros(n_classes, n_features))
        self.register_buffer("sigma", torch.zeros(shape))

    @torch.no_grad()
    def update(self, features: Tensor, target: Tensor) -> None:
        """Merge a batch: second moments about the old mean add up; then the mean moves."""
        features = features.to(self.mean.dtype)
        for code in torch.unique(target).tolist():
            shifted = features[target == code] - self.mean[code]
            old = torch.minimum(self.count[code], self.memory[code])
            total = old + len(shifted)
            shift = shifted.sum(0) / total
            if self.sigma.ndim == 2:
                moment = old * self.sigma[code] + shifted.square().sum(0)
                self.sigma[code] = (moment / total - shift.square()).clamp_min(0)
            else:
                moment = torch.addmm(old * self.sigma[code], shifted.T, shifted)
                self.sigma[code] = moment / total - torch.outer(shift, shift)
            self.mean[code] += shift
            self.count[code] = total


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


def scatter_matrix(head_weight: Tensor, sigma: Tensor, classes: Tensor, eps: float = 1e-12) -> Tensor:
    """DS_yz = ΔωᵀΣ_yΔω / ‖Δω‖² with Δω = ω_y − ω_z (Wu & Li, Eq 16); zero rows outside ``classes``.

    The gradient runs through the weights and Σ.

    >>> scatter_matrix(torch.eye(2), torch.eye(2).expand(2, 2, 2), torch.arange(2))
    tensor([[0., 1.],
            [1., 0.]])
    """
    difference = head_weight[classes].unsqueeze(1) - head_weight
    square = difference.square()
    if sigma.ndim == 2:
        projected = (square * sigma[classes].unsqueeze(1)).sum(-1)
    else:
        projected = ((difference @ sigma[classes]) * difference).sum(-1)
    rows = projected / (square.sum(-1) + eps)
    whole = rows.new_zeros(len(head_weight), len(head_weight))
    return whole.index_copy(0, classes, rows)


class LearnedLoss(nn.Module, abc.ABC):
    """A loss L(logits, head weights; Ω).

    Ω is the modules' parameters, and for those with a covariance a Σ of each class: it is estimated anew
    for every step, corrected by the meta gradient, and lasts that step.

    Parameters
    ----------
    class_counts : array of shape (C,)
    beta : float
        β of the effective number that weighs the classes.
    """

    class_weight: Tensor
    class_counts: Tensor
    uses_sigma = False

    def __init__(self, class_counts: npt.ArrayLike, *, beta: float = 0.9999) -> None:
        super().__init__()
        counts = check_class_counts(class_counts, "error")
        self.register_buffer("class_counts", torch.as_tensor(counts, dtype=torch.float64))
        self.register_buffer("class_weight", class_balanced_weight(self.class_counts, beta))
        self.progress = 1.0
        self.sigma: Tensor | None = None

    def prepare(self, n_features: int, n_rows: int) -> None:
        """Make what depends on the network's width and the number of training rows."""

    def start_epoch(self, epoch: int, epochs: int) -> None:
        self.progress = (epoch + 1) / max(epochs, 1)

    def observe(self, seen: Seen, *, training: bool = True) -> None:
        """Take a batch into the running statistics (if it is one of training) and add its dynamics."""

    def begin(self) -> list[Tensor]:
        """The Σ of this step as leaves; none if the loss has no covariances."""
        return []

    def learn(self, gradients: Sequence[Tensor | None]) -> None:
        """Correct the Σ of this step by their meta gradients."""

    @abc.abstractmethod
    def forward(self, logits: Tensor, seen: Seen, head_weight: Tensor) -> Tensor:
        """The mean loss of a batch."""

    def implied_prior(self, class_prior: npt.ArrayLike) -> FloatArray:
        return reweighted_prior(class_prior, self.class_weight)


class _WithCovariance(LearnedLoss):
    uses_sigma = True

    def __init__(
        self,
        class_counts: npt.ArrayLike,
        *,
        beta: float = 0.9999,
        covariance: str = "full",
        sigma_lr: float = 100.0,
    ) -> None:
        super().__init__(class_counts, beta=beta)
        self.covariance = check_choice("covariance", covariance, ["full", "diagonal"])
        self.sigma_lr = float(check_in_range("sigma_lr", sigma_lr, 0))
        self.statistics: RunningCovariance | None = None

    def prepare(self, n_features: int, n_rows: int) -> None:
        if self.uses_sigma and self.statistics is None:
            made = RunningCovariance(self.class_counts, n_features, self.covariance)
            self.statistics = made.to(self.class_weight)

    def observe(self, seen: Seen, *, training: bool = True) -> None:
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


class MetaENumLoss(_WithCovariance):
    """Class-balanced cross-entropy of ν_z + τ₁ h(x, z) + τ₂ DS_yz with learned h and Σ (Wu & Li, Eq 20).

    Parameters
    ----------
    class_counts : array of shape (C,)
    beta : float
        β of the effective number.
    tau1, tau2 : float
        τ₁ and τ₂. Zero takes the part out, with all that would be learned for it: the ablations of Table 9.
    hidden : int
        Units of h, a three-layer perceptron on the five training dynamics, with a sigmoid at its end.
    covariance : {"full", "diagonal"}
        Σ of each class: C·d² or C·d numbers.
    sigma_lr : float
        λ₂, the step of Σ along the meta gradient.
    forgetting : bool or "auto"
        Count forgetting, n·C small integers; ``"auto"`` does so up to 5·10⁷ of them.

    Examples
    --------
    >>> loss = MetaENumLoss([100, 10], tau1=0, tau2=0)
    >>> seen = Seen(torch.zeros(1, 2), torch.tensor([1]), torch.zeros(1, 3), torch.tensor([0]))
    >>> torch.isclose(loss(torch.zeros(1, 2), seen, torch.zeros(2, 3)), 0.693147 * loss.class_weight[1])
    tensor(True)
    """

    def __init__(
        self,
        class_counts: npt.ArrayLike,
        *,
        beta: float = 0.9999,
        tau1: float = 1.0,
        tau2: float = 1.0,
        hidden: int = 100,
        covariance: str = "full",
        sigma_lr: float = 100.0,
        forgetting: bool | str = "auto",
    ) -> None:
        super().__init__(class_counts, beta=beta, covariance=covariance, sigma_lr=sigma_lr)
        self.tau1 = float(check_in_range("tau1", tau1, 0))
        self.tau2 = float(check_in_range("tau2", tau2, 0))
        self.uses_sigma = self.tau2 > 0
        self.forgetting = check_choice("forgetting", forgetting, [True, False, "auto"])
        check_integer("hidden", hidden, low=1)
        self.offset: nn.Sequential | None = None
        if self.tau1:
            self.offset = nn.Sequential(nn.Linear(5, hidden), nn.ReLU(), nn.Linear(hidden, 1), nn.Sigmoid())
        self.counter: ForgettingCounter | None = None

    def prepare(self, n_features: int, n_rows: int) -> None:
        super().prepare(n_features, n_rows)
        if self.counter is not None or self.offset is None or self.forgetting is False:
            return
        n_classes = len(self.class_counts)
        if self.forgetting == "auto" and n_rows * n_classes > 5e7:
            warnings.warn(
                f"forgetting is not counted for {n_rows} rows × {n_classes} classes; forgetting=True counts",
                UserWarning,
                stacklevel=2,
            )
            return
        self.counter = ForgettingCounter(n_rows, n_classes).to(self.class_weight.device)

    @torch.no_grad()
    def observe(self, seen: Seen, *, training: bool = True) -> None:
        super().observe(seen, training=training)
        if self.offset is None:
            return
        forgotten = None if self.counter is None else self.counter.share(seen.index)
        seen.dynamics = training_dynamics(seen.logits, seen.target, forgotten)
        if training and self.counter is not None:
            self.counter.update(seen.index, seen.dynamics[..., 3])

    def offsets(self, dynamics: Tensor) -> Tensor:
        """h of the dynamics (…, 5)."""
        if self.offset is None:
            raise ValueError("this loss learns no h: tau1 is 0")
        return self.offset(dynamics.to(next(self.offset.parameters()).dtype)).squeeze(-1)

    def forward(self, logits: Tensor, seen: Seen, head_weight: Tensor) -> Tensor:
        nothing = logits.new_zeros(())
        h, scatter = nothing.expand_as(logits), nothing.expand(logits.shape[1], logits.shape[1])
        if self.offset is not None and seen.dynamics is not None:
            h = self.offsets(seen.dynamics)
        if self.sigma is not None:
            weight = head_weight.to(self.sigma.dtype)
            scatter = scatter_matrix(weight, self.sigma, torch.unique(seen.target))
        each = functional.combined_loss(
            logits,
            seen.target,
            self.class_weight,
            offset=h,
            scatter=scatter,
            tau1=self.tau1,
            tau2=self.tau2,
            reduction="none",
        )
        return reduce_loss(each, "mean", seen.weight)


class MetaSAugLoss(_WithCovariance):
    """Class-balanced ISDA whose covariances are corrected by meta gradients (Li et al. 2021).

    Parameters
    ----------
    class_counts : array of shape (C,)
    strength : float
        λ of ISDA at the end of training; it grows in proportion to the epoch.
    beta, covariance, sigma_lr
        As for :class:`MetaENumLoss`.

    References
    ----------
    Li et al.: MetaSAug: Meta Semantic Augmentation for Long-Tailed Visual Recognition, CVPR 2021.

    >>> MetaSAugLoss([9, 1]).covariance
    'full'
    """

    def __init__(
        self,
        class_counts: npt.ArrayLike,
        *,
        strength: float = 0.5,
        beta: float = 0.9999,
        covariance: str = "full",
        sigma_lr: float = 100.0,
    ) -> None:
        super().__init__(class_counts, beta=beta, covariance=covariance, sigma_lr=sigma_lr)
        self.strength = float(check_positive("strength", strength))

    def forward(self, logits: Tensor, seen: Seen, head_weight: Tensor) -> Tensor:
        if self.sigma is None:
            each = negative_log_likelihood(logits, seen.target)
        else:
            weight = head_weight.to(self.sigma.dtype)
            strength = self.strength * self.progress
            each = functional.isda_loss(
                logits, seen.target, weight, self.sigma, strength=strength, reduction="none"
            )
        return reduce_loss(self.class_weight.to(each.dtype)[seen.target] * each, "mean", seen.weight)


class MetaWeightNetLoss(LearnedLoss):
    """Cross-entropy weighted by a learned function of the sample's loss (Shu et al. 2019).

    A 1-100-1 perceptron with a sigmoid gives the weights; they are divided by their sum over the batch.

    Parameters
    ----------
    class_counts : array of shape (C,)
    hidden : int
        Units of the weighting network.

    References
    ----------
    Shu et al.: Meta-Weight-Net: Learning an Explicit Mapping For Sample Weighting, NeurIPS 2019.

    >>> loss = MetaWeightNetLoss([9, 1])
    >>> sum(p.numel() for p in loss.parameters())
    301
    """

    def __init__(self, class_counts: npt.ArrayLike, *, hidden: int = 100) -> None:
        super().__init__(class_counts, beta=0.0)
        check_integer("hidden", hidden, low=1)
        self.weighting = nn.Sequential(nn.Linear(1, hidden), nn.ReLU(), nn.Linear(hidden, 1), nn.Sigmoid())

    def weights(self, surprise: Tensor) -> Tensor:
        """The weight of a sample whose loss is ``surprise``."""
        given = surprise.to(next(self.weighting.parameters()).dtype)
        return self.weighting(given.unsqueeze(-1)).squeeze(-1)

    def forward(self, logits: Tensor, seen: Seen, head_weight: Tensor) -> Tensor:
        surprise = negative_log_likelihood(logits, seen.target)
        weight = self.weights(surprise.detach())
        if seen.weight is not None:
            weight = weight * seen.weight.to(weight.dtype)
        return reduce_loss(surprise, "mean", weight)

    def implied_prior(self, class_prior: npt.ArrayLike) -> FloatArray:
        """The data's own: the weights follow the samples' losses, not their classes."""
        return np.asarray(class_prior, dtype=np.float64)


METHODS: dict[str, type[LearnedLoss]] = {
    "meta-enum": MetaENumLoss,
    "mwn": MetaWeightNetLoss,
    "metasaug": MetaSAugLoss,
}
"""Learned losses by name."""
