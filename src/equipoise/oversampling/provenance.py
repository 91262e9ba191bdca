"""Where a row came from: which rows are synthetic, of which parents, mixed how."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from equipoise._core.checks import FloatArray, IntArray


@dataclass(frozen=True)
class Synthetic:
    """What a method made: rows, their class codes, and for each the parents (input rows) and mixing weights.

    ``parents`` is −1 where a row has fewer parents than others; ``moved`` holds the input rows as the method left
    them, for the methods that clean as well as create (``None``: untouched), and ``removed`` marks those that
    they leave out (``None``: none).
    """

    rows: FloatArray
    codes: IntArray
    parents: IntArray
    weights: FloatArray
    moved: FloatArray | None = None
    removed: npt.NDArray[np.bool_] | None = None

    def keep(self, mask: npt.NDArray[np.bool_]) -> Synthetic:
        return replace(
            self,
            rows=self.rows[mask],
            codes=self.codes[mask],
            parents=self.parents[mask],
            weights=self.weights[mask],
        )

    @staticmethod
    def concatenate(parts: list[Synthetic], n_columns: int) -> Synthetic:
        """Join per-class parts, padding the lists of parents to one width."""
        width = max((part.parents.shape[1] for part in parts), default=1)
        total = sum(len(part.rows) for part in parts)
        joined = Synthetic(
            np.zeros((total, n_columns)),
            np.zeros(total, dtype=np.int64),
            np.full((total, width), -1, dtype=np.int64),
            np.zeros((total, width)),
        )
        start = 0
        for part in parts:
            stop, columns = start + len(part.rows), part.parents.shape[1]
            joined.rows[start:stop], joined.codes[start:stop] = part.rows, part.codes
            joined.parents[start:stop, :columns] = part.parents
            joined.weights[start:stop, :columns] = part.weights
            start = stop
        return joined


@dataclass(frozen=True)
class Provenance:
    """One entry a row of the resampled table.

    Attributes
    ----------
    synthetic : array of bool
        A mask of the made rows; the input's rows come first, in their order.
    parents : array of int of shape (made rows, parents)
        The input row numbers that a made row came from; −1 for none.
    weights : array of shape (made rows, parents)
        How much of each parent went in.
    moved : array of bool
        A mask of the input rows that a cleaning method shifted.
    originals : array of int
        The input row numbers of the rows that are not made: all, unless a cleaning method left some out.
    """

    synthetic: npt.NDArray[np.bool_]
    parents: IntArray
    weights: FloatArray
    moved: npt.NDArray[np.bool_]
    originals: IntArray

    def to_frame(self) -> pd.DataFrame:
        """A table with one line per row: source (``original``, ``moved``, ``synthetic``), parents and weights.

        Returns
        -------
        DataFrame
            The table.
        """
        n_original = len(self.originals)
        source = np.where(self.synthetic, "synthetic", np.where(self.moved, "moved", "original"))
        frame = pd.DataFrame({"source": source})
        for column in range(self.parents.shape[1]):
            own = self.originals if column == 0 else np.full(n_original, -1)
            share = np.ones(n_original) if column == 0 else np.zeros(n_original)
            frame[f"parent_{column}"] = np.concatenate([own, self.parents[:, column]])
            frame[f"weight_{column}"] = np.concatenate([share, self.weights[:, column]])
        return frame


def inherit_numbers(values: npt.NDArray[Any], made: Synthetic) -> npt.NDArray[Any]:
    """Sample weights for made rows: the parents' weights, mixed as the rows were."""
    values = np.asarray(values, dtype=np.float64)
    if len(made.rows) == 0:
        return values
    known = made.parents >= 0
    share = np.where(known, made.weights, 0.0)
    total = share.sum(axis=1, keepdims=True)
    even = known / np.maximum(known.sum(axis=1, keepdims=True), 1)
    share = np.where(total > 0, share / np.where(total > 0, total, 1), even)
    mixed = (values[np.maximum(made.parents, 0)] * share).sum(axis=1)
    return np.concatenate([values, np.where(known.any(axis=1), mixed, values.mean())])


def inherit_rows(table: Any, made: Synthetic) -> Any:
    """Extra columns for made rows: those of the parent with the largest share."""
    if len(made.rows) == 0:
        return table
    main = made.parents[np.arange(len(made.rows)), made.weights.argmax(axis=1)]
    main = np.where(main < 0, made.parents.max(axis=1), main)
    if (main < 0).any():
        raise ValueError("extra columns cannot be carried along: some synthetic rows have no parent row")
    order = np.concatenate([np.arange(len(table)), main])
    if isinstance(table, (pd.DataFrame, pd.Series)):
        return table.iloc[order].reset_index(drop=True)
    return np.asarray(table)[order]
