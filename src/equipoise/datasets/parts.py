"""Tables beyond memory: a folder of Parquet parts of which only the labels and a sample of the rows are kept.

The labels of all rows are read first. Then one pass over the parts takes all rows of the rare classes and a random
part of the others. The sample knows how many rows of each class there are, and reads all rows again, a part at a
time, when a model is fitted to them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from equipoise._core.checks import IntArray
from equipoise.datasets._parquet import ParquetTable, Part
from equipoise.datasets.blocks import Block
from equipoise.datasets.labels import code_labels
from equipoise.datasets.schema import Schema
from equipoise.datasets.table import DataTable, Roles, build_table
from equipoise.datasets.thinning import thin

_COPIES = 12  # how often a sample is in memory while models are fitted to it, as 8-byte numbers
_MOST_ROWS = 200_000  # of the sample
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def parse_memory(text: str | int) -> int:
    """Bytes of ``2GiB``, ``500MB`` or a number.

    >>> parse_memory("2GiB"), parse_memory("500M"), parse_memory(1000)
    (2147483648, 524288000, 1000)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", str(text).lower())
    if not found or float(found.group(1)) <= 0:
        raise ValueError(f"memory must be a size such as 2GiB or 500MB, got {text!r}")
    return int(float(found.group(1)) * _UNITS[found.group(2)])


@dataclass(frozen=True, eq=False)
class Parts:
    """All rows of a folder of Parquet parts.

    Attributes
    ----------
    source
        The folder.
    codes
        The class of every row; −1 where there is no label.
    memory
        Bytes that may be used.
    """

    source: Path
    codes: IntArray
    memory: int

    def blocks(self, schema: Schema) -> list[Block]:
        """One block for each group of rows in the files."""
        blocks, start = [], 0
        for part in ParquetTable(self.source, whole=False).parts():
            codes = self.codes[start : start + part.n_rows]
            start += part.n_rows
            blocks.append(Block(codes[codes >= 0], partial(_read, part, codes >= 0, schema)))
        return blocks


def _read(part: Part, labeled: Any, schema: Schema) -> Any:
    frame = part.read(schema.names)
    return schema.convert(frame if labeled.all() else frame[labeled].reset_index(drop=True))


def read_parts(source: Path, roles: Roles, memory: int) -> DataTable:
    """A sample of a folder of Parquet parts, with the counts of all rows and a way to read them.

    Parameters
    ----------
    source
        The folder.
    roles
        What its columns are for.
    memory
        Bytes that may be used.

    Returns
    -------
    DataTable
    """
    parts = ParquetTable(source, whole=False)
    aside = roles.aside(parts.names)
    wanted = [name for name in parts.names if name not in roles.drop]
    codes, classes, notes = _label_codes(parts, str(roles.target), roles.positive)
    labeled = np.flatnonzero(codes >= 0)
    fitting = memory // (_COPIES * 8 * len(wanted))
    chosen = thin(codes, labeled, max(1_000, min(_MOST_ROWS, fitting)), seed=0)
    sample = _take(parts, chosen, wanted)
    features = sample[[name for name in wanted if name not in aside]]
    found = replace(roles, positive=classes[1] if len(classes) == 2 else None)
    table = build_table(features, sample, found, source.name)
    if len(chosen) == len(labeled):
        return table.with_notes(*notes)
    notes.append(
        f"The parts hold {len(labeled):,} rows with a label and are never in memory together: {len(table):,} of "
        "them, all of the rare classes and a random part of the others, were diagnosed and compared on."
    )
    totals = np.bincount(codes[labeled], minlength=len(classes))
    whole = Parts(source, codes, memory)
    return replace(table.with_notes(*notes), class_totals=totals, parts=whole, classes=classes)


def _label_codes(
    parts: ParquetTable, target: str, positive: Any
) -> tuple[IntArray, tuple[Any, ...], list[str]]:
    """The class of every row (−1 where there is no label), the labels by code, and notes."""
    labels = pd.Series(parts.frame([target])[target])
    known = labels.notna().to_numpy()
    if not known.any():
        raise ValueError(f"no row of {parts.source} has a value in {target!r}: nothing to learn from")
    codes = np.full(len(labels), -1, dtype=np.int64)
    codes[known], classes, notes = code_labels(labels[known].to_numpy(), target, positive)
    if not known.all():
        notes = [f"{int((~known).sum()):,} rows have no value in {target!r}: they were left out.", *notes]
    return codes, classes, notes


def _take(parts: ParquetTable, chosen: IntArray, columns: list[str]) -> pd.DataFrame:
    """The rows of these numbers, from one pass over the parts."""
    found, start = [], 0
    for part in parts.parts():
        stop = start + part.n_rows
        own = chosen[np.searchsorted(chosen, start) : np.searchsorted(chosen, stop)] - start
        if len(own):
            found.append(part.read(columns).iloc[own])
        start = stop
    return pd.concat(found, ignore_index=True)
