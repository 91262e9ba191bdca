"""In what order, and how often, an epoch visits the samples: a function of a generator alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, distributed

from equipoise._core.checks import (
    FloatArray,
    check_choice,
    check_counts,
    check_distribution,
    check_fraction,
    check_integer,
)
from equipoise._core.random import derive_seed
from equipoise.theory.effective_number import effective_number


class Sampler(Protocol):
    """``order(generator)`` lists the rows of one epoch; equal generators give equal orders."""

    def order(self, generator: torch.Generator) -> Tensor:
        """The rows of one epoch.

        Parameters
        ----------
        generator : torch.Generator
            The source of randomness.

        Returns
        -------
        Tensor of int
            Row numbers, in order.
        """


class Shuffle:
    """Every row once, shuffled.

    Parameters
    ----------
    n_samples : int
        The number of rows.

    Examples
    --------
    >>> sorted(Shuffle(4).order(torch.Generator().manual_seed(0)).tolist())
    [0, 1, 2, 3]
    """

    def __init__(self, n_samples: int) -> None:
        self.n_samples = check_integer("n_samples", n_samples, low=1)

    def order(self, generator: torch.Generator) -> Tensor:
        """The rows of one epoch.

        Parameters
        ----------
        generator : torch.Generator
            The source of randomness.

        Returns
        -------
        Tensor of int
            Row numbers, in order.
        """
        return torch.randperm(self.n_samples, generator=generator)


class ClassSampler(torch.utils.data.Sampler[int]):
    """Classes in given shares; within a class every row once before any row again.

    It serves the training loop here, and any ``DataLoader`` as its ``sampler``. In several processes each takes
    its part of one common order, so that no draw is made twice; a rare row that an order holds several times may
    come to several of them.

    Parameters
    ----------
    targets : Tensor or array of shape (n,)
        Class codes of the rows.
    shares : str, float or array-like
        The share of each class in an epoch, which is the class prior that the learner sees: an array, or what
        :func:`class_shares` knows, such as ``"balanced"``.
    n_draws : int, optional
        Rows per epoch, in all processes together; as many as there are by default.
    seed : int
        Of the orders that iterating gives; each epoch has its own.
    num_replicas, rank : int, optional
        How many processes share an order and which of them this is; by default what ``torch.distributed``
        says. All get equally many rows: the last few of an order, fewer than there are processes, are left.

    Examples
    --------
    >>> targets = torch.tensor([0] * 9 + [1])
    >>> order = ClassSampler(targets, [0.5, 0.5]).order(torch.Generator().manual_seed(0))
    >>> targets[order].bincount().tolist()
    [5, 5]
    >>> sampler = ClassSampler(targets, "balanced")
    >>> loader = torch.utils.data.DataLoader(targets, batch_size=5, sampler=sampler)
    >>> sampler.set_epoch(1)
    >>> [len(batch) for batch in loader]
    [5, 5]
    """

    def __init__(
        self,
        targets: Tensor | npt.ArrayLike,
        shares: Any,
        n_draws: int | None = None,
        *,
        seed: int = 0,
        num_replicas: int | None = None,
        rank: int | None = None,
    ) -> None:
        targets = torch.as_tensor(targets).cpu()
        if isinstance(shares, str) or np.ndim(shares) == 0:
            shares = class_shares(shares, np.bincount(targets[targets >= 0].numpy()).astype(np.float64))
        self.shares = check_distribution("shares", shares)
        self._rows = [torch.nonzero(targets == code).flatten() for code in range(len(self.shares))]
        for code, (rows, share) in enumerate(zip(self._rows, self.shares, strict=True)):
            if share > 0 and not len(rows):
                raise ValueError(f"shares asks for {share:g} of class {code}, which has no samples")
        self.n_draws = check_integer("n_draws", len(targets) if n_draws is None else n_draws, low=1)
        self.seed, self.epoch = check_integer("seed", seed, low=0), 0
        here = distributed.is_available() and distributed.is_initialized()
        if num_replicas is None:
            num_replicas = distributed.get_world_size() if here else 1
        self.num_replicas = check_integer("num_replicas", num_replicas, low=1, high=self.n_draws)
        own = (distributed.get_rank() if here else 0) if rank is None else rank
        self.rank = check_integer("rank", own, low=0, high=self.num_replicas - 1)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next iteration, as for torch's ``DistributedSampler``.

        Parameters
        ----------
        epoch : int
            The number of the epoch, from 0.
        """
        self.epoch = check_integer("epoch", epoch, low=0)

    def __len__(self) -> int:
        return self.n_draws // self.num_replicas

    def __iter__(self) -> Iterator[int]:
        seed = derive_seed(self.seed, "order", self.epoch)
        order = self.order(torch.Generator().manual_seed(seed))
        mine = order[self.rank :: self.num_replicas][: len(self)]
        return iter(mine.tolist())

    def order(self, generator: torch.Generator) -> Tensor:
        """The rows of one epoch.

        Parameters
        ----------
        generator : torch.Generator
            The source of randomness.

        Returns
        -------
        Tensor of int
            Row numbers, in order.
        """
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


