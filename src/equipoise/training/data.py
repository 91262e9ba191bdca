"""Data in memory and the batches cut from it by index: no workers, no copies but the batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from equipoise._core.checks import check_same_length


@dataclass(slots=True)
class Batch:
    """What a step sees.

    Attributes
    ----------
    inputs : Tensor
        The samples.
    targets : Tensor or None
        Class codes 0 … C − 1; None where a method has no targets.
    weight : Tensor or None
        A weight per sample: the sample's own times its class's.
    index : Tensor
        Row numbers in the training data, for methods that remember samples.
    seeded : torch.Generator or callable
        What ``generator`` is, or makes it when it is first asked for.
    share : float
        This process's weight × processes / weight of the whole batch: by it a mean over the rows here
        becomes a term of the mean over the whole batch. 1 in a single process.
    """

    inputs: Tensor
    targets: Tensor | None
    weight: Tensor | None
    index: Tensor
    seeded: torch.Generator | Callable[[], torch.Generator]
    share: float = 1.0

    @property
    def generator(self) -> torch.Generator:
        """Seeded by the run's seed, the epoch and the batch, and equal in all processes.

        A draw that must be common, such as a hyper-parameter of this batch, comes from here.
        """
        if not isinstance(self.seeded, torch.Generator):
            self.seeded = self.seeded()
        return self.seeded

    def __len__(self) -> int:
        return len(self.index)

    def labels(self) -> Tensor:
        """The targets, for a step that cannot do without.

        Returns
        -------
        Tensor of shape (n,)
            The targets.

        Raises
        ------
        ValueError
            If there are none.
        """
        if self.targets is None:
            raise ValueError("this step needs targets, but the data have none")
        return self.targets


@dataclass
class TensorData:
    """Tensors of equal length that lie in memory.

    Attributes
    ----------
    inputs : Tensor of shape (n, …)
        The inputs.
    targets : Tensor of shape (n,), optional
        The class of each input.
    weight : Tensor of shape (n,), optional
        The weight of each input.

    Examples
    --------
    >>> data = TensorData(torch.zeros(6, 2), torch.arange(6))
    >>> len(data), data.n_classes
    (6, 6)
    """

    inputs: Tensor
    targets: Tensor | None = None
    weight: Tensor | None = None

    def __post_init__(self) -> None:
        check_same_length(inputs=self.inputs, targets=self.targets, weight=self.weight)
        if not len(self.inputs):
            raise ValueError("inputs must not be empty")

    def __len__(self) -> int:
        return len(self.inputs)

    def labels(self) -> Tensor:
        """The targets, for a method that cannot do without.

        Returns
        -------
        Tensor of shape (n,)
            The targets.

        Raises
        ------
        ValueError
            If there are none.
        """
        if self.targets is None:
            raise ValueError("this method needs targets, but the data have none")
        return self.targets

    @property
    def n_classes(self) -> int:
        """The largest class code plus one; 0 without targets."""
        return 0 if self.targets is None else int(self.targets.max()) + 1

    def to(self, device: torch.device) -> TensorData:
        """The same data on a device.

        Parameters
        ----------
        device : torch.device
            The device.

        Returns
        -------
        TensorData
            The data there.
        """

        def moved(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device)

        return replace(
            self, inputs=self.inputs.to(device), targets=moved(self.targets), weight=moved(self.weight)
        )
