"""The methods that a ``SPEC.toml`` can name: a module here exposes ``METHODS`` and is found by itself.

A method is a choice to be tuned over ranges on any base learner, for studies. What a report compares are
:mod:`equipoise.bench.treatments`: whole pipelines for tables as users have them, with a reason and a prior.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from equipoise._core.checks import check_choice


@dataclass(frozen=True)
class Range:
    """Where a parameter is searched. Whole ends make whole values."""

    low: float
    high: float
    log: bool = False

    def distribution(self) -> Any:
        from optuna.distributions import FloatDistribution, IntDistribution

        if isinstance(self.low, int) and isinstance(self.high, int):
            return IntDistribution(self.low, self.high, log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Learner:
    """A base classifier: ``build(seed, class_weight, **parameters)``, its defaults and where to search."""

    name: str
    build: Callable[..., Any]
    defaults: Mapping[str, Any]
    space: Mapping[str, Range]


@dataclass(frozen=True)
class Context:
    """What a method may know when it builds its estimator."""

    seed: int
    smallest: int
    """How many samples of the rarest class it can count on in training."""
    folds: int
    """How many folds it may use to tune on its training data."""
    base: Callable[..., Any]
    """``base(class_weight=None)`` makes the base classifier of the cell."""


@dataclass(frozen=True)
class Method:
    """A treatment of imbalance: ``build(context, **parameters)`` returns a scikit-learn classifier.

    ``takes_learner`` says that it wraps the study's base learners; otherwise it brings its own.
    """

    name: str
    summary: str
    build: Callable[..., Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    space: Mapping[str, Range] = field(default_factory=dict)
    takes_learner: bool = True
    multiclass: bool = True


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
def all_methods() -> Mapping[str, Method]:
    """Every method by its name.

    >>> "smote" in all_methods() and "balanced-forest" in all_methods()
    True
    """
    return _collect("METHODS")


@functools.lru_cache(maxsize=1)
def all_learners() -> Mapping[str, Learner]:
    """Every base learner by its name.

    >>> sorted(all_learners())
    ['boosting', 'forest', 'logistic']
    """
    return _collect("LEARNERS")


def get_method(name: str) -> Method:
    return all_methods()[check_choice("method", name, sorted(all_methods()))]


def get_learner(name: str) -> Learner:
    return all_learners()[check_choice("learner", name, sorted(all_learners()))]
