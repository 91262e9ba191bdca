"""Treatments of imbalance: one file each, found by themselves.

A file in this folder joins every comparison by defining ``TREATMENT`` (or ``TREATMENTS``, a list) of
:class:`Treatment`. A treatment says how to build its pipeline, which four settings to tune it over,
which class prior it trains to, and whether it fits the task at hand.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable

from equipoise._core.checks import check_members
from equipoise.advisor._old_treatments._contract import Task, Treatment, balanced_prior, data_prior

__all__ = ["Task", "Treatment", "all_treatments", "balanced_prior", "data_prior", "select_treatments"]


def all_treatments() -> dict[str, Treatment]:
    """Every treatment by name, in the order of ``Treatment.order``.

    >>> "class_weight" in all_treatments()
    True
    """
    found: list[Treatment] = []
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            loaded = importlib.import_module(f"{__name__}.{module.name}")
            found += getattr(loaded, "TREATMENTS", None) or [loaded.TREATMENT]
    return {t.name: t for t in sorted(found, key=lambda t: (t.order, t.name))}


def select_treatments(wanted: Iterable[str | Treatment] | None) -> list[Treatment]:
    """Treatments by name or as objects; all of them for ``None``."""
    known = all_treatments()
    if wanted is None:
        return list(known.values())
    chosen = list(wanted)
    check_members("treatments", [name for name in chosen if isinstance(name, str)], list(known))
    return [known[item] if isinstance(item, str) else item for item in chosen]
