"""A classification problem from a file: CSV, Parquet, npz, or a folder of images by class.

Whatever is wrong with the input ends in one sentence that says what to do about it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from equipoise.datasets.home import load_npz
from equipoise.datasets.schema import Column, Schema, refuse_duplicates

DELIMITERS = ",;\t|"
MANY_LABELS = 50
LABEL_NAMES = ("y", "target", "label", "labels")


@dataclass(frozen=True)
class Problem:
    """Rows, labels and what is known about them.

    ``X`` is a float array where all columns are numbers, otherwise a DataFrame of floats and texts.
    """

    X: Any
    y: npt.NDArray[Any]
    schema: Schema
    target: str
    name: str
    notes: list[str] = field(default_factory=list)
    image_shape: tuple[int, int, int] | None = None


def read_problem(path: str | PathLike[str], target: str | None = None, *, encoding: str = "utf-8") -> Problem:
    """Read a problem from ``path``.

    Parameters
    ----------
    path
        A ``.csv`` (also ``.tsv``, ``.txt``, gzipped), ``.parquet`` or ``.npz`` file, or a folder with
        one folder of images a class.
    target
        The column (or the array of an npz) with the labels. Not needed for images, nor for an npz with ``y``.
    encoding
        Of a text file.
    """
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"no such file or folder: {source}")
    if source.is_dir():
        from equipoise.datasets.folders import read_image_folder

        return read_image_folder(source)
    if source.stat().st_size == 0:
        raise ValueError(f"{source} is empty: nothing to learn from")
    if source.suffix == ".npz":
        return _read_npz(source, target)
    frame = read_frame(source, encoding=encoding)
    return problem_from_frame(frame, target, source.name)


def read_frame(path: str | PathLike[str], *, encoding: str = "utf-8") -> pd.DataFrame:
    """A table from CSV or Parquet, with duplicate names, ragged rows and wrong encodings refused."""
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"no such file: {source}")
    if source.stat().st_size == 0:
        raise ValueError(f"{source} is empty: nothing to read")
    if source.suffix in (".parquet", ".pq"):
        return _read_parquet(source)
    return _read_csv(source, encoding)


def problem_from_frame(frame: pd.DataFrame, target: str | None, name: str = "table") -> Problem:
    """Split a table into typed columns and labels."""
    if target is None:
        raise ValueError(f"name the column to predict with --target; there are {_listed(frame.columns)}")
    names = [str(c) for c in frame.columns]
    refuse_duplicates(names)
    frame = frame.set_axis(names, axis=1)
    if target not in names:
        raise ValueError(f"there is no column {target!r}; there are {_listed(names)}")
    if frame.empty:
        raise ValueError(f"{name} has a header but no rows: nothing to learn from")
    notes = []
    labelled = frame[target].notna()
    if not labelled.all():
        notes.append(f"{int((~labelled).sum()):,} rows have no value in {target!r}: they were left out.")
        frame = frame[labelled].reset_index(drop=True)
    y = check_target(frame[target].to_numpy(), target)
    features = frame.drop(columns=target)
    if features.shape[1] == 0:
        raise ValueError(f"{name} has no column besides {target!r}: nothing to learn from")
    schema, more = Schema.infer(features)
    typed = schema.apply(features)
    infinite = [c.name for c in schema.columns if c.kind == "number" and _has_infinite(features[c.name])]
    if infinite:
        more.append(f"Infinite values in {_listed(infinite)} were read as missing.")
    X = typed if "category" in schema.kinds else typed.to_numpy(dtype=np.float64)
    return Problem(X, y, schema, target, name, notes + more)


def check_target(values: npt.NDArray[Any], name: str = "y") -> npt.NDArray[Any]:
    """Labels as integers, booleans or texts; what looks like a regression, or cannot be split, is refused."""
    labels = pd.Series(values)
    if labels.isna().any():
        raise ValueError(f"{name} must have no missing labels, got {int(labels.isna().sum())}")
    if pd.api.types.is_float_dtype(labels.dtype):
        different = labels.nunique()
        if not (labels == labels.round()).all():
            raise ValueError(
                f"the target {name!r} has {different:,} different decimal numbers, as in a regression: "
                "cut it into classes first (for instance value above a limit: yes or no)"
            )
        labels = labels.astype(np.int64)
    if pd.api.types.is_numeric_dtype(labels.dtype) and not pd.api.types.is_bool_dtype(labels.dtype):
        different = labels.nunique()
        if different > MANY_LABELS and different > 0.02 * len(labels):
            raise ValueError(
                f"the target {name!r} has {different:,} different numbers in {len(labels):,} rows, as in a "
                "regression: cut it into classes first, or name another column"
            )
        return labels.to_numpy()
    if pd.api.types.is_bool_dtype(labels.dtype):
        return labels.to_numpy(dtype=bool)
    return labels.astype(str).to_numpy(dtype=object)


def check_classes(y: npt.NDArray[Any], *, name: str = "target", least: int = 4) -> None:
    """At least two classes, each with enough rows for nested folds."""
    counts = pd.Series(y).value_counts()
    if len(counts) < 2:
        only = counts.index[0] if len(counts) else None
        raise ValueError(
            f"the target {name!r} has only one class, {only!r}: there is nothing to tell apart; "
            "add rows of another class or name another column"
        )
    rare = counts[counts < least]
    if len(rare):
        shown = ", ".join(f"{label!r} ({n})" for label, n in rare.iloc[:8].items())
        if len(rare) > 8:
            shown += f" and {len(rare) - 8} more"
        raise ValueError(
            f"too few rows of {shown}: nested folds need {least} of every class; remove or merge these "
            f"labels, "
            "collect more, or ask about one class with --positive LABEL"
        )


def _listed(names: Any, most: int = 12) -> str:
    every = [repr(str(name)) for name in names]
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")


def _has_infinite(values: pd.Series[Any]) -> bool:
    return bool(pd.api.types.is_float_dtype(values.dtype) and np.isinf(values.to_numpy(dtype=float)).any())


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: pip install 'equipoise[report]'") from error
    try:
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path} is not readable Parquet (cut off or damaged?): {reason}") from error
    refuse_duplicates(list(table.column_names))
    return table.to_pandas()


def _read_npz(path: Path, target: str | None) -> Problem:
    arrays = load_npz(path)
    label = next((k for k in ([target] if target else LABEL_NAMES) if k in arrays), None)
    if label is None:
        wanted = repr(target or "y")
        raise ValueError(f"{path} has no array {wanted}; there are {_listed(arrays)}: use --target NAME")
    rows = {k: v for k, v in arrays.items() if k != label and v.ndim >= 2 and len(v) == len(arrays[label])}
    if not rows:
        raise ValueError(f"{path} has no array of as many rows as {label!r} has ({len(arrays[label]):,})")
    name = next((k for k in ("X", "x", "data", "images") if k in rows), next(iter(rows)))
    if not np.issubdtype(rows[name].dtype, np.number) and rows[name].dtype != bool:
        raise ValueError(f"the array {name!r} in {path} must hold numbers, got {rows[name].dtype}")
    X = rows[name].reshape(len(rows[name]), -1).astype(np.float64)
    notes = []
    if np.isinf(X).any():
        notes.append(f"Infinite values in {name!r} were read as missing.")
        X = np.where(np.isinf(X), np.nan, X)
    y = check_target(np.ravel(arrays[label]), label)
    schema = Schema(tuple(Column(f"{name}{i}", "number", "float64") for i in range(X.shape[1])))
    height, width, channels = (*rows[name].shape[1:4], 1, 1)[:3]
    image = (int(height), int(width), int(channels)) if rows[name].ndim in (3, 4) else None
    return Problem(X, y, schema, label, path.name, notes, image)


def _read_csv(path: Path, encoding: str) -> pd.DataFrame:
    with path.open("rb") as file:
        start = file.read(4)
    compression: Literal["gzip"] | None = "gzip" if start[:2] == b"\x1f\x8b" else None
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    elif encoding.lower().replace("-", "") == "utf8":
        encoding = "utf-8-sig"
    if start == b"PAR1":
        return _read_parquet(path)
    try:
        delimiter, header = _check_rows(path, encoding, compression)
        frame = pd.read_csv(
            path,
            sep=delimiter,
            encoding=encoding,
            compression=compression,
            low_memory=False,
            skipinitialspace=True,
        )
    except (UnicodeDecodeError, UnicodeError) as error:
        place = f" (byte {error.start:,})" if isinstance(error, UnicodeDecodeError) else ""
        raise ValueError(
            f"{path} is not {encoding.removesuffix('-sig')}{place}: save it as UTF-8, or name its encoding, "
            "for instance --encoding cp1252"
        ) from error
    except LookupError as error:
        raise ValueError(
            f"there is no encoding {encoding!r}: try utf-8, cp1252, latin-1 or utf-16"
        ) from error
    except (csv.Error, pd.errors.ParserError, EOFError, OSError) as error:
        raise ValueError(f"{path} is not a readable table: {str(error).splitlines()[0]}") from error
    return frame.set_axis(header, axis=1)


def _lines(path: Path, encoding: str, compression: str | None) -> Iterator[str]:
    import gzip

    if compression:
        with gzip.open(path, "rt", encoding=encoding, newline="") as file:
            yield from file
    else:
        with path.open(encoding=encoding, newline="") as file:
            yield from file


def _check_rows(path: Path, encoding: str, compression: str | None) -> tuple[str, list[str]]:
    """The delimiter and the header; a row with more or fewer cells than the header is refused by its
    number.
    """
    first = next(_lines(path, encoding, compression), "")
    if not first.strip():
        raise ValueError(f"{path} has an empty first line: the first line must name the columns")
    if "\x00" in first:
        raise ValueError(f"{path} is not a text table: save it as CSV or Parquet")
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(_lines(path, encoding, compression), delimiter=delimiter, skipinitialspace=True)
    header = [name.strip() or f"column {i + 1}" for i, name in enumerate(next(reader))]
    refuse_duplicates(header)
    rows = 0
    for row in reader:
        if not row or (len(row) == 1 and not row[0].strip()):
            continue
        rows += 1
        if len(row) != len(header):
            raise ValueError(
                f"{path}, line {reader.line_num:,} has {len(row)} cells where the header has {len(header)}: "
                "mend that line, or quote cells that hold the separator"
            )
    if rows == 0:
        raise ValueError(f"{path} has a header but no rows: nothing to learn from")
    return delimiter, header
