"""Meta-ENum: effective numbers with an offset and a scatter that are learned on a meta set."""

from __future__ import annotations

import warnings

import numpy.typing as npt
import torch
from torch import Tensor, nn

from equipoise._core.checks import check_choice, check_in_range, check_integer
from equipoise.losses import functional
from equipoise.losses._learned import LossWithCovariance, SeenBatch
from equipoise.losses.functional.shared import reduce_loss


class MetaENumLoss(LossWithCovariance):
    """Class-balanced cross-entropy of ν_z + τ₁ h(x, z) + τ₂ DS_yz with learned h and Σ (Wu & Li, Eq 20).

    Parameters
    ----------
    class_counts : array of shape (C,)
        Training samples of each class.
    beta : float
        β of the effective number.
    tau1, tau2 : float
        τ₁ and τ₂. Zero takes the part out, with all that would be learned for it: the ablations of Table 9.
    offset : {"learned", "constant"}
        Learn h, or hold it at 1. With ``sigma_lr=0``, too, nothing is learned, and what is left is
        :class:`~equipoise.losses.CombinedLoss`.
    hidden : int
        Units of h, a three-layer perceptron on the five training dynamics, with a sigmoid at its end.
    covariance : {"auto", "full", "diagonal"}
        Σ of each class: C·d² or C·d numbers; ``"auto"`` keeps full matrices while they are small.
    sigma_lr : float
        λ₂, the step of Σ along the meta gradient; 0 keeps the estimate.
    forgetting : bool or "auto"
        Count forgetting, n·C small integers; ``"auto"`` does so up to 5·10⁷ of them.

    References
    ----------
    Wu & Li: Revisiting the Effective Number Theory for Imbalanced Learning.

    Examples
    --------
    >>> loss = MetaENumLoss([100, 10], tau1=0, tau2=0)
    >>> seen = SeenBatch(torch.zeros(1, 2), torch.tensor([1]), torch.zeros(1, 3), torch.tensor([0]))
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
        offset: str = "learned",
        hidden: int = 100,
        covariance: str = "auto",
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
        if check_choice("offset", offset, ["learned", "constant"]) == "learned" and self.tau1:
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
    def observe(self, seen: SeenBatch, *, training: bool = True) -> None:
        super().observe(seen, training=training)
        if self.offset is None:
            return
        forgotten = None if self.counter is None else self.counter.share(seen.index)
        seen.dynamics = training_dynamics(seen.logits, seen.target, forgotten)
        if training and self.counter is not None:
            self.counter.update(seen.index, seen.dynamics[..., 3])

    def offsets(self, dynamics: Tensor) -> Tensor:
        """h of the dynamics (…, 5).

        Parameters
        ----------
        dynamics : Tensor of shape (…, 5)
            The training dynamics.

        Returns
        -------
        Tensor of shape (…,)
            h.

        Raises
        ------
        ValueError
            If this loss learns no h.
        """
        if self.offset is None:
            raise ValueError("this loss learns no h: tau1 is 0, or the offset is constant")
        return self.offset(dynamics.to(next(self.offset.parameters()).dtype)).squeeze(-1)

    def forward(self, logits: Tensor, seen: SeenBatch, head_weight: Tensor) -> Tensor:
        h: Tensor | float = 1.0
        scatter: Tensor | float = 0.0
        if self.offset is not None and seen.dynamics is not None:
            h = self.offsets(seen.dynamics)
        if self.sigma is not None:
            scatter = functional.data_scatter(head_weight.to(self.sigma.dtype), self.sigma, seen.target)
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


class ForgettingCounter(nn.Module):
    """How often (ω_y − ω_z)ᵀf(x) < 0 was seen, for every training row and class (Wu & Li §4.2.2).

    It keeps n·C small integers.

    >>> counter = ForgettingCounter(3, 2)
    >>> rows = torch.tensor([1])
    >>> counter.update(rows, torch.tensor([[0.0, -1.0]]))
    >>> counter.update(rows, torch.tensor([[0.0, 1.0]]))
    >>> counter.share(rows)
    tensor([[0.0000, 0.5000]])
    """

    visits: Tensor
    lost: Tensor

    def __init__(self, n_rows: int, n_classes: int) -> None:
        super().__init__()
        self.register_buffer("visits", torch.zeros(n_rows, dtype=torch.int32))
        self.register_buffer("lost", torch.zeros(n_rows, n_classes, dtype=torch.int16))

    @torch.no_grad()
    def share(self, index: Tensor) -> Tensor:
        """The share of visits that lost; 0 for a row that was never seen (or is not a training row)."""
        known = index.clamp_min(0)
        share = self.lost[known] / self.visits[known, None].clamp_min(1)
        return share.masked_fill((index < 0)[:, None], 0.0)

    @torch.no_grad()
    def update(self, index: Tensor, margin: Tensor) -> None:
        self.visits.index_add_(0, index, torch.ones_like(index, dtype=self.visits.dtype))
        self.lost.index_add_(0, index, (margin < 0).to(self.lost.dtype))
