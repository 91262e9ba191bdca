"""The meta set: a few training rows of every class, which say what the learned loss should be good for."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from equipoise._core.checks import IntArray, check_integer
from equipoise._core.random import as_generator


def take_meta_set(targets: npt.ArrayLike, per_class: int = 10, *, random_state: Any = None) -> IntArray:
    """Row numbers of a class-balanced meta set, drawn from training targets alone.

    A class gives at most half of its rows, so that it can still be trained on; the only row of a class is
    given too. Both are said in a warning.

    Parameters
    ----------
    targets : array of shape (n,)
        Class codes or labels of the training rows.
    per_class : int
        Rows of each class (Wu & Li §5.1 take ten).
    random_state : int, generator or None
        Which rows are taken.

    Returns
    -------
    ndarray of int
        Sorted row numbers.

    Examples
    --------
    >>> rows = take_meta_set([0] * 30 + [1] * 30, per_class=2, random_state=0)
    >>> (rows < 30).sum(), len(rows)
    (np.int64(2), 4)
    """
    check_integer("per_class", per_class, low=1)
    labels, codes = np.unique(np.asarray(targets), return_inverse=True)
    generator = as_generator(random_state)
    rows, short = [], {}
    for code, label in enumerate(labels.tolist()):
        of_class = np.flatnonzero(codes == code)
        size = min(per_class, max(len(of_class) // 2, 1))
        if size < per_class or size == len(of_class):
            short[label] = f"{label!r}: {size} of {len(of_class)}"
        rows.append(generator.choice(of_class, size, replace=False))
    if short:
        few = "; ".join(list(short.values())[:5]) + ("; …" if len(short) > 5 else "")
        warnings.warn(
            f"{len(short)} classes have too few samples for {per_class} meta samples and as many to train on; "
            f"they give fewer ({few})",
            UserWarning,
            stacklevel=2,
        )
    return np.asarray(np.sort(np.concatenate(rows)), dtype=np.int64)


@dataclass
class MetaSet:
    """The meta rows as tensors, and balanced batches of them.

    Parameters
    ----------
    inputs : Tensor of shape (n, …)
        The meta rows.
    targets : Tensor of shape (n,)
        Their classes.
    index : Tensor
        Row numbers in the training data, for losses that remember samples; −1 where a row is not trained on.
    n_classes : int
        The number of classes.
    """

    inputs: Tensor
    targets: Tensor
    index: Tensor
    n_classes: int

    def __post_init__(self) -> None:
        if not len(self.targets):
            raise ValueError("the meta set must not be empty")
        counts = torch.bincount(self.targets.cpu(), minlength=self.n_classes)
        if len(counts) > self.n_classes:
            raise ValueError(
                f"the meta set has class {len(counts) - 1}, but there are {self.n_classes} classes"
            )
        missing = (counts == 0).nonzero().flatten().tolist()
        if missing:
            warnings.warn(
                f"the meta set has no sample of classes {missing[:10]}: what is learned serves the other "
                f"{self.n_classes - len(missing)} only",
                UserWarning,
                stacklevel=3,
            )
        self._rows = [torch.nonzero(self.targets.cpu() == code).flatten() for code in range(self.n_classes)]

    def __len__(self) -> int:
        return len(self.targets)

    def draw(self, size: int, generator: torch.Generator) -> Tensor:
        """Rows of a batch, as many of each class as can be; all of them if they fit.

        Parameters
        ----------
        size : int
            The rows of the batch.
        generator : torch.Generator
            The source of randomness.

        Returns
        -------
        Tensor of int
            Numbers of meta rows.
        """
        if size >= len(self):
            return torch.arange(len(self))
        present = [rows for rows in self._rows if len(rows)]
        shuffled = [rows[torch.randperm(len(rows), generator=generator)] for rows in present]
        order = torch.randperm(len(present), generator=generator).tolist()
        deepest = max(len(rows) for rows in shuffled)
        turns = [shuffled[k][turn] for turn in range(deepest) for k in order if turn < len(shuffled[k])]
        return torch.stack(turns[:size])

    def to(self, device: torch.device) -> MetaSet:
        """Move the meta rows to a device, in place.

        Parameters
        ----------
        device : torch.device
            The device.

        Returns
        -------
        MetaSet
            The meta set itself.
        """
        self.inputs, self.targets = self.inputs.to(device), self.targets.to(device)
        self.index = self.index.to(device)
        return self


def balanced_weights(targets: Tensor) -> Tensor:
    """Sample weights that sum to one and count every class that is there equally.

    >>> balanced_weights(torch.tensor([0, 0, 1]))
    tensor([0.2500, 0.2500, 0.5000])
    """
    counts = torch.bincount(targets)
    weights = 1.0 / counts[targets]
    return weights / (counts > 0).sum()
