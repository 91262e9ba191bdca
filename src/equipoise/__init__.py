"""Equipoise: learning from imbalanced data.

Names resolve lazily: importing this package loads neither torch nor a plotting library.
"""

from __future__ import annotations

from typing import Any

from equipoise._core.extras import lazy_names

_find, _, _names = lazy_names(__name__, __file__)
__all__ = ["__version__", *_names]


def __getattr__(name: str) -> Any:
    if name != "__version__":
        return _find(name)
    from importlib.metadata import PackageNotFoundError, version  # takes longer to load than this package

    try:
        return version("equipoise")
    except PackageNotFoundError:  # a source tree that was never installed
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted(__all__)