def effective_number_shares(counts: Any, beta: float = 0.9999) -> FloatArray:
    """Every sample in proportion to (1−β)/(1−β^n) of its class: the sampler's form of class-balanced weights.

    β = 0 leaves the classes as they are and β = 1 balances them (Cui et al. 2019).

    Parameters
    ----------
    counts : array of shape (C,)
        The training samples of each class.
    beta : float
        β in [0, 1].

    Returns
    -------
    array of shape (C,)
        The class shares of an epoch.

    Examples
    --------
    >>> effective_number_shares([90, 10], beta=1.0)
    array([0.5, 0.5])
    """
    n = check_counts("counts", counts)
    covered = effective_number(n, beta)
    mass = np.divide(n, covered, out=np.zeros(n.size), where=n > 0)
    return np.asarray(mass / mass.sum())


def ratio_shares(counts: Any, rho: float) -> FloatArray:
    """A share ρ for the rarest class that has samples; the others divide the rest as their counts do.

    In a binary problem ρ is the training fraction of the minority class.

    Parameters
    ----------
    counts : array of shape (C,)
        The training samples of each class.
    rho : float
        ρ, between 0 and 1.

    Returns
    -------
    array of shape (C,)
        The class shares of an epoch.

    Examples
    --------
    >>> ratio_shares([90, 10], 0.3)
    array([0.7, 0.3])
    """
    n = np.atleast_1d(check_counts("counts", counts)).astype(np.float64)
    share = float(check_fraction("rho", rho))
    if n.ndim != 1:
        raise ValueError(f"counts must be a vector, got shape {n.shape}")
    rarest = int(np.where(n > 0, n, np.inf).argmin())
    others = n.copy()
    others[rarest] = 0.0
    if others.sum() == 0:
        raise ValueError(f"counts must have samples of two classes or more, got {n.tolist()}")
    shares = (1 - share) * others / others.sum()
    shares[rarest] = share
    return np.asarray(shares)


