"""Tables as text: the separator, the encoding, and rows that do not fit the header."""

from __future__ import annotations

import csv
import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from equipoise._core.memory import refuse_if_too_large
from equipoise.datasets.schema import refuse_duplicates

_DELIMITERS = ",;\t|"
_FIRST_ROWS = 200
_GAPS = [
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
]  # fmt: skip


def read_csv(path: Path, encoding: str = "utf-8", target: str | None = None) -> pd.DataFrame:
    """A table whose first line names the columns.

    Parameters
    ----------
    path
        The file, perhaps gzipped; cells are separated by a comma, semicolon, tab or bar.
    encoding
        Of the text; UTF-16 is recognized.
    target
        The column with the labels, where the word "None" is a label and no gap.
    """
    with path.open("rb") as file:
        start = file.read(2)
    compression: Literal["gzip"] | None = "gzip" if start == b"\x1f\x8b" else None
    if start in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    elif encoding.lower().replace("-", "") == "utf8":
        encoding = "utf-8-sig"
    refuse_if_too_large(path, path.stat().st_size // 2)  # a number takes about as much as its digits
    try:
        return _parse(path, encoding, compression, target)
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
    except (csv.Error, EOFError, OSError) as error:
        raise ValueError(f"{path} is not a readable table: {str(error).splitlines()[0]}") from error


def _parse(
    path: Path, encoding: str, compression: Literal["gzip"] | None, target: str | None
) -> pd.DataFrame:
    delimiter, header = _read_header(path, encoding, compression)

    def check(most: int | None = None) -> None:
        _check_rows(path, _lines(path, encoding, compression), delimiter, len(header), most)

    check(_FIRST_ROWS)
    settings: dict[str, Any] = {}
    if target in header:
        gaps = {name: [gap for gap in _GAPS if name != target or gap != "None"] for name in header}
        settings = {"na_values": gaps, "keep_default_na": False}
    try:
        frame = pd.read_csv(
            path, sep=delimiter, encoding=encoding, compression=compression, names=header, header=0,
            index_col=False, low_memory=False, skipinitialspace=True, **settings,
        )  # fmt: skip
    except pd.errors.ParserError as error:
        check()  # finds the row and says it better
        raise ValueError(f"{path} is not a readable table: {str(error).splitlines()[0]}") from error
    if frame.empty:
        raise ValueError(f"{path} has a header but no rows: nothing to learn from")
    if len(header) > 1 and frame[header[-1]].isna().any():
        check()  # a row that is too short ends in empty cells
    return frame


def _lines(path: Path, encoding: str, compression: str | None) -> Iterator[str]:
    if compression:
        with gzip.open(path, "rt", encoding=encoding, newline="") as file:
            yield from file
    else:
        with path.open(encoding=encoding, newline="") as file:
            yield from file


def _read_header(path: Path, encoding: str, compression: str | None) -> tuple[str, list[str]]:
    first = next(_lines(path, encoding, compression), "")
    if not first.strip():
        raise ValueError(f"{path} has an empty first line: the first line must name the columns")
    if "\x00" in first:
        raise ValueError(f"{path} is not a text table: save it as CSV or Parquet")
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(_lines(path, encoding, compression), delimiter=delimiter, skipinitialspace=True)
    header = [name.strip() or f"column {i + 1}" for i, name in enumerate(next(reader))]
    refuse_duplicates(header)
    return delimiter, header


def _check_rows(path: Path, lines: Iterator[str], delimiter: str, cells: int, most: int | None) -> None:
    """Refuse the first row, of ``most``, with more or fewer cells than the header has."""
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    for row in itertools.islice(reader, most):
        if len(row) != cells and row and (len(row) > 1 or row[0].strip()):
            raise ValueError(
                f"{path}, line {reader.line_num:,} has {len(row)} cells where the header has {cells}: "
                "mend that line, or quote cells that hold the separator"
            )
