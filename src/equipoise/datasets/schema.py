"""What the columns of a table are, so that a later table can be read the same way or refused by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

DATE_PATTERN = r"^\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})([T ].*)?$"
IDENTIFIER_SHARE = 0.9  # a text column with so many different values for its rows names the rows
MANY_CATEGORIES = 1000
SECONDS_A_DAY = 86400.0


@dataclass(frozen=True)
class Column:
    """A column's name, its kind (``number``, ``category`` or ``date``) and the dtype it was read with."""

    name: str
    kind: str
    dtype: str


@dataclass(frozen=True)
class Schema:
    """The columns that a model takes.

    >>> table = pd.DataFrame({"age": [31, 40], "town": ["Ulm", "Bonn"], "gap": [None, None]})
    >>> schema, notes = Schema.infer(table)
    >>> [(c.name, c.kind) for c in schema.columns]
    [('age', 'number'), ('town', 'category')]
    >>> notes
    ["Column 'gap' has no values: it was left out."]
    >>> schema.apply(pd.DataFrame({"town": ["Ulm"]}))
    Traceback (most recent call last):
    ...
    ValueError: the table does not fit the model: it lacks the column 'age'
    """

    columns: tuple[Column, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds after :meth:`apply`, which turns dates into numbers."""
        return tuple("category" if c.kind == "category" else "number" for c in self.columns)

    @classmethod
    def infer(cls, frame: pd.DataFrame) -> tuple[Schema, list[str]]:
        """Kinds of all columns, and sentences about those that were left out or need a look."""
        refuse_duplicates([str(c) for c in frame.columns])
        columns: list[Column] = []
        notes: list[str] = []
        for name in frame.columns:
            kind, note = _kind(str(name), frame[name])
            if note:
                notes.append(note)
            if kind:
                columns.append(Column(str(name), kind, str(frame[name].dtype)))
        if not columns:
            raise ValueError(
                "no column is left to learn from: " + (" ".join(notes) or "the table has only the target")
            )
        return cls(tuple(columns)), notes

    def apply(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The columns in order, as floats and texts; a table that does not fit is refused, naming what
        does not.
        """
        named = frame.rename(columns=str)
        refuse_duplicates(list(named.columns))
        missing = [c.name for c in self.columns if c.name not in named.columns]
        if missing:
            what = "column" if len(missing) == 1 else "columns"
            raise ValueError(
                f"the table does not fit the model: it lacks the {what} {', '.join(map(repr, missing[:10]))}"
                + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
            )
        return pd.DataFrame({c.name: _convert(c, named[c.name]) for c in self.columns}, index=frame.index)

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Columns that the model does not use."""
        known = {c.name for c in self.columns}
        return [name for name in names if name not in known]

    def to_json(self) -> list[dict[str, str]]:
        return [{"name": c.name, "kind": c.kind, "dtype": c.dtype} for c in self.columns]

    @classmethod
    def from_json(cls, saved: list[Mapping[str, str]]) -> Schema:
        return cls(tuple(Column(c["name"], c["kind"], c["dtype"]) for c in saved))


def refuse_duplicates(names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(
            f"column names must differ, got {', '.join(map(repr, twice))} more than once: rename or "
            f"remove them"
        )


def _kind(name: str, values: pd.Series[Any]) -> tuple[str, str]:
    present = values.dropna()
    if present.empty:
        return "", f"Column {name!r} has no values: it was left out."
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return "date", _date_note(name)
    if pd.api.types.is_bool_dtype(values.dtype) or pd.api.types.is_numeric_dtype(values.dtype):
        return "number", ""
    text = present.astype(str)
    sample = text.iloc[:: max(1, len(text) // 500)]
    if sample.str.match(DATE_PATTERN).mean() > 0.95:
        return "date", _date_note(name)
    if (
        pd.to_numeric(sample, errors="coerce").notna().all()
        and pd.to_numeric(text, errors="coerce").notna().all()
    ):
        return "number", ""
    different = text.nunique()
    if different > 50 and different > IDENTIFIER_SHARE * len(text):
        return "", (
            f"Column {name!r} has a different text in almost every row, as a name or number of the row has: "
            "it was left out."
        )
    if different > MANY_CATEGORIES:
        return "category", (
            f"Column {name!r} has {different:,} categories; each is encoded by the class shares seen with "
            f"it. "
            "If it identifies a person or an event rather than a kind, remove it."
        )
    return "category", ""


def _date_note(name: str) -> str:
    return (
        f"Column {name!r} holds dates, read as days since 1970. If the weekday, the month or the time "
        f"since an "
        "event matters, add that as a column; if later rows are to be predicted from earlier ones, do not "
        "trust shuffled folds."
    )


def _convert(column: Column, values: pd.Series[Any]) -> pd.Series[Any]:
    if column.kind == "category":
        return (
            values.astype(object).where(values.isna(), values.astype(str)).where(values.notna(), "(missing)")
        )
    if column.kind == "date":
        dates = pd.to_datetime(values, errors="coerce", utc=True, format="mixed")
        _refuse(column, values, dates.isna(), "dates")
        epoch = pd.Timestamp(0, tz="UTC")
        return (dates - epoch).dt.total_seconds() / SECONDS_A_DAY
    numbers = pd.to_numeric(values, errors="coerce").astype(np.float64)
    _refuse(column, values, numbers.isna(), "numbers")
    return numbers.where(np.isfinite(numbers), np.nan)


def _refuse(column: Column, values: pd.Series[Any], failed: pd.Series[bool], what: str) -> None:
    wrong = failed & values.notna()
    if wrong.any():
        raise ValueError(f"column {column.name!r} must hold {what}, got {values[wrong].iloc[0]!r}")
