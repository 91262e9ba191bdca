"""What the pages of the anomaly studies share: panels, and the paper's words beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from equipoise.report import Table, new_axes


def new_panels(count: int, width: float = 3.6) -> tuple[Any, Any]:
    """So many axes in rows of up to four; the rest is switched off."""
    columns = min(count, 4)
    rows = -(-count // columns)
    figure, axes = new_axes(width * columns, 2.9 * rows, rows, columns, count)
    return figure, np.ravel(axes)[:count]


def beside(paper: Mapping[str, Any]) -> Table:
    """A figure of the paper and what its text says of it, a row each."""
    return Table(["figure", "the paper"], [[figure, str(text)] for figure, text in paper.items()])
