"""Cells for the tests of the bench room, in a module that worker processes can import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np


def empty(index: int) -> dict[str, Any]:
    return {}


def draw(index: int, seed: int = 0) -> dict[str, Any]:
    """A little real arithmetic whose bits depend on the settings alone."""
    sample = np.random.default_rng([seed, index]).normal(size=100)
    return {"mean": sample.mean(), "curve": np.sort(sample)[:5]}


def slow_draw(index: int, seed: int, folder: str, pause: float = 0.05) -> dict[str, Any]:
    """Like draw, and leaves a file for each time it ran."""
    (Path(folder) / f"{index}-{seed}-{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(pause)
    return draw(index, seed)


def odd_fails(index: int) -> dict[str, Any]:
    if index % 2:
        raise RuntimeError(f"cell {index} is odd")
    return {"value": index}


def third_dies(index: int) -> dict[str, Any]:
    if index == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"value": index}
