"""Frozen features of small pictures: where edges point, how bright and colored each part is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from equipoise._core.checks import FloatArray, IntArray
from equipoise.datasets.encoding import ScaledNumbers

_ORIENTATIONS = 8
_GRIDS = (4, 2, 1)  # cells a side
PIXELS = 8  # a side of the coarse picture
_PICTURES_AT_ONCE = 1024


def pixel_rows(images: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], tuple[int, int, int]]:
    """Pictures as rows of pixels, the channels last, and their height, width and channels.

    Parameters
    ----------
    images : array
        Pictures × height × width, with one or three channels before or after these two, or without channels.

    Returns
    -------
    array, tuple of int
        The rows, and the shape of a picture.

    Raises
    ------
    ValueError
        If the channels cannot be told.

    Examples
    --------
    >>> pixel_rows(np.zeros((5, 3, 28, 20)))[1]
    (28, 20, 3)
    """
    shape = images.shape
    if images.ndim == 3:
        images = images[..., None]
    elif images.ndim != 4 or not {shape[1], shape[3]} & {1, 3}:
        raise ValueError(
            f"pictures must be an array of pictures × height × width × channels with 1 or 3 channels, got {shape}"
        )
    elif shape[3] not in (1, 3):
        images = np.moveaxis(images, 1, -1)
    height, width, channels = images.shape[1:]
    return images.reshape(len(images), -1), (int(height), int(width), int(channels))


class ImageEncoder(TransformerMixin, BaseEstimator):
    """Turn rows of pixels into features on which trees, linear models and small networks do well.

    The features are histograms of oriented gradients at the full and the half size (Dalal & Triggs 2005), pooled
    over a pyramid of cells; the mean and the deviation of each channel in each cell; and the picture itself at
    8 × 8. Nothing is learned but the scale of each feature.

    Parameters
    ----------
    shape : tuple of int
        Height, width and channels; a row has the pixels in this order.
    for_trees : bool
        Leave the features as they are; otherwise each gets mean 0 and deviation 1.

    Attributes
    ----------
    n_features_in_, n_features_out_ : int
    categorical_features_ : array of int
        Always empty.

    References
    ----------
    Dalal & Triggs (2005), Histograms of oriented gradients for human detection, CVPR.

    Examples
    --------
    >>> pictures = np.random.default_rng(0).random((5, 28 * 28))
    >>> ImageEncoder((28, 28, 1)).fit_transform(pictures).shape
    (5, 434)
    """

    def __init__(self, shape: tuple[int, int, int], for_trees: bool = True) -> None:
        self.shape = shape
        self.for_trees = for_trees

    def fit(self, X: Any, y: npt.ArrayLike | None = None) -> ImageEncoder:
        """Learn the scale of each feature."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: npt.ArrayLike | None = None, **params: Any) -> FloatArray:
        """Learn the scale of each feature, and return the features."""
        found = self._features(X)
        self.n_features_in_, self.n_features_out_ = int(np.prod(self.shape)), found.shape[1]
        self.categorical_features_: IntArray = np.arange(0)
        self.scale_ = None if self.for_trees else ScaledNumbers().fit(found)
        return found if self.scale_ is None else self.scale_.transform(found)

    def transform(self, X: Any) -> FloatArray:
        """The features of each row."""
        check_is_fitted(self, "n_features_out_")
        found = self._features(X)
        return found if self.scale_ is None else self.scale_.transform(found)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names such as ``feature 17``."""
        check_is_fitted(self, "n_features_out_")
        return np.array([f"feature {i}" for i in range(self.n_features_out_)], dtype=object)

    def _features(self, X: Any) -> FloatArray:
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != np.prod(self.shape):
            raise ValueError(
                f"X must have {int(np.prod(self.shape)):,} columns, one a pixel of {tuple(self.shape)}, "
                f"got the shape {rows.shape}"
            )
        blocks = [
            _describe(
                np.nan_to_num(rows[i : i + _PICTURES_AT_ONCE].astype(np.float64)).reshape(-1, *self.shape)
            )
            for i in range(0, max(len(rows), 1), _PICTURES_AT_ONCE)
        ]
        return np.concatenate(blocks)


def _describe(pictures: FloatArray) -> FloatArray:
    gray = pictures.mean(axis=3)
    parts = _edges(gray)
    if min(gray.shape[1:]) >= 4 * _GRIDS[0]:
        parts += _edges(_shrunk(gray, gray.shape[1] // 2, gray.shape[2] // 2))
    for channel in np.moveaxis(pictures, 3, 0):
        mean, square = _pooled(channel, _GRIDS[0]), _pooled(channel**2, _GRIDS[0])
        parts += [mean, np.sqrt(np.maximum(square - mean**2, 0))]
    parts.append(_shrunk(gray, min(PIXELS, gray.shape[1]), min(PIXELS, gray.shape[2])).reshape(len(gray), -1))
    return np.concatenate(parts, axis=1)


def _edges(gray: FloatArray) -> list[FloatArray]:
    """Histograms of unsigned edge directions in every cell of every grid, each of length one, with its strength."""
    padded = np.pad(gray, ((0, 0), (1, 1), (1, 1)), mode="edge")
    down, right = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1], padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    strength = np.hypot(down, right)
    place = np.mod(np.arctan2(down, right), np.pi) * (_ORIENTATIONS / np.pi)
    lower = np.floor(place)
    share = place - lower
    maps = np.stack(
        [
            strength
            * np.where(
                lower % _ORIENTATIONS == o, 1 - share, np.where((lower + 1) % _ORIENTATIONS == o, share, 0)
            )
            for o in range(_ORIENTATIONS)
        ]
    )
    found = []
    for cells in _GRIDS:
        if cells > min(gray.shape[1:]):
            continue
        histogram = np.stack([_pooled(m, cells) for m in maps])  # orientation, picture, cell
        length = np.sqrt((histogram**2).sum(axis=0))
        usual = np.sqrt((length**2).mean(axis=1, keepdims=True)) + 1e-9
        found.append(np.moveaxis(histogram / (length + 0.1 * usual), 0, 2).reshape(len(gray), -1))
    found.append(strength.mean(axis=(1, 2))[:, None])
    return found


def _pooled(maps: FloatArray, cells: int) -> FloatArray:
    return _shrunk(maps, min(cells, maps.shape[1]), min(cells, maps.shape[2])).reshape(len(maps), -1)


def _shrunk(maps: FloatArray, height: int, width: int) -> FloatArray:
    """The mean over a grid of nearly equal cells."""
    for axis, size in ((1, height), (2, width)):
        edges = np.linspace(0, maps.shape[axis], size + 1).round().astype(int)
        shape = [1, 1, 1]
        shape[axis] = size
        maps = np.add.reduceat(maps, edges[:-1], axis=axis) / np.diff(edges).reshape(shape)
    return maps
