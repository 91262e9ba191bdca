"""In what order, and how often, an epoch visits the samples: a function of a generator alone."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from equipoise._core.checks import FloatArray, check_choice, check_distribution, check_integer


class Sampler(Protocol):
    """``order(generator)`` lists the rows of one epoch; equal generators give equal orders."""

    def order(self, generator: torch.Generator) -> Tensor: ...


class Shuffle:
    """Every row once, shuffled.

    >>> sorted(Shuffle(4).order(torch.Generator().manual_seed(0)).tolist())
    [0, 1, 2, 3]
    """

    def __init__(self, n_samples: int) -> None:
        self.n_samples = check_integer("n_samples", n_samples, low=1)

    def order(self, generator: torch.Generator) -> Tensor:
        return torch.randperm(self.n_samples, generator=generator)


class ClassSampler:
    """Classes in given shares; within a class every row once before any row again.

    Parameters
    ----------
    targets : Tensor
        Class codes of the rows.
    shares : array-like
        The share of each class in an epoch: the class prior that the learner sees.
    n_draws : int, optional
        Rows an epoch, as many as there are by default.

    Examples
    --------
    >>> targets = torch.tensor([0] * 9 + [1])
    >>> order = ClassSampler(targets, [0.5, 0.5]).order(torch.Generator().manual_seed(0))
    >>> targets[order].bincount().tolist()
    [5, 5]
    """

    def __init__(self, targets: Tensor, shares: Any, n_draws: int | None = None) -> None:
        self.shares = check_distribution("shares", shares)
        self._rows = [torch.nonzero(targets.cpu() == code).flatten() for code in range(len(self.shares))]
        for code, (rows, share) in enumerate(zip(self._rows, self.shares, strict=True)):
            if share > 0 and not len(rows):
                raise ValueError(f"shares asks for {share:g} of class {code}, which has no samples")
        self.n_draws = check_integer("n_draws", len(targets) if n_draws is None else n_draws, low=1)

    def order(self, generator: torch.Generator) -> Tensor:
        drawn = []
        for rows, count in zip(self._rows, self._counts(generator), strict=True):
            if count:
                rounds = -(-count // len(rows))
                turns = [rows[torch.randperm(len(rows), generator=generator)] for _ in range(rounds)]
                drawn.append(torch.cat(turns)[:count])
        epoch = torch.cat(drawn)
        return epoch[torch.randperm(len(epoch), generator=generator)]

    def _counts(self, generator: torch.Generator) -> list[int]:
        """Whole numbers whose mean over epochs is share × draws: systematic rounding with a random start."""
        start = float(torch.rand((), generator=generator))
        ends = np.floor(np.cumsum(self.shares) * self.n_draws + start).astype(int)
        ends[-1] = self.n_draws + int(np.floor(start))
        counts = np.diff(ends, prepend=0)
        return [max(int(count), 0) for count in counts]


def class_shares(sampler: Any, counts: FloatArray) -> FloatArray:
    """The class prior of an epoch, from a name or an array of shares.

    ``"balanced"`` takes every class that has samples equally often, ``"sqrt"`` in proportion to the square
    root of its count.
    """
    if isinstance(sampler, str):
        power = {"balanced": 0.0, "sqrt": 0.5}
        check_choice("sampler", sampler, power)
        mass = np.where(counts > 0, np.asarray(counts, dtype=np.float64) ** power[sampler], 0.0)
        return np.asarray(mass / mass.sum())
    shares = check_distribution("sampler", sampler)
    if len(shares) != len(counts):
        raise ValueError(f"sampler must give a share for each of {len(counts)} classes, got {len(shares)}")
    return shares
