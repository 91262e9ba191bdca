"""Diffusion models that know when each class is memorised. Names resolve lazily: importing this loads no torch."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.generative.assignment import Assigner
    from equipoise.generative.ddpm import DDPM
    from equipoise.generative.memorization import crossing_time, memorized_fraction, nearest_two
    from equipoise.generative.monitor import MemorizationMonitor, Window
    from equipoise.generative.sampling import sample
    from equipoise.generative.schedule import NoiseSchedule

_HOMES = {
    "Assigner": "assignment",
    "DDPM": "ddpm",
    "MemorizationMonitor": "monitor",
    "NoiseSchedule": "schedule",
    "Window": "monitor",
    "crossing_time": "memorization",
    "memorized_fraction": "memorization",
    "nearest_two": "memorization",
    "sample": "sampling",
}

__all__ = [
    "DDPM",
    "Assigner",
    "MemorizationMonitor",
    "NoiseSchedule",
    "Window",
    "crossing_time",
    "memorized_fraction",
    "nearest_two",
    "sample",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
