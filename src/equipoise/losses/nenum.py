"""New effective numbers: weights per sample from data scatter, counts and offset."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy.typing as npt
import torch
from torch import Tensor

from equipoise._core.checks import FloatArray, check_choice, check_fraction, check_in_range
from equipoise.losses import functional
from equipoise.losses._base import Loss, LossOptions
from equipoise.losses._statistics import ClassStatistics
from equipoise.losses.class_balanced import class_balanced_weight
from equipoise.losses.cross_entropy import reweighted_prior
from equipoise.losses.functional.shared import negative_log_likelihood, weighted_mean

if TYPE_CHECKING:
    from typing_extensions import Unpack

_OFFSETS = ("robust", "focal", "none", "inverse")


class NENumLoss(Loss):
    """Cross-entropy weighted by DS̄_y·(1−β)/(1−β^n_y)·g(x, y) (Wu & Li, Eqs 16–19).

    The data scatter DS̄ and the class means p̄(y) come from the epoch before; the first epoch has equal
    scatter and p̄ = 1/C. Between epochs call ``start_epoch`` and ``end_epoch``, as the training loop does.

    Parameters
    ----------
    class_counts : array of shape (C,)
        Training samples of each class.
    beta : float
        β of the effective number.
    offset : {"robust", "focal", "none", "inverse"}
        g: Eq 19, or its ablations NENum− (Eq 28) and NENum−− (Eq 29), or the literal 1/p of Eq 17.
    r, threshold : float
        The exponent of Eq 19 and its τ, below which a sample counts as doubtful.
    scatter : bool or "auto"
        Whether the data scatter takes part; without it the loss needs no head weights. ``"auto"`` leaves it
        out with two classes: the frequent one soon scatters more in the logits, and the scatter would give
        back to it the weight that the effective numbers took.
    **options : Any
        Options of :class:`~equipoise.losses.Loss`: ``reduction``, ``ignore_index``, ``validate`` and
        ``empty_classes``.

    References
    ----------
    Wu & Li, "Revisiting the Effective Number Theory for Imbalanced Learning".

    Examples
    --------
    >>> import torch
    >>> loss = NENumLoss([100, 10, 10])
    >>> sorted(loss.requires)
    ['head_weight']
    >>> loss(torch.zeros(1, 3), torch.tensor([1]), head_weight=torch.eye(3))
    tensor(0.697...)
    """

    requires: ClassVar[frozenset[str]] = frozenset({"head_weight"})
    needs_counts = True
    kernel_checks = True
    follows_epochs = True
    class_counts: Tensor
    class_weight: Tensor
    class_factor: Tensor
    mean_probability: Tensor

    def __init__(
        self,
        class_counts: npt.ArrayLike | None = None,
        *,
        beta: float = 0.9999,
        offset: str = "robust",
        r: float = 2.0,
        threshold: float = 0.2,
        scatter: bool | str = "auto",
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(class_counts, **options)
        self.beta = float(beta)
        self.offset = check_choice("offset", offset, _OFFSETS)
        self.r = float(check_in_range("r", r, 0))
        self.threshold = float(check_fraction("threshold", threshold))
        check_choice("scatter", scatter, [True, False, "auto"])
        self.scatter = self.class_counts.numel() > 2 if scatter == "auto" else bool(scatter)
        if not self.scatter:
            self.requires = frozenset()  # type: ignore[misc]
        weight = class_balanced_weight(self.class_counts.numpy(), beta)
        self.register_buffer("class_weight", weight)
        self.register_buffer("class_factor", weight.clone())
        self.register_buffer("mean_probability", torch.full_like(weight, 1 / weight.numel()))
        self.statistics = ClassStatistics(weight.numel(), pairs=self.scatter)
        self._head: Tensor | None = None

    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        surprise = negative_log_likelihood(logits, target)
        if self.gathering(logits):
            self._head = needs["head_weight"].detach() if self.scatter else None
            self.statistics.update(logits, target, surprise.detach())
        return weighted_mean(self.sample_weights(surprise, target), surprise, reduction)

    def sample_weights(self, surprise: Tensor, target: Tensor) -> Tensor:
        """w(x) of Eq 18, with the class part normalized to sum to the number of classes.

        Parameters
        ----------
        surprise : Tensor of shape (n,)
            The cross-entropy of each sample.
        target : Tensor of shape (n,)
            The classes.

        Returns
        -------
        Tensor of shape (n,)
            The weights.
        """
        g = functional.nenum_offset(
            surprise,
            self.mean_probability.index_select(0, target),
            offset=self.offset,
            r=self.r,
            threshold=self.threshold,
        )
        return g.mul_(self.class_factor.index_select(0, target))

    def start_epoch(self, epoch: int, epochs: int) -> None:
        super().start_epoch(epoch, epochs)
        self.statistics.reset()

    def end_epoch(self) -> None:
        """Take the epoch's scatter and mean probabilities as the next one's."""
        self.statistics.synchronize()
        self.mean_probability.copy_(self.statistics.mean_probability(self.mean_probability))
        if self._head is not None:
            scatter = self.statistics.mean_scatter(self._head).to(self.class_weight)
            self.class_factor.copy_(_scatter_factor(scatter, self.class_weight))
            self._head = None

    def implied_prior(self, class_prior: npt.ArrayLike) -> FloatArray:
        return reweighted_prior(class_prior, self.class_factor)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, offset={self.offset!r}, r={self.r}, scatter={self.scatter}"


def _scatter_factor(mean_scatter: Tensor, class_weight: Tensor) -> Tensor:
    """DS̄·CB normalized to sum to C; a class without a known scatter takes the mean of the others."""
    known = mean_scatter > 0
    total = torch.where(known, mean_scatter, 0).sum()
    fill = torch.where(total > 0, total / known.sum().clamp_min(1), torch.ones_like(total))
    factor = torch.where(known, mean_scatter, fill) * class_weight
    return factor * factor.numel() / factor.sum()
