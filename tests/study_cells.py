"""Cells for the tests of the bench room, in a module that worker processes can import."""

from __future__ import annotations

import os
import signal
import time
import warnings
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
    """Like draw, and leaves a file for each time it ran; while it is held, only so many cells come to their end."""
    mark = Path(folder) / f"{index}-{seed}-{os.getpid()}-{time.monotonic_ns()}"
    mark.touch()
    time.sleep(pause)
    while not _may_end(mark, Path(f"{folder}.hold")):
        time.sleep(0.02)
    return draw(index, seed)


def _may_end(mark: Path, hold: Path) -> bool:
    try:
        most = int(hold.read_text())
    except FileNotFoundError:
        return True
    began = sorted(mark.parent.iterdir(), key=lambda path: int(path.name.split("-")[3]))
    return mark in began[:most]


def odd_fails(index: int) -> dict[str, Any]:
    if index % 2:
        raise RuntimeError(f"cell {index} is odd")
    return {"value": index}


def third_dies(index: int) -> dict[str, Any]:
    if index == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"value": index}


def judged(method: str, dataset: str, seed: int) -> dict[str, Any]:
    """Scores of three made-up methods; one fails on one data set, another warns."""
    if (method, dataset, seed) in {("b", "y", 0), ("b", "y", 1), ("b", "y", 2)}:
        raise RuntimeError("cell b on y fails")
    if method == "a":
        warnings.warn("cell a warns", stacklevel=1)
    rng = np.random.default_rng([ord(method), len(dataset), seed])
    value = {"a": 0.9, "b": 0.8, "c": 0.6}[method] + 0.01 * rng.random()
    return {"auc": value, "curve": [value / 2, value], "fit_seconds": rng.random()}
