"""Diffusion models that know when each class is memorized. Names resolve lazily: importing this loads no torch."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.generative.assignment import Assigner
    from equipoise.generative.audit import CopyAudit, audit_copies
    from equipoise.generative.clock import Clock, read_clock
    from equipoise.generative.ddpm import DDPM
    from equipoise.generative.folder import RunFolder
    from equipoise.generative.gap_figures import (
        agreement,
        plot_gap_against,
        plot_gap_by_share,
        plot_prediction,
    )
    from equipoise.generative.memorization import crossing_time, memorized_fraction, nearest_two
    from equipoise.generative.monitor import MemorizationMonitor, Window
    from equipoise.generative.sampling import sample
    from equipoise.generative.schedule import NoiseSchedule
    from equipoise.generative.theory_advice import evening_shares

_HOMES = {
    "Assigner": "assignment",
    "Clock": "clock",
    "CopyAudit": "audit",
    "DDPM": "ddpm",
    "MemorizationMonitor": "monitor",
    "NoiseSchedule": "schedule",
    "RunFolder": "folder",
    "Window": "monitor",
    "agreement": "gap_figures",
    "audit_copies": "audit",
    "crossing_time": "memorization",
    "evening_shares": "theory_advice",
    "memorized_fraction": "memorization",
    "nearest_two": "memorization",
    "read_clock": "clock",
    "plot_gap_against": "gap_figures",
    "plot_gap_by_share": "gap_figures",
    "plot_prediction": "gap_figures",
    "sample": "sampling",
}

__all__ = [
    "DDPM",
    "Assigner",
    "Clock",
    "CopyAudit",
    "MemorizationMonitor",
    "NoiseSchedule",
    "RunFolder",
    "Window",
    "agreement",
    "audit_copies",
    "crossing_time",
    "evening_shares",
    "memorized_fraction",
    "nearest_two",
    "plot_gap_against",
    "plot_gap_by_share",
    "plot_prediction",
    "read_clock",
    "sample",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
