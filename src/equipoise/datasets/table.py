"""The table that walks from a file or an array through diagnosis and comparison to the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from equipoise._core.checks import FloatArray, IntArray, check_same_length
from equipoise.datasets._columns import Column, column_of, convert_values
from equipoise.datasets.labels import choose_positive, code_labels
from equipoise.datasets.schema import Schema, read_columns, refuse_duplicates, without_infinite


@dataclass(frozen=True, eq=False)
class DataTable:
    """Rows, class codes and what is known about them.

    Attributes
    ----------
    X : array or DataFrame
        A float array if all columns are numbers (``float32`` if no column is more precise than that, otherwise
        ``float64``), else a DataFrame of floats and texts. Missing numbers are NaN, missing texts
        ``"(missing)"``; dates are seconds since 1970.
    y : array of int
        Class codes. With two classes, 1 is the positive one.
    classes : tuple
        Labels by code.
    schema : Schema
        The columns of ``X``; it converts later rows to the same form.
    name, target : str
        What the table and the column with the labels are called.
    notes : tuple of str
        Sentences about what was left out, merged or read in a special way.
    image_shape : tuple of int, optional
        Height, width and channels where the columns are pixels.
    groups : array of int, optional
        A code for each row that is equal for rows that belong together (one patient, one customer).
    time : array, optional
        A number for each row that grows with time.
    ids : array, optional
        What a row is called; predictions carry it.
    row_values : mapping
        Columns kept for costs by row, such as an amount.
    class_totals : array of int, optional
        Where the rows are a sample: how many rows of each class there are in all.
    parts : Any
        Where the rows are a sample of files: what reads all of them, part by part.

    Examples
    --------
    >>> table = DataTable.from_arrays([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]], ["a", "b", "a"])
    >>> table.classes, table.y.tolist(), table.counts.tolist()
    (('a', 'b'), [0, 1, 0], [2, 1])
    >>> table.take([1, 2]).X.tolist()
    [[3.0, 4.0], [5.0, 7.0]]
    """

    X: Any
    y: IntArray
    classes: tuple[Any, ...]
    schema: Schema
    name: str = "table"
    target: str = "y"
    notes: tuple[str, ...] = ()
    image_shape: tuple[int, int, int] | None = None
    groups: IntArray | None = None
    time: FloatArray | None = None
    ids: npt.NDArray[Any] | None = None
    row_values: Mapping[str, FloatArray] = field(default_factory=dict)
    class_totals: IntArray | None = None
    parts: Any = None

    def __post_init__(self) -> None:
        named = {"groups": self.groups, "time": self.time, "ids": self.ids, **self.row_values}
        check_same_length(X=self.X, y=self.y, **{k: v for k, v in named.items() if v is not None})

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        counts = ", ".join(f"{c!r}: {n:,}" for c, n in zip(self.classes, self.counts, strict=True))
        return (
            f"DataTable({self.name!r}, {len(self):,} rows, {len(self.schema.columns)} columns, {{{counts}}})"
        )

    @cached_property
    def counts(self) -> IntArray:
        """Rows of each class, in all; also where these rows are a sample."""
        if self.class_totals is not None:
            return self.class_totals
        return np.bincount(self.y, minlength=self.n_classes)

    @property
    def n_rows(self) -> int:
        """How many rows there are in all; more than ``len`` where these are a sample."""
        return int(self.counts.sum())

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)

    @property
    def binary(self) -> bool:
        """Whether there are two classes."""
        return self.n_classes == 2

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each column: ``number``, ``category``, ``text`` or ``date``."""
        return self.schema.kinds

    @property
    def prior(self) -> FloatArray:
        """The share of each class."""
        return self.counts / self.n_rows

    @property
    def rare(self) -> int:
        """The code of the rarest class; of two equally rare ones the last."""
        return self.n_classes - 1 - int(self.counts[::-1].argmin())

    def label(self, code: int) -> str:
        """The label of a class for a sentence: in quotation marks, and cut after 60 characters.

        Parameters
        ----------
        code : int
            The class code.

        Returns
        -------
        str
            The label.
        """
        words = str(self.classes[code])
        return f"“{words if len(words) <= 60 else words[:59] + '…'}”"

    def rows(self, index: npt.ArrayLike) -> Any:
        """The rows of ``X`` named by ``index``, as an array or a DataFrame.

        Parameters
        ----------
        index : array
            Row numbers, or a mask.

        Returns
        -------
        array or DataFrame
            The rows.
        """
        chosen = np.asarray(index)
        return self.X.iloc[chosen] if isinstance(self.X, pd.DataFrame) else self.X[chosen]

    def take(self, index: npt.ArrayLike) -> DataTable:
        """The table with only the rows named by ``index`` (numbers or a mask), in their order.

        Parameters
        ----------
        index : array
            Row numbers, or a mask.

        Returns
        -------
        DataTable
            The table with only those rows.
        """
        chosen = np.asarray(index)
        if chosen.dtype == bool:
            chosen = np.flatnonzero(chosen)

        def part(values: Any) -> Any:
            return None if values is None else values[chosen]

        X = self.rows(chosen)
        return replace(
            self,
            X=X.reset_index(drop=True) if isinstance(X, pd.DataFrame) else X,
            y=self.y[chosen],
            groups=part(self.groups),
            time=part(self.time),
            ids=part(self.ids),
            row_values={name: values[chosen] for name, values in self.row_values.items()},
            class_totals=None,
        )

    def with_positive(self, positive: Any) -> DataTable:
        """The question "is it ``positive`` or not?" about the same rows.

        Parameters
        ----------
        positive : label
            The label to find.

        Returns
        -------
        DataTable
            The table with two classes: other, and ``positive``.
        """
        y, classes = choose_positive(self.y, self.classes, positive)
        return replace(self, y=y, classes=classes, class_totals=None)

    def with_notes(self, *notes: str) -> DataTable:
        """The table with more notes.

        Parameters
        ----------
        *notes : str
            Sentences to add.

        Returns
        -------
        DataTable
            The table with the notes.
        """
        return replace(self, notes=(*self.notes, *notes))

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        target: str | None,
        positive: Any = None,
        group: str | None = None,
        time: str | None = None,
        id: str | None = None,
        drop: Collection[str] = (),
        keep_values: Collection[str] = (),
        *,
        name: str = "table",
    ) -> DataTable:
        """Read a DataFrame whose column ``target`` has the labels.

        Parameters
        ----------
        frame : DataFrame
            One row for each thing to classify.
        target : str, optional
            The column with the labels. Rows without a label are left out.
        positive : label, optional
            The label to find. By default the rarer one of two; with many labels the question becomes
            "this one or another?".
        group, time, id : str, optional
            Columns that say which rows belong together, when a row was recorded, and what it is called. They
            are not learned from.
        drop : collection of str
            Other columns that must not be learned from.
        keep_values : collection of str
            Columns of numbers that costs by row need. They are learned from, too.
        name : str
            What to call the table.

        Returns
        -------
        DataTable
            The table.

        Raises
        ------
        ValueError
            If a named column is absent, if there are fewer than two labels, or if the target looks like a
            regression's.
        """
        frame = frame.set_axis([str(c) for c in frame.columns], axis=1)
        roles = Roles(target, positive, group, time, id, drop, keep_values)
        aside = roles.aside(list(frame.columns))
        return build_table(frame[[c for c in frame.columns if c not in aside]], frame, roles, name)

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: npt.ArrayLike,
        positive: Any = None,
        groups: npt.ArrayLike | None = None,
        time: npt.ArrayLike | None = None,
        names: Sequence[str] | None = None,
        *,
        name: str = "table",
        target: str = "y",
    ) -> DataTable:
        """Read rows and labels that are in memory.

        Parameters
        ----------
        X : array or DataFrame
            An array (all columns are kept), or a DataFrame, whose columns are read as :meth:`from_frame` does.
        y : array
            One label per row.
        positive : label, optional
            As in :meth:`from_frame`.
        groups, time : array, optional
            One value per row, equal for rows that belong together; one value per row that grows with time.
        names : sequence of str, optional
            Names of an array's columns.
        name, target : str
            What to call the table and its labels.

        Returns
        -------
        DataTable
            The table.
        """
        if hasattr(X, "toarray"):
            raise TypeError("X must be dense, got a sparse matrix: use X.toarray() if it fits into memory")
        check_same_length(X=X, y=y)
        if isinstance(X, pd.DataFrame):
            schema, rows, notes = read_columns(X.set_axis([str(c) for c in X.columns], axis=1))
        else:
            schema, rows, notes = _read_array(X, names)
        codes, classes, more = code_labels(np.ravel(np.asarray(y)), target, positive)
        when = None if time is None else pd.Series(np.asarray(time))
        return cls(
            rows, codes, classes, schema, name, target, tuple(notes + more),
            groups=None if groups is None else _group_codes(pd.Series(np.asarray(groups))),
            time=None if when is None else number_in_every_row("time", when, "a date or a number"),
        )  # fmt: skip


