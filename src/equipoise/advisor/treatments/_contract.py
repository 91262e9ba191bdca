"""What a treatment is: a way to learn from imbalanced data, its settings and where to search for better ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from equipoise._core.checks import FloatArray, IntArray


@dataclass(frozen=True)
class Range:
    """Where a parameter is searched. Whole ends make whole values."""

    low: float
    high: float
    log: bool = False

    def distribution(self) -> Any:
        """The range as Optuna's distribution."""
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


def _no_base(class_weight: str | None = None) -> Any:
    raise ValueError("this treatment brings its own learner")


@dataclass(frozen=True)
class Context:
    """What a treatment may know when it builds its estimator.

    Attributes
    ----------
    seed : int
    smallest : int
        How many samples of the rarest class it can count on in training.
    folds : int
        How many folds it may use to tune on its training data.
    base : callable
        ``base(class_weight=None)`` makes the base classifier of a study's cell.
    n_rows, n_columns, n_classes : int
        The size of the table.
    threads : int
        How many threads one fit may use.
    categories : tuple of int
        Columns of the trees' view that hold codes of categories.
    image_shape : tuple of int, optional
        Height, width and channels where the columns are pixels.
    deadline : float
        A time of :func:`time.monotonic` at which a fit should end with what it has.
    memory : float
        Bytes of the smallest worker, where fits run on a cluster that keeps all rows of a large table later.
    """

    seed: int
    smallest: int = 2
    folds: int = 3
    base: Callable[..., Any] = _no_base
    n_rows: int = 0
    n_columns: int = 0
    n_classes: int = 2
    threads: int = 1
    categories: tuple[int, ...] = ()
    image_shape: tuple[int, int, int] | None = None
    deadline: float = math.inf
    memory: float = math.inf


def data_prior(counts: IntArray) -> FloatArray:
    """The prior of a learner that sees the data as they are."""
    return counts / counts.sum()


def balanced_prior(counts: IntArray) -> FloatArray:
    """The prior of a learner that sees all classes equally often."""
    present = counts > 0
    return present / present.sum()


def _always(context: Context) -> str:
    return ""


@dataclass(frozen=True)
class Treatment:
    """A way to learn from imbalanced data.

    Attributes
    ----------
    name : str
        What a command or a study calls it.
    summary : str
        What it is, in a phrase: the one name that people see.
    build : callable
        ``build(context, **settings)`` returns a scikit-learn classifier with ``predict_proba``.
    defaults, space : mappings
        The settings, and where a study or the advisor searches for better ones.
    takes_learner : bool
        Whether it wraps a study's base learners; otherwise it brings its own.
    multiclass : bool
        Whether it takes more than two classes.
    order : int, optional
        Its place when the advisor tries it, the strongest for its time first; ``None`` if only studies use it.
    simplicity : int
        Between treatments that are equally good the smaller number is recommended.
    view : str
        What it wants to see: ``"trees"`` (codes and missing values) or ``"linear"`` (filled, scaled, one-hot).
    most_rows : int
        The most rows of one fit; the others are left out of the frequent classes first and the prior is corrected.
    least_seconds : float
        With less time left it is not begun: so long it takes to load what it needs.
    trained_prior : callable
        The class prior that the learner answers at, from the counts of its training rows.
    applies : callable
        ``applies(context)`` is empty if the treatment fits the table, otherwise a clause that says why not.
    """

    name: str
    summary: str
    build: Callable[..., Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    space: Mapping[str, Range] = field(default_factory=dict)
    takes_learner: bool = True
    multiclass: bool = True
    order: int | None = None
    simplicity: int = 50
    view: Literal["trees", "linear"] = "linear"
    most_rows: int = 10**9
    least_seconds: float = 0.0
    trained_prior: Callable[[IntArray], FloatArray] = data_prior
    applies: Callable[[Context], str] = _always
