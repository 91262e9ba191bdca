"""Mixed tables as numbers and back: every sampler works in numbers, every user gets their own columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from equipoise._core.checks import FloatArray


@dataclass(frozen=True)
class _Column:
    """How one column became numbers: ``kind`` is number, integer, boolean, time or category."""

    name: Any
    dtype: Any
    kind: str
    low: float = 0.0
    high: float = 0.0
    categories: tuple[Any, ...] = ()

    @property
    def width(self) -> int:
        return len(self.categories) if self.kind == "category" else 1


class TableCodec:
    """Encode a mixed pandas table as floats, and decode floats back to its columns, categories and dtypes.

    Numbers stay as they are; booleans become 0 and 1; times become seconds; categories (and strings) become one
    column each, scaled so that a change of category is as far as one median standard deviation of the numbers
    (the choice of SMOTE-NC). Decoding rounds integers into their observed range and takes the largest category.

    Parameters
    ----------
    table : DataFrame
        The table whose columns, categories and types are kept.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [30, 41], "city": pd.Categorical(["Bern", "Oslo"])})
    >>> codec = TableCodec(table)
    >>> codec.decode(codec.encode(table)).equals(table)
    True
    """

    def __init__(self, table: pd.DataFrame) -> None:
        if table.columns.duplicated().any():
            name = table.columns[table.columns.duplicated()][0]
            raise ValueError(f"column names must differ, got {name!r} twice")
        self._columns = [_describe(table[name]) for name in table.columns]
        numbers = [float(_as_floats(table[c.name], c).std()) for c in self._columns if c.kind != "category"]
        spread = float(np.median(numbers)) if numbers else 1.0
        self._category_scale = (spread or 1.0) / np.sqrt(2)

    def encode(self, table: pd.DataFrame) -> FloatArray:
        """The table's rows as numbers.

        Parameters
        ----------
        table : DataFrame
            A table with the columns of the first one.

        Returns
        -------
        array of shape (rows, n_encoded)
            The numbers.
        """
        parts = [self._encode_column(table[column.name], column) for column in self._columns]
        return np.concatenate(parts, axis=1)

    def _encode_column(self, values: pd.Series[Any], column: _Column) -> FloatArray:
        if column.kind != "category":
            return _as_floats(values, column)[:, None]
        codes = pd.Categorical(values, categories=list(column.categories)).codes
        return np.eye(column.width)[codes] * self._category_scale

    def decode(self, rows: FloatArray) -> pd.DataFrame:
        """Numbers as rows of a table with the columns, categories and types of the first one.

        Parameters
        ----------
        rows : array of shape (rows, n_encoded)
            The numbers.

        Returns
        -------
        DataFrame
            The table.
        """
        decoded, start = {}, 0
        for column in self._columns:
            block = rows[:, start : start + column.width]
            decoded[column.name] = _decode_column(block, column)
            start += column.width
        return pd.DataFrame(decoded, columns=[column.name for column in self._columns])


def _describe(values: pd.Series[Any]) -> _Column:
    name, dtype = values.name, values.dtype
    if values.isna().any():
        raise ValueError(f"column {name!r} has missing values (NaN): impute or drop them before oversampling")
    if types.is_bool_dtype(dtype):
        return _Column(name, dtype, "boolean")
    if types.is_datetime64_any_dtype(dtype):
        return _Column(name, dtype, "time")
    if types.is_numeric_dtype(dtype) and not isinstance(dtype, pd.CategoricalDtype):
        numbers = values.to_numpy(dtype=np.float64)
        if not np.isfinite(numbers).all():
            raise ValueError(f"column {name!r} must be finite, got inf")
        kind = "integer" if types.is_integer_dtype(dtype) else "number"
        low, high = (float(numbers.min()), float(numbers.max())) if numbers.size else (0.0, 0.0)
        return _Column(name, dtype, kind, low, high)
    if isinstance(dtype, pd.CategoricalDtype):
        present = [category for category in dtype.categories if (values == category).any()]
    else:
        present = list(dict.fromkeys(values))
    return _Column(name, dtype, "category", categories=tuple(present))


def _as_floats(values: pd.Series[Any], column: _Column) -> FloatArray:
    if column.kind == "time":
        return pd.DatetimeIndex(values).as_unit("ns").asi8.astype(np.float64) / 1e9
    return values.to_numpy(dtype=np.float64)


def _decode_column(block: FloatArray, column: _Column) -> pd.Series[Any]:
    if column.kind == "category":
        winners = [column.categories[code] for code in block.argmax(axis=1)]
        return pd.Series(winners, dtype=column.dtype)
    numbers = block[:, 0]
    if column.kind == "boolean":
        return pd.Series(numbers > 0.5, dtype=column.dtype)
    if column.kind == "integer":
        return pd.Series(np.clip(np.rint(numbers), column.low, column.high)).astype(column.dtype)
    if column.kind == "time":
        zone = getattr(column.dtype, "tz", None)
        index = pd.to_datetime((numbers * 1e9).round().astype(np.int64), utc=zone is not None)
        return pd.Series(index.tz_convert(zone) if zone is not None else index).astype(column.dtype)
    return pd.Series(numbers).astype(column.dtype)
