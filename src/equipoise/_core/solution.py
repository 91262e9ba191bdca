"""What a solver returns: a value that carries its status."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

T = TypeVar("T")


class ConvergenceWarning(UserWarning):
    """A solver stopped before it reached its tolerance."""


class ConvergenceError(RuntimeError):
    """A solver stopped before it reached its tolerance, and the caller asked not to go on."""


class Status(str, Enum):
    """Why a solver stopped."""

    CONVERGED = "converged"
    MAX_STEPS = "max_steps"
    STALLED = "stalled"
    DIVERGED = "diverged"
    NO_SOLUTION = "no_solution"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Solution(Generic[T]):
    """A solver's answer with its status, residual and number of steps.

    Not converging is never silent: a solution that failed warns when it is made, and
    :meth:`raise_if_failed` turns it into an error.

    >>> Solution(1.0, Status.CONVERGED, residual=1e-12, steps=4).raise_if_failed().value
    1.0
    """

    value: T
    status: Status
    residual: float = float("nan")
    steps: int = 0
    message: str = ""

    def __post_init__(self) -> None:
        if not self.converged:
            warnings.warn(self._sentence(), ConvergenceWarning, stacklevel=3)

    @property
    def converged(self) -> bool:
        return self.status is Status.CONVERGED

    def _sentence(self) -> str:
        why = f": {self.message}" if self.message else ""
        return f"no convergence ({self.status}) after {self.steps} steps, residual {self.residual:.3g}{why}"

    def raise_if_failed(self) -> Solution[T]:
        if not self.converged:
            raise ConvergenceError(self._sentence())
        return self
