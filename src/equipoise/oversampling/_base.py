"""The sampler that every method of this room shares: strategy, tables, provenance, gate."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from imblearn.over_sampling.base import BaseOverSampler
from imblearn.utils import check_target_type
from scipy import sparse
from sklearn.preprocessing import label_binarize
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from equipoise._core.checks import FloatArray, IntArray, check_choice, check_one_shape, check_same_length
from equipoise._core.random import RandomState, as_generator
from equipoise.oversampling._codec import TableCodec
from equipoise.oversampling._strategy import Strategy, resolve_strategy
from equipoise.oversampling.gate import pass_gate
from equipoise.oversampling.provenance import Provenance, Synthetic, inherit_numbers, inherit_rows


@dataclass(frozen=True)
class Preflight:
    """What a call of ``fit_resample`` would make, before it makes it.

    Attributes
    ----------
    new_rows : dict
        How many rows of each class would be made.
    total_rows : int
        How many rows there would be in all.
    bytes : int
        About how much memory they would take.
    """

    new_rows: dict[Any, int]
    total_rows: int
    bytes: int

    def __str__(self) -> str:
        made = ", ".join(f"{count} of class {label}" for label, count in self.new_rows.items()) or "none"
        return f"{made}; {self.total_rows} rows in all, about {self.bytes / 2**20:.1f} MiB"


@dataclass(kw_only=True, repr=False, eq=False)
class ProvenanceSampler(BaseOverSampler):
    """An over-sampler that knows where each row came from and whether it is any good.

    A subclass implements ``_synthesize(X, codes, wanted, rng)``. After ``fit_resample`` there are

    - ``provenance_``: which rows are synthetic, their parents and mixing weights;
    - ``quality_``: a table with density, coverage and copy distance per class;
    - ``sample_weight_`` and ``extra_``: what was passed along with the rows, continued for the new ones.

    Parameters
    ----------
    sampling_strategy : str, float, dict or callable
        How many rows to make of which class, as in imbalanced-learn; ``"theory"`` asks
        :mod:`equipoise.theory.anomaly` for the best share of the rare class of two.
    on_low_quality : {"warn", "raise", "skip"}
        What to do with a class whose made rows are no good: keep them and warn, raise
        :class:`LowQualityError`, or leave them out and warn.
    random_state : int, generator or None
        The source of all randomness.
    """

    sampling_strategy: Strategy = "auto"
    on_low_quality: str = "warn"
    random_state: RandomState = None

    # imbalanced-learn would check the strategy's type here; resolve_strategy does, and knows "theory".
    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def fit(self, X: Any, y: Any, **params: Any) -> ProvenanceSampler:
        """Check the input and resolve the strategy; ``fit_resample`` is what makes rows.

        Parameters
        ----------
        X : array or DataFrame of shape (rows, columns)
            The rows.
        y : array of shape (rows,)
            Their labels.
        **params : Any
            Not used; there for scikit-learn.

        Returns
        -------
        ProvenanceSampler
            The sampler itself.
        """
        rows, labels, _, _ = self._read(X, y)
        self.sampling_strategy_ = self._wanted_rows(rows, labels)
        return self

    def preflight(self, X: Any, y: Any) -> Preflight:
        """How many rows of each class would be made, and about how much memory the result takes.

        Parameters
        ----------
        X : array or DataFrame of shape (rows, columns)
            The rows.
        y : array of shape (rows,)
            Their labels.

        Returns
        -------
        Preflight
            The numbers.
        """
        rows, labels, _, _ = self._read(X, y)
        wanted = self._wanted_rows(rows, labels)
        total = len(rows) + sum(wanted.values())
        return Preflight(wanted, total, total * (rows.shape[1] + 2) * 8)

    def fit_resample(
        self, X: Any, y: Any, *, sample_weight: Any = None, extra: Any = None
    ) -> tuple[Any, Any]:
        """Return the input's rows (but those that a cleaning method leaves out), then the synthetic ones.

        Parameters
        ----------
        X : array or pandas table of shape (n_samples, n_features)
            Mixed types are allowed in a table and come back as they were.
        y : array of shape (rows,)
            Labels of any type.
        sample_weight : array of shape (rows,), optional
            Weights, continued in ``sample_weight_``.
        extra : array or DataFrame, optional
            Something with as many rows, continued in ``extra_`` from each row's main parent.

        Returns
        -------
        array or DataFrame
            The rows: those of ``X``, then the made ones.
        array
            Their labels.
        """
        check_choice("on_low_quality", self.on_low_quality, ["warn", "raise", "skip"])
        rows, labels, codec, binarized = self._read(X, y)
        check_same_length(X=rows, sample_weight=sample_weight, extra=extra)
        classes, codes = np.unique(labels, return_inverse=True)
        self.sampling_strategy_ = self._wanted_rows(rows, labels)
        order = {label: code for code, label in enumerate(classes)}
        wanted = {order[label]: count for label, count in self.sampling_strategy_.items() if count > 0}
        _warn_if_too_large(len(rows) + sum(wanted.values()), rows.shape[1])
        rng = as_generator(self.random_state)
        made = self._synthesize(rows, codes.astype(np.int64), wanted, rng)
        made, self.quality_ = pass_gate(rows, codes, classes, made, on_low_quality=self.on_low_quality)
        left = np.ones(len(rows) + len(made.rows), bool)
        if made.removed is not None:
            left[: len(rows)] = ~made.removed
        self._record(rows, made, left, sample_weight, extra)
        new_labels = np.concatenate([labels, classes[made.codes]])
        if binarized:
            new_labels = label_binarize(new_labels, classes=classes)
        new_rows = _restore_rows(X, rows, made, codec)
        return _kept(new_rows, left), _kept(_restore_labels(y, new_labels), left)

    def _wanted_rows(self, X: FloatArray, y: npt.NDArray[Any]) -> dict[Any, int]:
        return resolve_strategy(self.sampling_strategy, X, y)

    def _fit_resample(self, X: Any, y: Any, **params: Any) -> tuple[Any, Any]:
        return self.fit_resample(X, y, **params)  # imbalanced-learn's own hook

    @abstractmethod
    def _synthesize(
        self, X: FloatArray, codes: IntArray, wanted: dict[int, int], rng: np.random.Generator
    ) -> Synthetic:
        """Make ``wanted[code]`` rows of each class code."""

    def _read(self, X: Any, y: Any) -> tuple[FloatArray, npt.NDArray[Any], TableCodec | None, bool]:
        if sparse.issparse(X):
            raise TypeError(
                f"{type(self).__name__} needs a dense table, got a sparse one; call X.toarray() if it fits memory"
            )
        check_one_shape("X", X)
        if np.ndim(X) > 2:
            shape = np.shape(X)[1:]
            hint = f" and give image_shape={shape}" if hasattr(self, "image_shape") else ""
            raise ValueError(
                f"X must be a table, got samples of shape {shape}; take X.reshape(len(X), -1){hint}"
            )
        check_classification_targets(y)
        labels, binarized = check_target_type(y, indicate_one_vs_all=True)
        codec = None
        if isinstance(X, pd.DataFrame) and not _is_plain(X):
            check_same_length(X=X, y=labels)
            codec = TableCodec(X)
            validate_data(self, X=X, skip_check_array=True)
            X = codec.encode(X)
            labels = np.asarray(labels)
        else:
            X, labels = validate_data(self, X=X, y=labels, dtype=[np.float64, np.float32])
        if len(np.unique(labels)) < 2:
            raise ValueError(
                f"oversampling needs at least two classes, got one class: {labels.tolist()[0]!r}"
            )
        return np.asarray(X, dtype=np.float64), labels, codec, bool(binarized)

    def _record(
        self,
        rows: FloatArray,
        made: Synthetic,
        left: npt.NDArray[np.bool_],
        sample_weight: Any,
        extra: Any,
    ) -> None:
        synthetic = np.concatenate([np.zeros(len(rows), bool), np.ones(len(made.rows), bool)])
        moved = np.zeros(len(synthetic), bool)
        if made.moved is not None:
            moved[: len(rows)] = (made.moved != rows).any(axis=1)
        originals = np.flatnonzero(left[: len(rows)])
        self.provenance_ = Provenance(synthetic[left], made.parents, made.weights, moved[left], originals)
        self.sample_weight_ = (
            None if sample_weight is None else _kept(inherit_numbers(sample_weight, made), left)
        )
        self.extra_ = None if extra is None else _kept(inherit_rows(extra, made), left)


def _is_plain(table: pd.DataFrame) -> bool:
    """All columns are numpy floats or integers: nothing to encode."""
    return all(isinstance(dtype, np.dtype) and dtype.kind == "f" for dtype in table.dtypes)


def _warn_if_too_large(n_rows: int, n_columns: int) -> None:
    needed = n_rows * n_columns * 8
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # not known on this platform
        return
    if needed > memory / 2:
        warnings.warn(
            f"the resampled table takes about {needed / 2**30:.1f} GiB of {memory / 2**30:.1f} GiB memory; "
            "a smaller sampling_strategy makes fewer rows",
            ResourceWarning,
            stacklevel=3,
        )


def _restore_rows(X: Any, rows: FloatArray, made: Synthetic, codec: TableCodec | None) -> Any:
    """The caller's own container and dtypes; rows that were not moved are returned bit for bit."""
    if isinstance(X, pd.DataFrame):
        new = (
            codec.decode(made.rows) if codec else pd.DataFrame(made.rows, columns=X.columns).astype(X.dtypes)
        )
        old = X.reset_index(drop=True)
        if made.moved is not None:
            changed = np.flatnonzero((made.moved != rows).any(axis=1))
            moved = codec.decode(made.moved) if codec else pd.DataFrame(made.moved, columns=X.columns)
            old = old.copy()
            old.iloc[changed] = moved.iloc[changed].astype(X.dtypes)
        return pd.concat([old, new.astype(X.dtypes)], ignore_index=True) if len(new) else old
    dtype = np.asarray(X).dtype
    old_rows = rows if made.moved is None else made.moved
    resampled = np.concatenate([old_rows, made.rows]).astype(dtype if dtype.kind == "f" else np.float64)
    return resampled.tolist() if isinstance(X, list) else resampled


def _kept(table: Any, left: npt.NDArray[np.bool_]) -> Any:
    """The rows that are left of a table, labels or a list."""
    if left.all():
        return table
    if isinstance(table, (pd.DataFrame, pd.Series)):
        return table[left].reset_index(drop=True)
    return (
        [row for row, stays in zip(table, left, strict=True) if stays]
        if isinstance(table, list)
        else table[left]
    )


def _restore_labels(y: Any, labels: npt.NDArray[Any]) -> Any:
    if isinstance(y, pd.Series):
        return pd.Series(labels, name=y.name).astype(y.dtype)
    if isinstance(y, pd.DataFrame):
        return pd.DataFrame(labels, columns=y.columns).astype(y.dtypes)
    return labels.tolist() if isinstance(y, list) else labels
