"""What a decision should achieve: least cost, enough recall or precision, few alerts, or balanced accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise._core.checks import FloatArray, check_fraction
from equipoise.metrics._inputs import check_costs

OBJECTIVES = ("balanced_accuracy", "cost", "recall", "precision", "alerts", "f_beta", "threshold")
RowCosts = tuple[FloatArray, FloatArray]


class UnmetWish(ValueError):
    """The held-out rows cannot promise what was asked for; the message says what they can promise.

    Parameters
    ----------
    message : str
        The sentence that says so.
    most : float
        The largest recall or precision that can be promised.

    Attributes
    ----------
    most : float
        The same.
    """

    def __init__(self, message: str, most: float = 0.0) -> None:
        super().__init__(message)
        self.most = most


@dataclass(frozen=True)
class Wish:
    """What a decision should achieve. Make one with :meth:`make`.

    Attributes
    ----------
    objective : str
        One of ``"balanced_accuracy"``, ``"cost"``, ``"recall"``, ``"precision"``, ``"alerts"``, ``"f_beta"``,
        ``"threshold"``.
    level : float, optional
        The least recall or precision, the largest share (below 1) or number of alerts, or the threshold.
    beta : float
        The weight of recall in F-beta.
    cost : mapping or array, optional
        ``{"fp": 1, "fn": 20}``, where a value may name a column with one cost per row, or a table
        ``cost[truth, call]``.
    confidence : float
        How sure a promised recall or precision has to be.

    Examples
    --------
    >>> Wish.make(alerts=50).words
    'at most 50 alerts'
    """

    objective: str = "balanced_accuracy"
    level: float | None = None
    beta: float = 1.0
    cost: Mapping[str, float | str] | tuple[tuple[float, ...], ...] | None = None
    confidence: float = 0.95

    @classmethod
    def make(
        cls,
        *,
        cost: Any = None,
        recall: float | None = None,
        precision: float | None = None,
        alerts: float | None = None,
        beta: float | None = None,
        threshold: float | None = None,
        confidence: float = 0.95,
    ) -> Wish:
        """A wish from at most one of its options; with none, balanced accuracy.

        Parameters
        ----------
        cost : mapping or array-like, optional
            See `Wish`.
        recall, precision : float, optional
            At least this much, with ``confidence``.
        alerts : float, optional
            At most this share of the rows (below 1), or this many of as many rows as are held out.
        beta : float, optional
            The best F-beta.
        threshold : float, optional
            This threshold, whatever it does; a ``cost`` beside it says what its errors cost.
        confidence : float
            For ``recall`` and ``precision``.

        Returns
        -------
        Wish
            The wish.

        Raises
        ------
        ValueError
            If more than one option is given, or one is out of range.

        Examples
        --------
        >>> Wish.make(recall=0.9).words
        'a recall of at least 90% (95% sure)'
        >>> Wish.make(recall=90)
        Traceback (most recent call last):
        ...
        ValueError: recall must lie between 0 and 1, got 90: write 0.9 for 90%
        """
        options = {"cost": cost, "recall": recall, "precision": precision, "alerts": alerts, "beta": beta}
        if threshold is not None:
            del options["cost"]
            options["threshold"] = threshold
        given = [name for name, value in options.items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"a decision follows one wish, got {' and '.join(given)}: give one of them")
        check_fraction("confidence", confidence)
        for name, value in (("recall", recall), ("precision", precision)):
            if value is not None and not 0 < value < 1:
                hint = f": write {value / 100:g} for {value:g}%" if 1 < value <= 100 else ""
                raise ValueError(f"{name} must lie between 0 and 1, got {value:g}{hint}")
            if value is not None:
                return cls(name, float(value), confidence=confidence)
        if alerts is not None:
            if not (0 < alerts < 1 or (alerts >= 1 and float(alerts).is_integer())):
                raise ValueError(f"alerts must be a share below 1 or a whole number, got {alerts:g}")
            return cls("alerts", float(alerts))
        if beta is not None:
            if not 0 < beta <= 1e6:
                raise ValueError(f"beta must be positive and at most 1e+06, got {beta:g}")
            return cls("f_beta", beta=float(beta))
        costs = None if cost is None else _read_cost(cost)
        if threshold is not None:
            if not 0 <= threshold <= 1:
                raise ValueError(f"a threshold must be a probability, got {threshold:g}")
            return cls("threshold", float(threshold), cost=costs)
        return cls() if costs is None else cls("cost", cost=costs)

    @property
    def by_row(self) -> bool:
        """Whether a cost comes from a column."""
        return isinstance(self.cost, Mapping) and any(isinstance(v, str) for v in self.cost.values())

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that costs come from."""
        return tuple(v for v in self.cost.values() if isinstance(v, str)) if self.by_row else ()  # type: ignore[union-attr]

    @property
    def words(self) -> str:
        """The wish as a phrase."""
        if self.objective == "cost":
            if isinstance(self.cost, Mapping):
                alarm, miss = (
                    c if isinstance(c, str) else f"{c:g}" for c in (self.cost["fp"], self.cost["fn"])
                )
                return f"the least cost (a false alarm costs {alarm}, a miss {miss})"
            return "the least cost by the cost table"
        if self.objective in ("recall", "precision"):
            sure = f"({100 * self.confidence:g}% sure)"
            return f"a {self.objective} of at least {100 * (self.level or 0):g}% {sure}"
        if self.objective == "alerts":
            level = self.level or 0
            return (
                f"alerts on at most {100 * level:g}% of the rows"
                if level < 1
                else f"at most {level:g} alerts"
            )
        if self.objective == "threshold":
            return "the threshold that was set"
        if self.objective == "f_beta":
            return "the best F1" if self.beta == 1 else f"the best F-beta with beta {self.beta:g}"
        return "the best balanced accuracy"

    def check(self, n_classes: int) -> None:
        """Refuse a wish that so many classes cannot have.

        Parameters
        ----------
        n_classes : int
            The number of classes.

        Raises
        ------
        ValueError
            If the wish needs two classes, or its costs do not fit their number.
        """
        self.cost_table(n_classes)
        if n_classes != 2 and (self.objective not in ("balanced_accuracy", "cost") or self.by_row):
            raise ValueError(f"{self.words} needs two classes, got {n_classes}: name one with positive")

    def cost_table(self, n_classes: int) -> FloatArray | None:
        """``cost[truth, call]``, or ``None`` for another wish or a cost by row.

        Parameters
        ----------
        n_classes : int
            The number of classes.

        Returns
        -------
        array of shape (classes, classes) or None
            The costs.

        Raises
        ------
        ValueError
            If the costs do not fit the number of classes.
        """
        if self.cost is None or self.by_row:
            return None
        if isinstance(self.cost, Mapping):
            if n_classes != 2:
                raise ValueError(
                    f"a cost of false alarms and misses needs two classes, got {n_classes}: name one with "
                    "positive, or give a full cost table"
                )
            return np.array([[0.0, float(self.cost["fp"])], [float(self.cost["fn"]), 0.0]])
        costs = check_costs(self.cost, n_classes)
        if n_classes == 2 and costs[0, 1] + costs[1, 0] <= costs.trace():
            raise ValueError(f"a cost table must charge errors more than what is right, got {costs.tolist()}")
        return costs

    def row_costs(self, columns: Mapping[str, Any], n_rows: int) -> RowCosts | None:
        """Costs of a false alarm and a miss of every row, from the columns that the wish names.

        Parameters
        ----------
        columns : mapping of str to array
            The table's columns with costs.
        n_rows : int
            The number of rows.

        Returns
        -------
        pair of arrays or None
            The costs of false alarms and of misses; ``None`` for a wish without costs by row.

        Raises
        ------
        ValueError
            If a column is absent, or holds a cost that is negative or not finite.
        """
        if not self.by_row:
            return None
        assert isinstance(self.cost, Mapping)
        found = []
        for value in (self.cost["fp"], self.cost["fn"]):
            if isinstance(value, str):
                if value not in columns:
                    raise ValueError(f"the cost names the column {value!r}, which the table does not have")
                array = np.asarray(columns[value], dtype=np.float64)
                if not np.isfinite(array).all() or (array < 0).any():
                    raise ValueError(f"the costs in column {value!r} must be finite and at least 0")
                found.append(array)
            else:
                found.append(np.full(n_rows, float(value)))
        return found[0], found[1]


def _read_cost(cost: Any) -> Mapping[str, float | str] | tuple[tuple[float, ...], ...]:
    if not isinstance(cost, Mapping):
        table = np.asarray(cost, dtype=np.float64)
        if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) < 2:
            raise ValueError(f"a cost table must be square, truth by call, got the shape {table.shape}")
        check_costs(table, len(table))
        return tuple(map(tuple, table.tolist()))
    if set(cost) != {"fp", "fn"}:
        raise ValueError(f"cost must name fp and fn, got {', '.join(map(str, cost)) or 'nothing'}")
    for name, value in cost.items():
        if not isinstance(value, str) and not (np.isfinite(value) and value > 0):
            raise ValueError(f"the cost of {name} must be positive, got {value}")
    return dict(cost)
