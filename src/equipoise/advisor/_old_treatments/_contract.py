"""What a treatment is, and the task that it sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from equipoise._core.checks import FloatArray, IntArray


@dataclass(frozen=True)
class Task:
    """A table ready to learn from.

    Attributes
    ----------
    X
        A float array, or a DataFrame with ``kinds`` ``"number"`` and ``"category"`` columns.
    y
        Class codes. In a binary task 1 is the positive class.
    classes
        Labels by code.
    kinds
        Kind of each column of a DataFrame; empty for an array.
    cost
        Cost of a false positive and a false negative, if the user named them (binary only).
    image_shape
        Height, width and channels where the columns are pixels.
    """

    X: Any
    y: IntArray
    classes: tuple[Any, ...]
    kinds: tuple[str, ...] = ()
    cost: tuple[float, float] | None = None
    image_shape: tuple[int, int, int] | None = None

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def binary(self) -> bool:
        return self.n_classes == 2

    @property
    def counts(self) -> IntArray:
        return np.bincount(self.y, minlength=self.n_classes)

    def rows(self, index: IntArray) -> Any:
        return self.X.iloc[index] if hasattr(self.X, "iloc") else self.X[index]


def data_prior(counts: IntArray) -> FloatArray:
    """The prior of a learner that sees the data as they are."""
    return counts / counts.sum()


def balanced_prior(counts: IntArray) -> FloatArray:
    """The prior of a learner that sees all classes equally often."""
    return np.full(len(counts), 1 / len(counts))


def always(task: Task) -> str:
    return ""


@dataclass(frozen=True)
class Treatment:
    """A way to learn from imbalanced data.

    Attributes
    ----------
    name, label
        For machines and for people.
    reason
        Why it works where it works: a clause after "because".
    build
        ``build(task, seed)`` gives an unfitted scikit-learn (or imbalanced-learn) pipeline with
        ``predict_proba``.
    candidates
        Parameter settings to tune over, as many as every other treatment has.
    decision
        ``"argmax"`` takes the most probable class under the training prior; ``"tuned"`` chooses the
        threshold (for many classes: the strength of the prior's removal) on held-out predictions.
    trained_prior
        The class prior that the learner sees, from the counts of its training rows: the entry in the
        prior ledger.
    applies
        Empty if the treatment fits the task, otherwise a clause that says why not.
    order, baseline
        Place in tables; whether it is one of the honest baselines that always run.
    """

    name: str
    label: str
    reason: str
    build: Callable[[Task, int], Any]
    candidates: Sequence[Mapping[str, Any]]
    decision: Literal["argmax", "tuned"] = "tuned"
    trained_prior: Callable[[IntArray], FloatArray] = data_prior
    applies: Callable[[Task], str] = field(default=always)
    order: int = 100
    baseline: bool = False