@dataclass(frozen=True)
class Roles:
    """What columns are for that are not learned from, as :func:`~equipoise.datasets.read_table` takes them."""

    target: str | None
    positive: Any = None
    group: str | None = None
    time: str | None = None
    id: str | None = None
    drop: Collection[str] = ()
    keep_values: Collection[str] = ()

    def aside(self, names: list[str]) -> set[str]:
        """The columns that are not learned from, after a check that all that were named exist."""
        refuse_duplicates(names)
        if self.target is None:
            raise ValueError(f"name the column to predict with --target; there are {listed(names)}")
        special = [c for c in (self.target, self.group, self.time, self.id) if c is not None]
        for column in (*special, *self.drop, *self.keep_values):
            if column not in names:
                raise ValueError(f"there is no column {column!r}; there are {listed(names)}")
        if self.target in (self.group, self.time, self.id, *self.drop):
            raise ValueError(
                f"the target {self.target!r} cannot be a group, a time, an id or dropped as well"
            )
        aside = {*special, *self.drop}
        if aside >= set(names):
            raise ValueError(f"there is no column besides {listed(sorted(aside))}: nothing to learn from")
        return aside


def build_table(
    features: pd.DataFrame,
    aside: pd.DataFrame,
    roles: Roles,
    name: str,
    block: npt.NDArray[Any] | None = None,
) -> DataTable:
    """A table from the columns to learn from and those that stand aside (see :func:`read_columns`)."""
    target, group, time, id = str(roles.target), roles.group, roles.time, roles.id
    if aside.empty:
        raise ValueError(f"{name} has a header but no rows: nothing to learn from")
    notes: list[str] = []
    complete = np.ones(len(aside), dtype=bool)
    for column in [c for c in (target, time) if c is not None]:
        empty = aside[column].isna().to_numpy()
        complete &= ~empty
        if empty.any():
            notes.append(f"{int(empty.sum()):,} rows have no value in {column!r}: they were left out.")
    if not complete.all():
        features, aside, block = features[complete], aside[complete].reset_index(drop=True), None
        if aside.empty:
            raise ValueError(f"no row of {name} has a value in {target!r}: nothing to learn from")
    codes, classes, merged = code_labels(aside[target].to_numpy(), target, roles.positive)
    schema, X, more = read_columns(features.reset_index(drop=True), block)
    return DataTable(
        X, codes, classes, schema, name, target, tuple(notes + merged + more),
        groups=None if group is None else _group_codes(aside[group]),
        time=None if time is None else number_in_every_row(time, aside[time], "a date or a number"),
        ids=None if id is None else aside[id].to_numpy(),
        row_values={c: number_in_every_row(c, aside[c], "a number") for c in roles.keep_values},
    )  # fmt: skip


