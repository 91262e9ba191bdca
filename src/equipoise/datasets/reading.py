"""A table from a file: CSV, Parquet, npz, or a folder of Parquet parts or of images by class.

Whatever is wrong with the input ends in one sentence that says what to do about it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from equipoise._core.files import existing
from equipoise.datasets._csv import read_csv
from equipoise.datasets._parquet import SUFFIXES, ParquetTable, parquet_parts
from equipoise.datasets.home import load_npz
from equipoise.datasets.schema import refuse_duplicates
from equipoise.datasets.table import DataTable, Roles, build_table, listed

_LABEL_NAMES = ("y", "target", "label", "labels")
_ROW_NAMES = ("X", "x", "data", "images")


def read_table(
    path: str | PathLike[str],
    target: str | None = None,
    *,
    positive: Any = None,
    group: str | None = None,
    time: str | None = None,
    id: str | None = None,
    drop: Collection[str] = (),
    keep_values: Collection[str] = (),
    encoding: str = "utf-8",
    memory: str | int | None = None,
) -> DataTable:
    """Read a table of rows and labels from ``path``.

    Parameters
    ----------
    path : path
        A ``.csv`` (also ``.tsv``, ``.txt``, gzipped), ``.parquet`` or ``.npz`` file, a folder of Parquet parts,
        or a folder with one folder of images for each class.
    target : str, optional
        The column (or the array of an npz) with the labels. Not needed for images, nor for an npz with ``y``.
    positive : label, optional
        The label to find; by default the rarer one of two.
    group : str, optional
        The column that says which rows belong together.
    time : str, optional
        The column that says when a row was recorded.
    id : str, optional
        The column that names the rows.
    drop : collection of str
        Other columns that must not be learned from.
    keep_values : collection of str
        Columns of numbers that costs by row need.
    encoding : str
        The encoding of a text file.
    memory : str or int, optional
        ``"2GiB"`` or bytes: Parquet parts are then never in memory together. The table is a sample that keeps
        all rare rows and knows the counts of all; the advisor's boosted models still see all rows.

    Returns
    -------
    DataTable
        The rows, their labels, and notes on what was left out.

    Raises
    ------
    FileNotFoundError
        If there is nothing at ``path``.
    ValueError
        If the file is damaged, declares more data than fits into memory, or has nothing to learn from.

    Examples
    --------
    >>> table = read_table("credit.csv", "default", id="loan", time="granted")  # doctest: +SKIP
    >>> table.counts  # doctest: +SKIP
    """
    source = existing(path)
    roles = Roles(target, positive, group, time, id, drop, keep_values)
    if source.is_dir() and not parquet_parts(source):
        from equipoise.datasets.folders import read_image_folder

        _refuse_columns(source, roles, "group", "time", "id", "drop", "keep_values")
        return read_image_folder(source, positive)
    if source.suffix == ".npz":
        _refuse_columns(source, roles, "id", "drop", "keep_values")
        return _read_npz(source, target, positive, group, time)
    if _is_parquet(source):
        if memory is not None:
            from equipoise.datasets.parts import parse_memory, read_parts

            return read_parts(source, roles, parse_memory(memory))
        return _read_parquet_table(source, roles)
    return DataTable.from_frame(read_csv(source, encoding, target), **vars(roles), name=source.name)


def read_frame(path: str | PathLike[str], *, encoding: str = "utf-8") -> pd.DataFrame:
    """All columns of a CSV or Parquet table; duplicate names, ragged rows and wrong encodings are refused."""
    source = existing(path)
    if _is_parquet(source):
        parts = ParquetTable(source)
        refuse_duplicates(parts.names)
        return parts.frame(parts.names)
    return read_csv(source, encoding)


def read_frames(path: str | PathLike[str], *, encoding: str = "utf-8") -> Iterator[pd.DataFrame]:
    """All columns of a CSV at once, or of Parquet a part at a time."""
    source = existing(path)
    if not _is_parquet(source):
        yield read_csv(source, encoding)
        return
    parts = ParquetTable(source, whole=False)
    refuse_duplicates(parts.names)
    for part in parts.parts():
        yield part.read()


def _is_parquet(source: Path) -> bool:
    if source.is_dir() or source.suffix in SUFFIXES:
        return True
    with source.open("rb") as file:
        return file.read(4) == b"PAR1"


def _refuse_columns(source: Path, roles: Roles, *options: str) -> None:
    for option in options:
        if getattr(roles, option):
            text = option.replace("_", "-")
            raise ValueError(f"--{text} needs a table with named columns, and {source} has none")


def _read_parquet_table(source: Path, roles: Roles) -> DataTable:
    parts = ParquetTable(source)
    aside = roles.aside(parts.names)
    learned = [name for name in parts.names if name not in aside]
    block = parts.numbers(learned)
    features = parts.frame(learned) if block is None else pd.DataFrame(block, columns=learned, copy=False)
    beside = parts.frame(list(dict.fromkeys([*(aside - set(roles.drop)), *roles.keep_values])))
    return build_table(features, beside, roles, source.name, block)


def _read_npz(
    path: Path, target: str | None, positive: Any, group: str | None, time: str | None
) -> DataTable:
    arrays = load_npz(path)
    label = next((k for k in ([target] if target else _LABEL_NAMES) if k in arrays), None)
    if label is None:
        wanted = repr(target or "y")
        raise ValueError(f"{path} has no array {wanted}; there are {listed(arrays)}: use --target NAME")
    for name in (group, time):
        if name is not None and name not in arrays:
            raise ValueError(f"{path} has no array {name!r}; there are {listed(arrays)}")
    name, rows = _rows_of(path, arrays, label)
    shape = None
    if rows.ndim in (3, 4):
        from equipoise.datasets.image_features import pixel_rows

        rows, shape = pixel_rows(rows)
    table = DataTable.from_arrays(
        rows, np.ravel(arrays[label]), positive,
        groups=arrays[group] if group else None, time=arrays[time] if time else None,
        names=[f"{name}{i}" for i in range(int(np.prod(rows.shape[1:])))], name=path.name, target=label,
    )  # fmt: skip
    return replace(table, image_shape=shape)


def _rows_of(path: Path, arrays: dict[str, Any], label: str) -> tuple[str, npt.NDArray[Any]]:
    rows = {k: v for k, v in arrays.items() if k != label and v.ndim >= 2 and len(v) == len(arrays[label])}
    if not rows:
        raise ValueError(f"{path} has no array of as many rows as {label!r} has ({len(arrays[label]):,})")
    name = next((k for k in _ROW_NAMES if k in rows), next(iter(rows)))
    if rows[name].dtype.kind not in "fiub":
        raise ValueError(f"the array {name!r} in {path} must hold numbers, got {rows[name].dtype}")
    return name, rows[name]
