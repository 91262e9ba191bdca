"""Equipoise: learning from imbalanced data.

Names resolve lazily: importing this package loads neither torch nor a plotting library.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from equipoise._core.extras import lazy_names

try:
    __version__ = version("equipoise")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
__all__ += ["__version__"]
