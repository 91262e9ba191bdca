"""Images on a coarser grid: neighboring pixels become channels, so that a small network sees them sooner whole."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt


def fold(images: npt.NDArray[Any], by: int) -> npt.NDArray[Any]:
    """Squares of ``by``² neighboring pixels become channels: the same numbers on a coarser grid.

    >>> import numpy as np
    >>> fold(np.arange(16).reshape(1, 1, 4, 4), 2)[0, :, 0, 0]
    array([0, 1, 4, 5])
    """
    n, channels, height, width = images.shape
    cut = images.reshape(n, channels, height // by, by, width // by, by)
    return cut.transpose(0, 1, 3, 5, 2, 4).reshape(n, -1, height // by, width // by)


def unfold(images: npt.NDArray[Any], by: int) -> npt.NDArray[Any]:
    """The way back from :func:`fold`.

    >>> import numpy as np
    >>> x = np.arange(144).reshape(2, 2, 6, 6)
    >>> bool((unfold(fold(x, 3), 3) == x).all())
    True
    """
    n, _, height, width = images.shape
    cut = images.reshape(n, -1, by, by, height, width).transpose(0, 1, 4, 2, 5, 3)
    return cut.reshape(n, -1, height * by, width * by)
