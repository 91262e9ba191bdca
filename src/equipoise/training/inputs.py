"""From what a user passes, a table or images, to standardized tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from equipoise._core.checks import FloatArray
from equipoise.datasets.image_files import ImageFiles, evenly_spaced

_FEW = (1, 3, 4)  # what a channel axis looks like


_SAMPLED = 1024  # pictures on disk that tell mean and spread


def _blocks(values: Any) -> Iterator[slice]:
    """Rows at a time, of at most 32 MB in double precision, which never holds it all."""
    rows = max(1, min(4096, 2**22 // math.prod(values.shape[1:])))
    return (slice(start, start + rows) for start in range(0, len(values), rows))


def _mean_and_spread(values: npt.NDArray[Any], axes: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation in float64, in two passes by blocks."""
    blocks = [values[block] for block in _blocks(values)]
    rows = [len(block) for block in blocks]
    along = (1, -1) + (1,) * (values.ndim - 2)
    mean = np.average([block.mean(axis=axes, dtype=np.float64) for block in blocks], axis=0, weights=rows)
    squares = [((block - mean.reshape(along)) ** 2).mean(axis=axes) for block in blocks]
    return mean, np.sqrt(np.average(squares, axis=0, weights=rows))


def _as_shape(image_shape: Any) -> tuple[int, ...]:
    sizes = tuple(image_shape) if isinstance(image_shape, Sequence | np.ndarray) else ()
    if not sizes or not all(isinstance(size, (int, np.integer)) and size > 0 for size in sizes):
        raise ValueError(f"image_shape must be positive whole numbers such as (28, 28), got {image_shape!r}")
    return tuple(int(size) for size in sizes)


