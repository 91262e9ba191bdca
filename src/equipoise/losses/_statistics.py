"""Class statistics that losses gather while they train, summed over batches and processes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, distributed, nn

_ENOUGH = 1 << 16  # logits that are worth a pass of their own; more would not fit a processor's cache
_CHUNK = 1 << 18  # differences made at a time: fewer calls, and memory that is used again
_MANY = 1 << 19  # pairs of classes whose sums do not stay in a processor's cache
_ROWS = 512  # classes treated at a time, so that temporaries stay small beside the (C, C) sums


class ClassStatistics:
    """An epoch's sums over each class y of ν_y − ν_z, its square, and p(y|x): Eq 16 from logits in O(n·C).

    The sums are in float64 (float32 on a device that has none): in float32 a count stops at 2²⁴, and a
    variance loses its digits to the mean's square. They merge by adding, and are neither saved nor cast with
    the loss: an epoch begins with :meth:`reset`, and they follow the logits to their device. See
    :class:`equipoise.theory.effective_number.ScatterStatistics` for the same in numpy, with the derivation.
    """

    def __init__(self, n_classes: int, *, pairs: bool = True) -> None:
        self.n_classes, self.pairs = n_classes, pairs
        self.reset()

    def reset(self) -> None:
        self._samples: list[tuple[Tensor, Tensor]] = []
        self._logits: list[tuple[Tensor, Tensor]] = []
        self._waiting = 0  # numbers in these
        shape = (self.n_classes, self.n_classes) if self.pairs else (0, 0)
        self.count = torch.zeros(self.n_classes, dtype=torch.float64)
        self.probability = torch.zeros(self.n_classes, dtype=torch.float64)
        # Zeros that take memory only where they are written: 10,000 classes have 10⁸ pairs, a batch sees few.
        self.total, self.square = torch.from_numpy(np.zeros((2, *shape))).unbind()

    def _follow(self, device: torch.device) -> None:
        if self.count.device == device:
            return
        dtype = torch.float32 if device.type == "mps" else torch.float64
        for name in ("count", "probability", "total", "square"):
            setattr(self, name, getattr(self, name).to(dtype).to(device))

    def update(self, logits: Tensor, target: Tensor, surprise: Tensor) -> None:
        """Take in a batch. What is small waits: one pass over many batches costs what one over few does.

        ``surprise``, −log p(y|x), is kept as it is; logits and targets, which others may change, are copied.
        """
        compiling = torch.compiler.is_compiling()
        target = target if compiling else target.clone()
        self._samples.append((target, surprise))
        self._waiting += len(target)
        if self.pairs and (compiling or logits.numel() >= _ENOUGH):
            self._add_pairs(logits.detach(), target)
        elif self.pairs:
            self._logits.append((logits.detach().clone(), target))
            self._waiting += logits.numel()
        if compiling or self._waiting >= _ENOUGH:
            self.flush()

    @torch.no_grad()
    def flush(self) -> None:
        """Take in what waits."""
        samples, logits = self._samples, self._logits
        self._samples, self._logits, self._waiting = [], [], 0
        if samples:
            target, surprise = (torch.cat(part) for part in zip(*samples, strict=True))
            self._follow(target.device)
            probability = torch.exp(surprise.neg()).to(self.count.dtype)
            self.count.index_add_(0, target, torch.ones_like(probability))
            self.probability.index_add_(0, target, probability)
        if logits:
            self._add_pairs(*(torch.cat(part) for part in zip(*logits, strict=True)))

    @torch.no_grad()
    def _add_pairs(self, logits: Tensor, target: Tensor) -> None:
        """Class by class where classes repeat and the sums exceed a cache, so that a row of them is read once."""
        self._follow(logits.device)
        n, n_classes = logits.shape
        step = max(n if torch.compiler.is_compiling() else min(_CHUNK // n_classes, n), 1)
        sorts = n >= 2 * n_classes and n_classes**2 >= _MANY
        order = torch.argsort(target, stable=True) if sorts else None
        own = logits.gather(1, target[:, None])
        differences = logits.new_empty(step, n_classes)
        summands = torch.empty_like(differences, dtype=self.count.dtype)
        for start in range(0, n, step):
            some = slice(start, start + step)
            y = target[some] if order is None else target[order[some]]
            difference, summand = differences[: len(y)], summands[: len(y)]
            if order is None:
                torch.sub(own[some], logits[some], out=difference)
            else:
                torch.index_select(logits, 0, order[some], out=difference)
                torch.sub(own[order[some]], difference, out=difference)
            self.total.index_add_(0, y, summand.copy_(difference))
            self.square.index_add_(0, y, summand.square_())

    @torch.no_grad()
    def synchronize(self) -> None:
        """Add up over processes, if there are several."""
        self.flush()
        if distributed.is_available() and distributed.is_initialized():
            for sums in (self.count, self.probability, self.total, self.square):
                distributed.all_reduce(sums)

    @torch.no_grad()
    def mean_probability(self, otherwise: Tensor) -> Tensor:
        """p̄(y) of Eq 19; a class that was not seen keeps its value in ``otherwise``."""
        self.flush()
        mean = (self.probability / self.count.clamp_min(1)).to(otherwise)
        return torch.where((self.count > 0).to(otherwise.device), mean, otherwise)

    @torch.no_grad()
    def scatter_rows(self, classes: Tensor, head_weight: Tensor, eps: float = 1e-12) -> Tensor:
        """DS_yz of Eq 16 for the rows y in ``classes``."""
        self.flush()
        n = self.count[classes].clamp_min(1)[:, None]
        mean = self.total[classes] / n
        variance = (self.square[classes] / n - mean.square()).clamp_min(0)
        weight = head_weight.to(variance)
        distance = torch.cdist(weight[classes], weight, compute_mode="donot_use_mm_for_euclid_dist").square()
        scatter = variance / (distance + eps)
        return scatter.scatter(1, classes[:, None], 0.0)

    @torch.no_grad()
    def mean_scatter(self, head_weight: Tensor) -> Tensor:
        """The average of DS_yz over the other classes (under Eq 17), zero for a class seen less than twice."""
        self.flush()
        result = torch.zeros_like(self.count)
        seen = (self.count > 1).nonzero()[:, 0]
        for classes in torch.split(seen, _ROWS):
            result[classes] = self.scatter_rows(classes, head_weight).sum(1) / max(self.n_classes - 1, 1)
        return result


class LazyBuffers(nn.Module):
    """Lets a saved state set buffers that have no shape before the first batch."""

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: object) -> None:
        for name, value in self._buffers.items():
            saved = state_dict.get(prefix + name)
            if saved is not None and (value is None or value.shape != saved.shape):
                self._buffers[name] = torch.empty_like(saved)
        super()._load_from_state_dict(state_dict, prefix, *args)
