"""What every loader returns: samples, labels and what is known about them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import check_same_length


@dataclass(frozen=True)
class Dataset:
    """Samples ``X``, labels ``y`` and their names.

    Labels of the loaders are codes 0 … C−1 whose names are ``target_names``. Image sets have ``X`` of shape
    (n, channels, height, width), or flat rows with ``image_shape`` set: `images` and `table` give either
    view of the same pixels.

    Attributes
    ----------
    X : array
        The samples, one a row.
    y : array
        One label per sample.
    name : str
        What to call the set.
    target_names : tuple of str
        The names that the labels' codes stand for.
    feature_names : tuple of str
        The names of the columns.
    image_shape : tuple of int, optional
        Channels, height and width of flat rows that are images.
    details : mapping
        Whatever else is known about the set.

    Examples
    --------
    >>> data = Dataset(np.zeros((3, 4)), np.array([0, 0, 1]), name="tiny", image_shape=(1, 2, 2))
    >>> data.class_counts, data.images.shape, data.table.shape
    ({0: 2, 1: 1}, (3, 1, 2, 2), (3, 4))
    """

    X: npt.NDArray[Any]
    y: npt.NDArray[Any]
    name: str = ""
    target_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    image_shape: tuple[int, int, int] | None = None
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_same_length(X=self.X, y=self.y)

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        counts = " ".join(map(str, self.class_counts.values()))
        return f"Dataset({self.name!r}, X {self.X.shape} {self.X.dtype}, class counts {counts})"

    @property
    def class_counts(self) -> dict[Any, int]:
        """How many samples each label has, in the order of the labels."""
        labels, counts = np.unique(self.y, return_counts=True)
        return {label.item(): int(count) for label, count in zip(labels, counts, strict=True)}

    @property
    def table(self) -> npt.NDArray[Any]:
        """One flat row per sample."""
        return self.X.reshape(len(self.X), -1)

    @property
    def images(self) -> npt.NDArray[Any]:
        """The samples as (n, channels, height, width)."""
        if self.image_shape is None:
            raise ValueError(f"the samples of {self.name!r} are not images: X has shape {self.X.shape}")
        if math.prod(self.X.shape[1:]) != math.prod(self.image_shape):
            raise ValueError(f"image_shape must fit X of shape {self.X.shape}, got {self.image_shape}")
        return self.X.reshape(len(self.X), *self.image_shape)

    def take(self, indices: npt.NDArray[np.int64] | Sequence[int]) -> Dataset:
        """The rows named by ``indices``, in their order.

        Parameters
        ----------
        indices : array of int
            Row numbers.

        Returns
        -------
        Dataset
            The set with only those rows.
        """
        rows = np.asarray(indices)
        return replace(self, X=self.X[rows], y=self.y[rows])

    def scaled(self) -> Dataset:
        """Pixels 0 … 255 as float32 in [0, 1]; data that are floats already stay as they are.

        Returns
        -------
        Dataset
            The set with scaled pixels.
        """
        if self.X.dtype != np.uint8:
            return self
        return replace(self, X=self.X / np.float32(255))

    def imbalanced(self, **how: Any) -> Dataset:
        """A subsample with other class counts; the arguments are those of `make_imbalanced`.

        Parameters
        ----------
        **how : Any
            Arguments of :func:`make_imbalanced`.

        Returns
        -------
        Dataset
            The subsample.
        """
        from equipoise.datasets.imbalance import imbalanced_indices

        return self.take(imbalanced_indices(self.y, **how))