@dataclass(frozen=True)
class Preparation:
    """How inputs become tensors: their layout, and a mean and a scale for each column or channel.

    >>> prepare = Preparation.fit(np.array([[0.0, 5.0], [2.0, 5.0]]))
    >>> prepare(np.array([[2.0, 5.0]]))
    tensor([[1., 0.]])
    """

    sample_shape: tuple[int, ...]
    input_shape: tuple[int, ...]
    channels_last: bool
    mean: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]

    @classmethod
    def fit(cls, X: npt.NDArray[Any] | ImageFiles, image_shape: Sequence[int] | None = None) -> Preparation:
        """Learn it from the training inputs.

        A 2-D array is a table unless ``image_shape`` says what image a row holds; (n, height, width) are gray
        images; of (n, channels, height, width) and (n, height, width, channels) the shorter axis is the
        channels.
        """
        X = _sampled(X)
        sample_shape = tuple(X.shape[1:])
        shape = sample_shape if image_shape is None else _as_shape(image_shape)
        if math.prod(shape) != math.prod(sample_shape):
            raise ValueError(f"image_shape {shape} does not fit samples of shape {sample_shape}")
        if len(shape) not in (1, 2, 3):
            raise ValueError(f"X must be a table or images, got samples of shape {shape}")
        channels_last = len(shape) == 3 and shape[0] not in _FEW and shape[2] in _FEW
        if len(shape) == 2:
            shape = (1, *shape)
        if channels_last:
            shape = (shape[2], shape[0], shape[1])
        layout = cls(sample_shape, shape, channels_last, np.zeros(0), np.ones(0))
        arranged = layout._arrange(X)
        axes = (0, *range(2, arranged.ndim))
        with np.errstate(over="ignore", invalid="ignore"):
            mean, scale = _mean_and_spread(arranged, axes)
        if not (np.isfinite(mean).all() and np.isfinite(scale).all()):
            raise ValueError(
                f"X has values whose squares overflow (up to {np.abs(X).max():.2g}); scale its columns down"
            )
        # A column that is constant up to rounding carries nothing; dividing by its spread would blow it up.
        flat = scale <= 10 * np.finfo(np.float64).eps * np.maximum(np.abs(mean), 1e-300)
        return cls(sample_shape, shape, channels_last, mean, np.where(flat, 1.0, scale))

    def _arrange(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self.channels_last:
            channels, height, width = self.input_shape
            return np.moveaxis(X.reshape(len(X), height, width, channels), 3, 1)
        return X.reshape(len(X), *self.input_shape)

    def __call__(self, X: npt.NDArray[Any] | ImageFiles) -> Any:
        """Standardized float32, by way of float64: a large offset does not eat the digits.

        Pictures on disk stay there, as :class:`StreamedInputs`.
        """
        if isinstance(X, ImageFiles):
            return StreamedInputs(X, self)
        if tuple(X.shape[1:]) != self.sample_shape:
            raise ValueError(f"X must have samples of shape {self.sample_shape}, got {tuple(X.shape[1:])}")
        along = (-1,) + (1,) * (len(self.input_shape) - 1)
        mean, scale = self.mean.reshape(along), self.scale.reshape(along)
        out = np.empty((len(X), *self.input_shape), dtype=np.float32)
        arranged = self._arrange(X)
        for block in _blocks(arranged):
            out[block] = (arranged[block] - mean) / scale
        return torch.from_numpy(out)

    def invert(self, tensor: torch.Tensor) -> npt.NDArray[np.float64]:
        """Samples as they would have been passed, in double precision."""
        along = (-1,) + (1,) * (len(self.input_shape) - 1)
        values = tensor.detach().cpu().double().numpy()
        values = values * self.scale.reshape(along) + self.mean.reshape(along)
        if self.channels_last:
            values = np.moveaxis(values, 1, 3)
        return np.asarray(values.reshape(len(values), *self.sample_shape))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Preparation:
        return cls(
            tuple(state["sample_shape"]),
            tuple(state["input_shape"]),
            bool(state["channels_last"]),
            np.asarray(state["mean"], dtype=np.float64),
            np.asarray(state["scale"], dtype=np.float64),
        )


class StreamedInputs:
    """Prepared pictures that are read when rows are asked for: what training needs of a tensor of inputs."""

    def __init__(self, files: ImageFiles, preparation: Preparation, device: Any = "cpu") -> None:
        self.files, self.preparation, self.device = files, preparation, device

    def __len__(self) -> int:
        return len(self.files)

    @property
    def ndim(self) -> int:
        return 4

    def is_floating_point(self) -> bool:
        return True

    def __getitem__(self, rows: Any) -> Any:
        """Tensors for a tensor of row numbers; for a slice or an array the rows as they are, unread."""
        if not isinstance(rows, torch.Tensor):
            return StreamedInputs(self.files[rows], self.preparation, self.device)
        read: torch.Tensor = self.preparation(self.files.read(rows.cpu().numpy()))
        return read.to(self.device)

    def to(self, device: Any) -> StreamedInputs:
        return StreamedInputs(self.files, self.preparation, device)

    def split(self, size: int) -> Iterator[torch.Tensor]:
        """Blocks of tensors, one at a time and of 64 pictures at most."""
        for start in range(0, len(self), min(size, 64)):
            yield self[torch.arange(start, min(start + min(size, 64), len(self)))]


def _sampled(X: npt.NDArray[Any] | ImageFiles) -> npt.NDArray[Any]:
    """An array as it is; of pictures on disk some, evenly spaced."""
    return X.read(evenly_spaced(len(X), _SAMPLED)) if isinstance(X, ImageFiles) else X


def unit_preparation(
    X: npt.NDArray[Any] | ImageFiles, image_shape: Sequence[int] | None, *, signed: bool = False
) -> Preparation:
    """Tables standardized; images brought to [0, 1], or [−1, 1] if ``signed``, by their least and largest value.

    >>> prepare = unit_preparation(np.array([[0.0, 255.0, 51.0, 0.0]]), (2, 2))
    >>> prepare(np.array([[0.0, 255.0, 51.0, 0.0]])).flatten()
    tensor([0.0000, 1.0000, 0.2000, 0.0000])
    """
    X = _sampled(X)
    prepared = Preparation.fit(X, image_shape)
    if len(prepared.input_shape) == 1:
        return prepared
    low, width = float(X.min()), float(np.ptp(X)) or 1.0
    channels = prepared.input_shape[0]
    middle, half = (low + width / 2, width / 2) if signed else (low, width)
    return replace(prepared, mean=np.full(channels, middle), scale=np.full(channels, half))
