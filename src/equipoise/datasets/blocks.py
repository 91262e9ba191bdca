"""All rows of a table, a block at a time, whether they are in memory or in files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from equipoise._core.checks import IntArray
from equipoise.datasets.table import DataTable

ROWS_AT_ONCE = 1 << 17


@dataclass(frozen=True)
class Block:
    """Some rows that follow each other.

    Attributes
    ----------
    y
        Their class codes.
    read
        Returns the rows in the form that the table's schema describes.
    """

    y: IntArray
    read: Callable[[], Any]


def table_blocks(table: DataTable, size: int = ROWS_AT_ONCE) -> list[Block]:
    """The rows of a table in memory, or of the files that it is a sample of.

    >>> table = DataTable.from_arrays(np.arange(6.0)[:, None], [0, 0, 1, 0, 1, 0])
    >>> [(block.y.tolist(), block.read().ravel().tolist()) for block in table_blocks(table, 4)]
    [([0, 0, 1, 0], [0.0, 1.0, 2.0, 3.0]), ([1, 0], [4.0, 5.0])]
    """
    if table.parts is not None:
        return table.parts.blocks(table.schema)
    starts = range(0, len(table), size)
    index = [np.arange(start, min(start + size, len(table))) for start in starts]
    return [Block(table.y[rows], partial(table.rows, rows)) for rows in index]
