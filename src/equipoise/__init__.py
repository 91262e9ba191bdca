"""Equipoise: learning from imbalanced data.

Names resolve lazily: importing this package loads neither torch nor a plotting library.
"""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import Any

try:
    __version__ = version("equipoise")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

_ROOMS = (
    "advisor",
    "classifiers",
    "cli",
    "datasets",
    "diagnosis",
    "generative",
    "losses",
    "metrics",
    "networks",
    "oversampling",
    "report",
    "studies",
    "theory",
    "training",
)
_FUNCTIONS: dict[str, str] = {
    "Advisor": "equipoise.advisor",
    "compare": "equipoise.advisor",
    "diagnose": "equipoise.diagnosis",
    "load": "equipoise.advisor",
}

__all__ = ["__version__", *_ROOMS, *_FUNCTIONS]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"equipoise.{name}")
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(_FUNCTIONS[name]), name)
    raise AttributeError(f"module 'equipoise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
