"""What a question sees and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from equipoise._core.checks import FloatArray, IntArray
from equipoise._core.random import as_generator, derive_seed
from equipoise.datasets.table import DataTable

if TYPE_CHECKING:
    from equipoise.report import Block

_MOST_CATEGORIES = 10


@dataclass(frozen=True)
class Answer:
    """What a question computes: a verdict and numbers. The words and pictures are made by the renderer.

    Attributes
    ----------
    level : {"good", "note", "warning"}
        How much it should worry.
    values : mapping
        The numbers that a reader of the JSON gets.
    shown : mapping
        What only the pictures and tables need.
    """

    level: str
    values: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """An answer with its sentence and its pictures.

    Attributes
    ----------
    slug : str
        The short name of the question, out of :func:`~equipoise.diagnosis.question_names`.
    question : str
        The question in words.
    answer : str
        The answer in words.
    level : {"good", "note", "warning"}
        How much it should worry.
    values : mapping
        The numbers behind the answer.
    blocks : sequence of Block
        Figures and tables for a report.
    """

    slug: str
    question: str
    answer: str
    level: str
    values: Mapping[str, Any] = field(default_factory=dict)
    blocks: Sequence[Block] = ()


@dataclass(frozen=True)
class Sample:
    """The table to ask about, and the seed that every question draws its own stream from.

    Attributes
    ----------
    table : DataTable
        The table to ask about.
    seed : int
        The seed of all questions together.
    """

    table: DataTable
    seed: int = 0

    @property
    def X(self) -> Any:
        """The rows: an array or a DataFrame."""
        return self.table.X

    @property
    def y(self) -> IntArray:
        """The class code of each row."""
        return self.table.y

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels, in the order of their codes."""
        return self.table.classes

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.table.schema.names

    @property
    def counts(self) -> IntArray:
        """The number of rows of each class."""
        return self.table.counts

    @property
    def rare(self) -> int:
        """The code of the rarest class."""
        return self.table.rare

    def label(self, code: int) -> str:
        """The label of a class, in quotation marks.

        Parameters
        ----------
        code : int
            The class code.

        Returns
        -------
        str
            The label.
        """
        return self.table.label(code)

    def random(self, name: str) -> np.random.Generator:
        """A stream of random numbers of a question's own, the same for the same seed and name.

        Parameters
        ----------
        name : str
            The name of the stream.

        Returns
        -------
        numpy.random.Generator
            The stream.
        """
        return as_generator(derive_seed(self.seed, name))

    def rows(self, most: int, name: str = "rows", least: int = 0) -> IntArray:
        """At most ``most`` row numbers, stratified, with at least ``least`` of each class where it has them.

        Parameters
        ----------
        most : int
            How many rows to take about.
        name : str
            The name of the random stream that draws them.
        least : int
            How many rows of each class to take at least, where it has them.

        Returns
        -------
        array of int
            The row numbers, sorted.
        """
        if len(self.y) <= most:
            return np.arange(len(self.y))
        rng = self.random(name)
        keep = []
        for code, count in enumerate(self.counts):
            share = max(round(most * int(count) / self.table.n_rows), min(least, int(count)), 1)
            rows = np.flatnonzero(self.y == code)
            keep.append(rng.choice(rows, min(share, len(rows)), replace=False))
        return np.sort(np.concatenate(keep))

    def encoded(self, rows: IntArray) -> FloatArray:
        """Those rows as numbers on one scale: median for missing, one-hot for the commonest categories.

        Parameters
        ----------
        rows : array of int
            The row numbers.

        Returns
        -------
        array of shape (rows, features)
            The numbers.
        """
        part = self.table.rows(rows)
        if not isinstance(part, pd.DataFrame):
            return standardize(np.asarray(part, dtype=np.float64))
        columns: list[FloatArray] = []
        for name, kind in zip(self.names, self.table.kinds, strict=True):
            values = part[name]
            if kind in ("number", "date"):
                columns.append(standardize(values.to_numpy(dtype=np.float64)[:, None]))
            else:
                common = values.value_counts().index[:_MOST_CATEGORIES]
                columns.append((values.to_numpy()[:, None] == common.to_numpy()[None]) / np.sqrt(2.0))
        return np.concatenate(columns, axis=1)


def standardize(X: FloatArray) -> FloatArray:
    """Columns with mean 0 and deviation 1; the median where a value is missing; constants become 0."""
    X = np.where(np.isfinite(X), X, np.nan)
    if np.isnan(X).any():
        empty = np.isnan(X).all(axis=0)
        medians = np.zeros(X.shape[1])
        medians[~empty] = np.nanmedian(X[:, ~empty], axis=0)
        X = np.where(np.isnan(X), medians, X)
    center, spread = X.mean(axis=0), X.std(axis=0)
    return (X - center) / np.where(spread > 0, spread, 1.0)
