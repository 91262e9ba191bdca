"""One column of a table: what it is, whether it is worth learning from, and its values as floats or texts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from equipoise._core.checks import FloatArray
from equipoise.datasets._parsing import (
    DAY_FIRST,
    DECIMAL_COMMA,
    date_form,
    is_missing_word,
    number_form,
    parse_dates,
    parse_numbers,
)

MISSING = "(missing)"
_MOSTLY = 0.9  # of the texts must be numbers (or dates) for the others to be stray
_NEAR_UNIQUE = 0.9  # a column with so many different values for its rows names the rows
_FEW_VALUES = 20  # so few different values are categories, even where most of them are numbers
_SENTENCE_WORDS = 3.0  # texts with so many words on average are prose
_SAMPLED = 1000
_ID_NAME = re.compile(
    r"(?i)(?:^|[_\s.-])(?:id|ids|no|nr|number|index|idx|key|uuid|guid|row|rowid)$|^unnamed\b|^$"
)
_CAMEL_ID = re.compile(r"[a-z](?:ID|Id)$")


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
        As in the header.
    kind : str
        ``"number"``, ``"category"``, ``"text"`` (prose, or texts that are nearly all different) or ``"date"``.
    dtype : str
        The dtype that it was read with.
    form : str
        How its texts are written where it matters: ``"decimal comma"`` or ``"day first"``.
    """

    name: str
    kind: str
    dtype: str
    form: str = ""


def infer_column(name: str, values: pd.Series[Any]) -> tuple[Column | None, Any, list[str]]:
    """The column (``None``: left out), its converted values, and sentences about it."""
    present = values.dropna() if values.hasnans else values
    if present.empty:
        return None, None, [f"Column {name!r} has no values: it was left out."]
    column = column_of(name, values)
    reason = _reason_to_leave_out(column, values, present)
    if reason:
        return None, None, [f"Column {name!r} {reason}: it was left out."]
    converted, notes = convert_values(column, values)
    return column, converted, notes + _remarks(column, present)


def column_of(name: str, values: pd.Series[Any]) -> Column:
    """What the column is, judged by its dtype and, for texts, by what most of them look like."""
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        kind, form = "date", ""
    elif (
        pd.api.types.is_numeric_dtype(values.dtype)
        or _is_duration(values)
        or pd.api.types.infer_dtype(values, skipna=True) == "boolean"
    ):
        kind, form = "number", ""
    else:
        kind, form = _kind_of_text(_as_text(values.dropna()))
    return Column(name, kind, str(values.dtype), form)


def convert_column(column: Column, values: pd.Series[Any]) -> Any:
    """A later table's column, read the same way; a column of another kind is refused."""
    converted, _ = convert_values(column, values)
    if column.kind in ("number", "date"):
        wrong = np.isnan(converted) & values.notna().to_numpy() & ~_infinite(values)
        wrong[wrong] = ~is_missing_word(_as_text(values[wrong])).to_numpy(dtype=bool)
        if wrong.sum() > 0.5 * values.notna().sum():
            raise ValueError(
                f"column {column.name!r} must hold {column.kind}s, got {values[wrong].iloc[0]!r}"
            )
    return converted


def _is_duration(values: pd.Series[Any]) -> bool:
    return bool(pd.api.types.is_timedelta64_dtype(values.dtype))


def _looks_like_id(name: str) -> bool:
    """Whether a column's name says that it names rows or persons: ``id``, ``customer_id``, ``orderNo`` …"""
    return bool(_ID_NAME.search(name) or _CAMEL_ID.search(name))


def _as_text(values: pd.Series[Any]) -> pd.Series[Any]:
    return values.astype(object).astype(str)


