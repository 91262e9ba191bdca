"""Parquet files and folders of their parts, read with at most one copy of the numbers in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from equipoise._core.extras import optional
from equipoise._core.memory import refuse_if_too_large

SUFFIXES = (".parquet", ".pq")


def parquet_parts(source: Path) -> list[Path]:
    """The file itself, or all Parquet files below a folder, in the order of their paths."""
    if source.is_file():
        return [source]
    return [
        f for f in sorted(source.rglob("*"))
        if f.is_file() and f.suffix in SUFFIXES and not f.name.startswith((".", "_"))
    ]  # fmt: skip


class ParquetTable:
    """Parquet parts with the same columns.

    Parameters
    ----------
    source
        A file, or a folder of files.
    whole
        Whether all rows will be in memory at once; if they would not fit, the source is refused.

    Attributes
    ----------
    names
        The columns.
    n_rows
        Rows in all parts.
    """

    def __init__(self, source: Path, whole: bool = True) -> None:
        self.source = source
        self.paths = parquet_parts(source)
        self.files = [_open(path) for path in self.paths]
        if not self.files:
            raise ValueError(f"{source} has no Parquet file")
        self.schema = self.files[0].schema_arrow
        self.names: list[str] = list(self.schema.names)
        self.n_rows = sum(file.metadata.num_rows for file in self.files)
        for path, file in zip(self.paths, self.files, strict=True):
            if list(file.schema_arrow.names) != self.names:
                raise ValueError(f"{path} has other columns than {self.paths[0]}: the parts must agree")
        if whole:
            stored = sum(file.metadata.row_group(group).total_byte_size for file, group in self._row_groups())
            refuse_if_too_large(source, max(stored, self.n_rows * len(self.names) * 4))

    def _row_groups(self) -> Iterator[tuple[Any, int]]:
        for file in self.files:
            for group in range(file.metadata.num_row_groups):
                yield file, group

    def parts(self) -> list[Part]:
        """All groups of rows, in order."""
        return [
            Part(path, group, file.metadata.row_group(group).num_rows)
            for path, file in zip(self.paths, self.files, strict=True)
            for group in range(file.metadata.num_row_groups)
        ]

    def frame(self, columns: Collection[str]) -> pd.DataFrame:
        """Those columns of all parts."""
        import pyarrow

        with _readable(self.source):
            tables = [file.read(columns=list(columns)) for file in self.files]
            return pyarrow.concat_tables(tables, promote_options="permissive").to_pandas()

    def numbers(self, columns: list[str]) -> npt.NDArray[Any] | None:
        """All rows of columns that are plain numbers, as one array; ``None`` if a column is not."""
        types = [self.schema.field(name).type for name in columns]
        if not columns or not all(_is_number(t) for t in types):
            return None
        precise = all(str(t) in ("float", "halffloat") for t in types)
        kind = np.dtype(np.float32 if precise else np.float64)
        refuse_if_too_large(self.source, self.n_rows * len(columns) * kind.itemsize)
        block = np.empty((len(columns), self.n_rows), dtype=kind)
        start = 0
        with _readable(self.source):
            for file, group in self._row_groups():
                stop = start + file.metadata.row_group(group).num_rows
                for row, name in zip(block, columns, strict=True):  # one by one: little else is in memory
                    row[start:stop] = file.read_row_group(group, columns=[name]).column(0).to_numpy()
                start = stop
        return block.T


@dataclass(frozen=True)
class Part:
    """A group of rows in a file, read when it is asked for, on any machine that sees the file."""

    path: Path
    group: int
    n_rows: int

    def read(self, columns: Collection[str] | None = None) -> pd.DataFrame:
        """Those columns, or all."""
        with _readable(self.path):
            names = None if columns is None else list(columns)
            return _open(self.path).read_row_group(self.group, columns=names).to_pandas()


def _open(path: Path) -> Any:
    parquet = optional("pyarrow.parquet", "Parquet needs pyarrow")
    with _readable(path):
        file = parquet.ParquetFile(path)
        texts = [f.name for f in file.schema_arrow if _is_text(f.type)]
        return parquet.ParquetFile(path, read_dictionary=texts) if texts else file


def _is_number(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind))


def _is_text(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path} is not readable Parquet (cut off or damaged?): {reason}") from error
