"""Treatments of imbalance: one catalog for the advisor and the studies, one file a family, found by themselves.

A module of this folder joins by defining ``TREATMENTS``, a list of :class:`Treatment`, and maybe ``LEARNERS``.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise._core.checks import check_choice, check_members
from equipoise.advisor.treatments._contract import (
    Context,
    Learner,
    Range,
    Treatment,
    balanced_prior,
    data_prior,
)

__all__ = [
    "Context",
    "Learner",
    "Range",
    "Treatment",
    "advised_treatments",
    "all_learners",
    "all_treatments",
    "balanced_prior",
    "data_prior",
    "get_learner",
    "get_treatment",
    "treatment_names",
]


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

    >>> "lightgbm" in all_treatments()
    True
    """
    return _collect("TREATMENTS")


@functools.lru_cache(maxsize=1)
def all_learners() -> Mapping[str, Learner]:
    """Every base learner of the studies by its name."""
    return _collect("LEARNERS")


def get_treatment(name: str) -> Treatment:
    """The treatment of that name."""
    return all_treatments()[check_choice("method", name, sorted(all_treatments()))]


def get_learner(name: str) -> Learner:
    """The base learner of that name."""
    return all_learners()[check_choice("learner", name, sorted(all_learners()))]


def advised_treatments(wanted: Sequence[Any] | None = None) -> list[Treatment]:
    """The treatments that the advisor tries, the strongest for its time first.

    Parameters
    ----------
    wanted : sequence, optional
        Names, treatments, or scikit-learn classifiers with ``predict_proba``; by default every one with an order.

    Returns
    -------
    list of Treatment

    Examples
    --------
    >>> [t.name for t in advised_treatments()][:2]
    ['lightgbm', 'lightgbm-random']
    """
    known = {name: t for name, t in all_treatments().items() if t.order is not None}
    if wanted is None:
        return sorted(known.values(), key=lambda t: t.order or 0)
    chosen = list(wanted)
    if not chosen:
        raise ValueError("treatments must not be empty")
    check_members("treatments", [name for name in chosen if isinstance(name, str)], list(known))
    made = [known[item] if isinstance(item, str) else _as_treatment(item) for item in chosen]
    return sorted(made, key=lambda t: t.order or 0)


def treatment_names() -> list[str]:
    """The names of the treatments that the advisor tries, in its order.

    Returns
    -------
    list of str
        The names, as ``Advisor(treatments=…)`` takes them.

    Examples
    --------
    >>> treatment_names()[0]
    'lightgbm'
    """
    return [t.name for t in advised_treatments()]


def _as_treatment(item: Any) -> Treatment:
    """A scikit-learn classifier as a treatment; it sees filled and scaled columns."""
    if isinstance(item, Treatment):
        return item
    if not hasattr(item, "predict_proba") or not hasattr(item, "get_params"):
        raise TypeError(f"a treatment must be a name or a classifier with predict_proba, got {item!r}")

    def build(context: Context) -> Any:
        from sklearn.base import clone

        own = clone(item)
        return own.set_params(random_state=context.seed) if "random_state" in own.get_params() else own

    name = type(item).__name__
    return Treatment(name, name, build, takes_learner=False, order=0, simplicity=15)
