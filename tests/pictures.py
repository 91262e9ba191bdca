"""Pictures for tests."""

from __future__ import annotations

import numpy as np


def stripes(n: int, seed: int, size: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Stripes at a random place: upright for class 1, level for class 0. No pixel tells the class."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 8 == 0).astype(int)
    wave = np.sin(2 * np.pi * (np.arange(size)[None] + rng.uniform(0, 6, (n, 1))) / 6)
    pictures = np.where(y[:, None, None] == 1, wave[:, None, :], wave[:, :, None])
    return (pictures + rng.normal(0, 0.3, (n, size, size))).reshape(n, -1), y
