"""Public names that need an optional package: found lazily, or refused by a sentence that says what to install."""

from __future__ import annotations

import importlib
from typing import Any

_EXTRAS = {
    **dict.fromkeys(("torch", "lightning_fabric", "safetensors"), "torch"),
    **dict.fromkeys(("matplotlib", "plotly", "jinja2", "pyarrow", "skops", "PIL"), "report"),
    **dict.fromkeys(("optuna", "dask", "distributed", "baycomp", "scikit_posthocs", "psutil"), "bench"),
}


def import_name(module: str, name: str) -> Any:
    """``name`` of ``module``; where a package is missing, the error names it and the extra that brings it.

    >>> import_name("equipoise._core.checks", "check_choice").__name__
    'check_choice'
    """
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        message = f"{name} needs {package}: pip install 'equipoise[{_EXTRAS[package]}]'"
        raise ModuleNotFoundError(message, name=error.name) from None
