"""Equipoise: learning from imbalanced data.

Names resolve lazily: importing this package loads neither torch nor a plotting library.
"""

from __future__ import annotations

import importlib
from typing import Any

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


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("equipoise")
    except PackageNotFoundError:  # a source tree that was never installed
        return "0+unknown"


def __getattr__(name: str) -> Any:
    if (
        name == "__version__"
    ):  # looked up on demand: importlib.metadata takes longer to load than this package
        return _version()
    if name in _ROOMS:
        return importlib.import_module(f"equipoise.{name}")
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(_FUNCTIONS[name]), name)
    raise AttributeError(f"module 'equipoise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
