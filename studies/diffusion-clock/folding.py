"""Images on a coarser grid: neighboring pixels become channels, so that a small network sees them sooner whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def fold(images: npt.NDArray[Any], by: int) -> npt.NDArray[Any]:
    """Squares of ``by``² neighboring pixels become channels: the same numbers on a coarser grid.

    >>> fold(np.arange(16).reshape(1, 4, 4), 2)[0, :, 0, 0]
    array([0, 1, 4, 5])
    """
    n, height, width = images.shape
    cut = images.reshape(n, height // by, by, width // by, by)
    return cut.transpose(0, 2, 4, 1, 3).reshape(n, by * by, height // by, width // by)


def unfold(images: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The way back from :func:`fold`.

    >>> x = np.arange(72).reshape(2, 6, 6)
    >>> bool((unfold(fold(x, 3)) == x).all())
    True
    """
    n, channels, height, width = images.shape
    by = int(np.sqrt(channels))
    cut = images.reshape(n, by, by, height, width).transpose(0, 3, 1, 4, 2)
    return cut.reshape(n, height * by, width * by)
