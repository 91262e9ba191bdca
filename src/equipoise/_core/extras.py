"""Public names that load on first use; where an optional package is missing, a sentence says what to install."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import lazy_loader

_EXTRAS = {
    **dict.fromkeys(("torch", "lightning_fabric", "safetensors"), "torch"),
    **dict.fromkeys(("matplotlib", "plotly", "jinja2", "pyarrow", "skops", "PIL"), "report"),
    **dict.fromkeys(("optuna", "dask", "distributed", "baycomp", "scikit_posthocs", "psutil"), "bench"),
}


def optional(module: str, need: str) -> Any:
    """A module of an optional package, or the sentence that says what ``need``s it and how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        extra = _EXTRAS[module.partition(".")[0]]
        raise ImportError(f"{need}: pip install 'equipoise[{extra}]'") from error


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package whose names stand in its ``__init__.pyi``.

    Parameters
    ----------
    package, file : str
        The package's ``__name__`` and ``__file__``.

    Returns
    -------
    tuple
        What the package assigns to those three names.
    """
    find, listing, names = lazy_loader.attach_stub(package, file)

    def __getattr__(name: str) -> Any:
        try:
            return find(name)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing not in _EXTRAS:
                raise
            message = f"{name} needs {missing}: pip install 'equipoise[{_EXTRAS[missing]}]'"
            raise ModuleNotFoundError(message, name=error.name) from None

    return __getattr__, listing, names
