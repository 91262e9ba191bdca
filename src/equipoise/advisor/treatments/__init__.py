"""The catalog of treatments of imbalance: a module here exposes ``TREATMENTS`` and is found by itself."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

from equipoise._core.checks import check_choice
from equipoise.advisor.treatments._contract import Context, Learner, Range, Treatment

__all__ = [
    "Context", "Learner", "Range", "Treatment", "all_learners", "all_treatments", "get_learner", "get_treatment",
]  # fmt: skip


def _collect(attribute: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        if module.name.startswith("_"):
            continue
        for item in getattr(importlib.import_module(f"{__name__}.{module.name}"), attribute, ()):
            if item.name in found:
                raise ValueError(f"two modules of {__name__} name {item.name!r}")
            found[item.name] = item
    return found


@functools.lru_cache(maxsize=1)
def all_treatments() -> Mapping[str, Treatment]:
    """Every treatment by its name.

    >>> "smote" in all_treatments() and "balanced-forest" in all_treatments()
    True
    """
    return _collect("TREATMENTS")


@functools.lru_cache(maxsize=1)
def all_learners() -> Mapping[str, Learner]:
    """Every base learner by its name.

    >>> sorted(all_learners())
    ['boosting', 'forest', 'logistic']
    """
    return _collect("LEARNERS")


def get_treatment(name: str) -> Treatment:
    return all_treatments()[check_choice("method", name, sorted(all_treatments()))]


def get_learner(name: str) -> Learner:
    return all_learners()[check_choice("learner", name, sorted(all_learners()))]
