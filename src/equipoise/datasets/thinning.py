"""A part of a table's rows that keeps all of the rare classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from equipoise._core.checks import IntArray
from equipoise.datasets.table import DataTable


def thin(y: IntArray, rows: IntArray, most: int, seed: int) -> IntArray:
    """At most ``most`` of the rows: all of the rare classes, and a random part of the frequent ones.

    >>> y = np.array([0] * 98 + [1] * 2)
    >>> kept = thin(y, np.arange(100), 10, seed=0)
    >>> len(kept), kept[-2:].tolist()
    (10, [98, 99])
    """
    if len(rows) <= most:
        return rows
    rng = np.random.default_rng(seed)
    counts = np.bincount(y[rows])
    left, keep = most, np.zeros(len(counts), dtype=np.int64)
    for rank, code in enumerate(np.argsort(counts)):
        share = left // (len(counts) - rank)
        keep[code] = min(counts[code], share)
        left -= keep[code]
    kept = [rng.choice(rows[y[rows] == c], keep[c], replace=False) for c in range(len(counts)) if keep[c]]
    return np.sort(np.concatenate(kept))


def sample_rows(table: DataTable, most: int, seed: int) -> DataTable:
    """A thinned table that still knows how many rows of each class there are; the table itself if it is small.

    Parameters
    ----------
    table
        The rows to choose from.
    most
        Rows to keep: all of the rare classes, and a random part of the others.
    seed
        Of the choice.

    Returns
    -------
    DataTable
        Its ``counts`` and ``prior`` stay those of all rows.

    Examples
    --------
    >>> table = DataTable.from_arrays(np.zeros((100, 1)), [0] * 98 + [1] * 2)
    >>> small = sample_rows(table, 10, seed=0)
    >>> len(small), small.counts.tolist()
    (10, [98, 2])
    """
    if len(table) <= most:
        return table
    chosen = thin(table.y, np.arange(len(table)), most, seed)
    return replace(table.take(chosen), class_totals=table.counts)
