"""Class statistics that losses gather while they train, summed over batches and processes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, distributed, nn

_ROWS = 512  # classes treated at a time, so that temporaries stay small beside the (C, C) sums


def untouched_zeros(shape: Sequence[int]) -> Tensor:
    """Zeros that take memory only where they are written: 10,000 classes have 10⁸ pairs, a batch sees few."""
    return torch.from_numpy(np.zeros(tuple(shape), dtype=np.float32))


class ClassStatistics(nn.Module):
    """An epoch's sums over each class y of ν_y − ν_z, its square, and p(y|x): Eq 16 from logits in O(n·C).

    Sums merge by adding. They are not saved: an epoch begins with :meth:`reset`. See
    :class:`equipoise.theory.effective_number.ScatterStatistics` for the same in numpy, with the derivation.
    """

    count: Tensor
    probability: Tensor
    total: Tensor
    square: Tensor

    def __init__(self, n_classes: int, *, pairs: bool = True) -> None:
        super().__init__()
        self.pairs = pairs
        wide = n_classes if pairs else 0
        for name, shape in {
            "count": (n_classes,),
            "probability": (n_classes,),
            "total": (n_classes, wide),
            "square": (n_classes, wide),
        }.items():
            self.register_buffer(name, untouched_zeros(shape), persistent=False)

    def reset(self) -> None:
        for name, old in list(self.named_buffers()):
            setattr(self, name, untouched_zeros(old.shape).to(old))

    @torch.no_grad()
    def update(self, logits: Tensor, target: Tensor, probability: Tensor) -> None:
        self.count.index_add_(0, target, torch.ones_like(probability, dtype=self.count.dtype))
        self.probability.index_add_(0, target, probability.to(self.probability.dtype))
        if self.pairs:
            difference = (logits.gather(1, target[:, None]) - logits).to(self.total.dtype)
            self.total.index_add_(0, target, difference)
            self.square.index_add_(0, target, difference.square_())

    @torch.no_grad()
    def synchronize(self) -> None:
        """Add up over processes, if there are several."""
        if distributed.is_available() and distributed.is_initialized():
            for _, buffer in self.named_buffers():
                distributed.all_reduce(buffer)

    @torch.no_grad()
    def mean_probability(self, otherwise: Tensor) -> Tensor:
        """p̄(y) of Eq 19; a class that was not seen keeps its value in ``otherwise``."""
        return torch.where(self.count > 0, self.probability / self.count.clamp_min(1), otherwise)

    @torch.no_grad()
    def scatter_rows(self, classes: Tensor, head_weight: Tensor, eps: float = 1e-12) -> Tensor:
        """DS_yz of Eq 16 for the rows y in ``classes``."""
        n = self.count[classes].clamp_min(1)[:, None]
        mean = self.total[classes] / n
        variance = (self.square[classes] / n - mean.square()).clamp_min(0)
        weight = head_weight.to(variance.dtype)
        distance = torch.cdist(weight[classes], weight, compute_mode="donot_use_mm_for_euclid_dist").square()
        scatter = variance / (distance + eps)
        return scatter.scatter(1, classes[:, None], 0.0)

    @torch.no_grad()
    def mean_scatter(self, head_weight: Tensor) -> Tensor:
        """The average of DS_yz over the other classes (under Eq 17), zero for a class seen less than
        twice.
        """
        n_classes = self.count.numel()
        result = torch.zeros_like(self.count)
        seen = (self.count > 1).nonzero()[:, 0]
        for classes in torch.split(seen, _ROWS):
            result[classes] = self.scatter_rows(classes, head_weight).sum(1) / max(n_classes - 1, 1)
        return result

    @torch.no_grad()
    def scatter(self, head_weight: Tensor) -> Tensor:
        """The whole matrix DS_yz (Eq 16)."""
        everything = torch.arange(self.count.numel(), device=self.count.device)
        return self.scatter_rows(everything, head_weight)


class LazyBuffers(nn.Module):
    """Lets a saved state set buffers that have no shape before the first batch."""

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: object) -> None:
        for name, value in self._buffers.items():
            saved = state_dict.get(prefix + name)
            if saved is not None and (value is None or value.shape != saved.shape):
                self._buffers[name] = torch.empty_like(saved)
        super()._load_from_state_dict(state_dict, prefix, *args)