def _kind_of_text(text: pd.Series[Any]) -> tuple[str, str]:
    sample = text.iloc[:: max(1, len(text) // _SAMPLED)]
    form, share = number_form(sample)
    if share == 1.0 or (share >= _MOSTLY and text.nunique() > _FEW_VALUES):
        return "number", form
    form, share = date_form(sample)
    if share >= _MOSTLY and float(np.isfinite(parse_dates(sample, form)).mean()) >= _MOSTLY:
        return "date", form
    words = sample.str.count(r"\S+").mean()
    if words >= _SENTENCE_WORDS and text.nunique() > max(_FEW_VALUES, 0.1 * len(text)):
        return "text", ""
    return "category", ""


def _reason_to_leave_out(column: Column, values: pd.Series[Any], present: pd.Series[Any]) -> str:
    """Why a column cannot help: it is constant, or it only names its rows."""
    if len(present) == len(values) and len(values) > 1 and bool((present == present.iloc[0]).all()):
        return f"has the same value in every row ({present.iloc[0]!s:.40})"
    if len(present) < _NEAR_UNIQUE * len(values):
        return ""  # what names only some of the rows tells something by being there
    if column.kind == "category" and len(present) > 50:
        different = present.nunique()
        if different > max(50, _NEAR_UNIQUE * len(present)):
            return "has a different text in almost every row, as a name or number of the row has"
    if column.kind == "number" and len(present) > 20 and _names_rows(column.name, present):
        return "numbers the rows"
    return ""


def _names_rows(name: str, present: pd.Series[Any]) -> bool:
    """Whole numbers, all different, that count with few gaps, or whose name says that they are ids."""
    kind = present.dtype.kind
    if kind not in "iuf" or (
        kind == "f" and not ((present.iloc[:_SAMPLED] % 1 == 0).all() and (present % 1 == 0).all())
    ):
        return False
    counts_on = int(present.max()) - int(present.min()) < 1.1 * len(present)
    return (counts_on or _looks_like_id(name)) and bool(present.is_unique)


def convert_values(column: Column, values: pd.Series[Any]) -> tuple[Any, list[str]]:
    """Floats or texts, and sentences about what could not be read."""
    if _is_duration(values) and column.kind == "number":
        return values.dt.total_seconds().to_numpy(dtype=np.float64), []
    if column.kind in ("category", "text"):
        text = _as_text(values).str.strip()
        return text.where(values.notna(), MISSING).astype(object), []
    if column.kind == "date":
        seconds = parse_dates(values, column.form)
        return seconds, _stray_notes(column, values, seconds)
    if pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_bool_dtype(values.dtype):
        numbers = _floats(values)
    else:
        numbers = _numbers_of_objects(column, values)
    notes = _stray_notes(column, values, numbers) if values.dtype.kind not in "fiub" else []
    infinite = np.isinf(numbers)
    if infinite.any():
        numbers = np.where(infinite, np.nan, numbers).astype(numbers.dtype)
        notes.append(f"Infinite values in column {column.name!r} were read as missing ({infinite.sum():,}).")
    return numbers, notes


def _floats(values: pd.Series[Any]) -> Any:
    if values.dtype == np.float32 or values.dtype == np.float64:
        return values.to_numpy()
    return values.to_numpy(dtype=np.float64, na_value=np.nan)


def _numbers_of_objects(column: Column, values: pd.Series[Any]) -> FloatArray:
    """Numbers, booleans and texts in one column; texts are read in the column's form."""
    text = _as_text(values).where(values.notna(), np.nan)
    if column.form != DECIMAL_COMMA:
        simple = pd.to_numeric(text.replace({"True": "1", "False": "0"}), errors="coerce")
        numbers: FloatArray = simple.to_numpy(dtype=np.float64)
        left = np.isnan(numbers) & values.notna().to_numpy()
        if left.any():
            numbers = numbers.copy()
            numbers[left] = parse_numbers(text[left], column.form)
        return numbers
    return parse_numbers(text, column.form)


def _infinite(values: pd.Series[Any]) -> Any:
    if values.dtype.kind == "f":
        return np.isinf(values.to_numpy())
    return np.zeros(len(values), dtype=bool)


def _stray_notes(column: Column, values: pd.Series[Any], numbers: FloatArray) -> list[str]:
    stray = values[np.isnan(numbers) & values.notna().to_numpy()]
    if stray.empty:
        return []
    stray = _as_text(stray)
    stray = stray[~is_missing_word(stray)]
    if stray.empty:
        return []
    shown = ", ".join(repr(text[:40]) for text in stray.unique()[:3])
    what = "value" if len(stray) == 1 else "values"
    return [
        f"Column {column.name!r} holds {column.kind}s, but {len(stray):,} {what} could not be read as such "
        f"(for instance {shown}): they count as missing."
    ]


def _remarks(column: Column, present: pd.Series[Any]) -> list[str]:
    if column.form == DECIMAL_COMMA:
        return [
            f"Column {column.name!r} was read with a comma as the decimal sign, as in {present.iloc[0]!r}."
        ]
    if column.kind == "date":
        order = ", the day before the month" if column.form == DAY_FIRST else ""
        return [f"Column {column.name!r} holds dates{order}."]
    if not _looks_like_id(column.name) or column.kind == "text":
        return []
    different = int(present.nunique())
    if different < 10 or different > 0.5 * len(present):
        return []
    return [
        f"Column {column.name!r} has {different:,} different values in {len(present):,} rows. If it tells to whom "
        f"a row belongs, name it with --group, so that nobody's rows are in training and test at once."
    ]