def listed(names: Any, most: int = 12) -> str:
    """Names in quotation marks, the first few of many."""
    every = [repr(str(name)) for name in names]
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")


def _read_array(X: Any, names: Sequence[str] | None) -> tuple[Schema, Any, list[str]]:
    array = np.asarray(X)
    array = array.reshape(len(array), -1)
    columns = [f"column {i}" for i in range(array.shape[1])] if names is None else [str(n) for n in names]
    if len(columns) != array.shape[1]:
        raise ValueError(f"names must name all {array.shape[1]} columns, got {len(columns)}")
    refuse_duplicates(columns)
    if array.dtype.kind not in "fiub":
        return read_columns(pd.DataFrame(array, columns=columns).infer_objects())
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    finite, infinite = without_infinite(array.astype(dtype, copy=False))
    notes = [f"{infinite:,} infinite values were read as missing."] if infinite else []
    return Schema.of_numbers(columns, np.dtype(dtype).name), finite, notes


def _group_codes(values: pd.Series[Any]) -> IntArray:
    """Codes of groups; a row without a group is a group of its own."""
    codes, known = pd.factorize(values)
    alone = codes < 0
    codes[alone] = len(known) + np.arange(alone.sum())
    return codes.astype(np.int64)


def number_in_every_row(
    column: str, values: pd.Series[Any], what: str, read_as: Column | None = None
) -> FloatArray:
    """Numbers (or dates, as seconds, if ``what`` says so), none of them missing; written as in ``read_as``."""
    if values.notna().any():
        found = read_as or column_of(column, values)
        numbers = convert_values(found, values)[0] if found.kind in what else np.full(len(values), np.nan)
    else:
        numbers = np.full(len(values), np.nan)
    bad = ~np.isfinite(np.asarray(numbers, dtype=np.float64))
    if bad.any():
        place = int(bad.argmax())
        shown = values.iloc[place]
        shown = shown.item() if isinstance(shown, np.generic) else shown
        raise ValueError(
            f"column {column!r} must hold {what} in every row, got {shown!r} in row {place + 1:,}"
        )
    return np.asarray(numbers, dtype=np.float64)
