"""What the columns of a table are, so that a later table can be read the same way or refused by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from equipoise.datasets._columns import MISSING, Column, convert_column, infer_column

__all__ = ["KINDS", "MISSING", "Column", "Schema", "read_columns", "refuse_duplicates"]

KINDS = ("number", "category", "text", "date")
_EXACT_IN_FLOAT32 = frozenset(["float32", "float16", "bool", "int8", "uint8", "int16", "uint16"])


@dataclass(frozen=True)
class Schema:
    """The columns that a model takes.

    Attributes
    ----------
    columns : tuple of Column
        The columns, in their order.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [31, 40], "town": ["Ulm", "Bonn"], "gap": [None, None]})
    >>> schema, rows, notes = read_columns(table)
    >>> [(c.name, c.kind) for c in schema.columns]
    [('age', 'number'), ('town', 'category')]
    >>> notes
    ["Column 'gap' has no values: it was left out."]
    >>> schema.convert(pd.DataFrame({"town": ["Ulm"]}))
    Traceback (most recent call last):
    ...
    ValueError: the table does not fit the model: it lacks the column 'age'
    """

    columns: tuple[Column, ...]

    @classmethod
    def of_numbers(cls, names: Iterable[str], dtype: str = "float64") -> Schema:
        """A schema for columns that are all numbers.

        Parameters
        ----------
        names : iterable of str
            The names of the columns.
        dtype : str
            Their type.

        Returns
        -------
        Schema
            The schema.
        """
        return cls(tuple(Column(str(name), "number", dtype) for name in names))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each column: ``number``, ``category``, ``text`` or ``date``."""
        return tuple(c.kind for c in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(c.name for c in self.columns)

    @property
    def all_numbers(self) -> bool:
        """Whether rows are a float array rather than a DataFrame."""
        return set(self.kinds) <= {"number"}

    @property
    def float_type(self) -> Any:
        """``float32`` where all columns are at most that precise and at least one is; otherwise ``float64``."""
        types = {c.dtype for c in self.columns}
        return np.float32 if "float32" in types and types <= _EXACT_IN_FLOAT32 else np.float64

    def convert(self, rows: pd.DataFrame | npt.ArrayLike) -> Any:
        """Later rows in the same form as those the schema was made from.

        Parameters
        ----------
        rows : DataFrame or array
            A table with at least these columns, in any order, or an array with as many columns.

        Returns
        -------
        array or DataFrame
            A float array if all columns are numbers, otherwise a DataFrame of floats and texts.

        Raises
        ------
        ValueError
            If a column is missing or is of another kind; the message names it.
        """
        if not isinstance(rows, pd.DataFrame):
            return self._convert_array(rows)
        named = rows.set_axis([str(name) for name in rows.columns], axis=1)
        refuse_duplicates(list(named.columns))
        missing = [name for name in self.names if name not in named.columns]
        if missing:
            what = "column" if len(missing) == 1 else "columns"
            raise ValueError(
                f"the table does not fit the model: it lacks the {what} {', '.join(map(repr, missing[:10]))}"
                + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
            )
        return _assemble(self, [convert_column(c, named[c.name]) for c in self.columns])

    def _convert_array(self, rows: npt.ArrayLike) -> Any:
        array = np.asarray(rows)
        array = array.reshape(len(array), -1)
        if array.shape[1] != len(self.columns):
            raise ValueError(
                f"the table does not fit the model: it has {array.shape[1]} columns, the model "
                f"{len(self.columns)}"
            )
        if self.all_numbers and array.dtype.kind in "fiub":
            return without_infinite(array.astype(self.float_type, copy=False))[0]
        return self.convert(pd.DataFrame(array, columns=list(self.names)).infer_objects())

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Columns that the model does not use.

        Parameters
        ----------
        names : iterable of str
            Names of columns.

        Returns
        -------
        list of str
            Those that the schema does not have.
        """
        known = set(self.names)
        return [name for name in names if name not in known]

    def to_json(self) -> list[dict[str, str]]:
        """Plain values for a file.

        Returns
        -------
        list of dict
            The fields of each column.
        """
        return [asdict(c) for c in self.columns]

    @classmethod
    def from_json(cls, saved: Iterable[Mapping[str, str]]) -> Schema:
        """The schema that :meth:`to_json` wrote.

        Parameters
        ----------
        saved : iterable of mapping
            The fields of each column.

        Returns
        -------
        Schema
            The schema.
        """
        return cls(tuple(Column(**dict(c)) for c in saved))


def read_columns(frame: pd.DataFrame, block: npt.NDArray[Any] | None = None) -> tuple[Schema, Any, list[str]]:
    """Infer what the columns are and convert them.

    Parameters
    ----------
    frame
        Columns to learn from.
    block
        The array that ``frame`` is a view of, if there is one that may be changed: its columns are then
        not copied.

    Returns
    -------
    schema, rows, notes
        The columns kept, their values (a float array, or a DataFrame of floats and texts), and sentences about
        columns that were left out or need a look.
    """
    refuse_duplicates([str(c) for c in frame.columns])
    columns: list[Column] = []
    values: list[Any] = []
    places: list[int] = []
    notes: list[str] = []
    for place, name in enumerate(frame.columns):
        column, converted, more = infer_column(str(name), frame[name])
        notes += more
        if column is not None:
            columns.append(column)
            values.append(converted)
            places.append(place)
    if not columns:
        raise ValueError(
            "no column is left to learn from: " + (" ".join(notes) or "the table has only the target")
        )
    schema = Schema(tuple(columns))
    if block is not None and schema.all_numbers:
        for new, (old, column_values) in enumerate(zip(places, values, strict=True)):
            if new != old or not np.may_share_memory(column_values, block):
                block[:, new] = column_values
        return schema, block[:, : len(places)], notes
    return schema, _assemble(schema, values), notes


def without_infinite(array: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], int]:
    """Infinite values as missing, and how many there were; the array itself if there are none."""
    step = 1 << 16
    count = sum(int(np.isinf(array[i : i + step]).sum()) for i in range(0, len(array), step))
    return (np.where(np.isinf(array), np.nan, array) if count else array), count


def refuse_duplicates(names: list[str]) -> None:
    """Refuse column names that occur twice."""
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(
            f"column names must differ, got {', '.join(map(repr, twice))} more than once: rename or remove them"
        )


def _assemble(schema: Schema, values: list[Any]) -> Any:
    if not schema.all_numbers:
        columns = {
            name: pd.Series(v).reset_index(drop=True) for name, v in zip(schema.names, values, strict=True)
        }
        return pd.DataFrame(columns)
    columns_first = np.empty((len(values), len(values[0])), dtype=schema.float_type)
    for row, column in zip(columns_first, values, strict=True):
        row[:] = column
    return columns_first.T
