"""What a treatment of imbalance is: a builder of classifiers, its settings, and where they are searched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


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
    """What a treatment may know when it builds its estimator."""

    seed: int
    smallest: int
    """How many samples of the rarest class it can count on in training."""
    folds: int
    """How many folds it may use to tune on its training data."""
    base: Callable[..., Any]
    """``base(class_weight=None)`` makes the base classifier of the cell."""


@dataclass(frozen=True)
class Treatment:
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