def class_shares(sampler: Any, counts: FloatArray) -> FloatArray:
    """The class prior of an epoch, from a name or an array of shares.

    ``"balanced"`` takes every class that has samples equally often, ``"sqrt"`` in proportion to the square
    root of its count, ``"effective_number"`` as :func:`effective_number_shares` says. A number ρ is the share of
    the rarest class, see :func:`ratio_shares`.

    Parameters
    ----------
    sampler : str, float or array of shape (C,)
        A name, ρ, or the shares themselves.
    counts : array of shape (C,)
        The training samples of each class.

    Returns
    -------
    array of shape (C,)
        The class shares of an epoch.

    Raises
    ------
    ValueError
        If the name is not known.

    Examples
    --------
    >>> class_shares("balanced", np.array([90, 10]))
    array([0.5, 0.5])
    """
    if isinstance(sampler, str):
        check_choice("sampler", sampler, ["balanced", "sqrt", "effective_number"])
        if sampler == "effective_number":
            return effective_number_shares(counts)
        power = 0.0 if sampler == "balanced" else 0.5
        mass = np.where(counts > 0, np.asarray(counts, dtype=np.float64) ** power, 0.0)
        return np.asarray(mass / mass.sum())
    if np.ndim(sampler) == 0:
        return ratio_shares(counts, sampler)
    shares = check_distribution("sampler", sampler)
    if len(shares) != len(counts):
        raise ValueError(f"sampler must give a share for each of {len(counts)} classes, got {len(shares)}")
    return shares


class GroupSampler:
    """Batches of whole groups: ``n_mixed`` consecutive rows of one class.

    The classes come equally often or, if ``natural``, as often as in the data. Within a class every row comes once
    before any comes again; with weights, rows are drawn in proportion.

    Examples
    --------
    >>> targets = torch.tensor([0] * 9 + [1])
    >>> order = GroupSampler(targets, n_mixed=2, batch_size=8).order(torch.Generator().manual_seed(0))
    >>> groups = targets[order].reshape(-1, 2)
    >>> bool((groups[:, 0] == groups[:, 1]).all()), groups[:, 0].bincount().tolist()
    (True, [4, 4])
    """

    def __init__(
        self,
        targets: Tensor,
        n_mixed: int,
        batch_size: int,
        weight: Tensor | None = None,
        *,
        natural: bool = False,
    ) -> None:
        self.n_mixed, self.batch_size = n_mixed, batch_size
        if batch_size % n_mixed:
            raise ValueError(f"batch_size must be a multiple of n_mixed = {n_mixed}, got {batch_size}")
        targets = targets.cpu()
        present = targets.bincount().nonzero().flatten().tolist()
        self._rows = [torch.nonzero(targets == code).flatten() for code in present]
        self._chances = None if weight is None else [weight.cpu()[rows] for rows in self._rows]
        self.batches = -(-len(targets) // batch_size)
        self.shares = (targets.bincount() > 0).double().div(len(present)).numpy()
        self._frequency = None
        if natural:
            mass = torch.ones(len(targets)) if weight is None else weight.cpu()
            self._frequency = torch.stack([mass[rows].sum() for rows in self._rows]).double()
            self._frequency /= self._frequency.sum()
            self.shares[present] = self._frequency.numpy()

    def order(self, generator: torch.Generator) -> Tensor:
        return self.draw(self.batches, generator)

    def draw(self, batches: int, generator: torch.Generator) -> Tensor:
        """Rows of so many batches."""
        n_groups, n_classes = batches * self.batch_size // self.n_mixed, len(self._rows)
        if self._frequency is None:
            turns = [torch.randperm(n_classes, generator=generator) for _ in range(-(-n_groups // n_classes))]
            classes = torch.cat(turns)[:n_groups]
        else:
            classes = torch.multinomial(self._frequency, n_groups, replacement=True, generator=generator)
        order = torch.empty(n_groups, self.n_mixed, dtype=torch.long)
        for code in range(n_classes):
            mine = classes == code
            order[mine] = self._of_class(code, int(mine.sum()) * self.n_mixed, generator).reshape(
                -1, self.n_mixed
            )
        return order.flatten()

    def _of_class(self, code: int, count: int, generator: torch.Generator) -> Tensor:
        rows = self._rows[code]
        if self._chances is not None and count:
            return rows[torch.multinomial(self._chances[code], count, replacement=True, generator=generator)]
        rounds = -(-count // len(rows))
        turns = [torch.randperm(len(rows), generator=generator) for _ in range(rounds)]
        return rows[torch.cat(turns)[:count]] if turns else rows[:0]
