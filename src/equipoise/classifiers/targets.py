"""Labels of any kind as class codes, with their weights, counts and splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from equipoise._core.checks import FloatArray, IntArray, check_fraction, check_one_shape, check_same_length
from equipoise._core.priors import weighted_prior
from equipoise.datasets import ImageFiles


def check_training_data(
    estimator: Any, X: Any, y: Any, sample_weight: npt.ArrayLike | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], FloatArray | None]:
    """Finite inputs of two axes or more, labels, and positive weights: rows of weight 0 are left out."""
    if isinstance(X, ImageFiles):
        check_same_length(X=X, y=y)
        y, estimator.n_features_in_ = np.asarray(y), X.shape[1]
    else:
        check_one_shape("X", X)
        X, y = validate_data(estimator, X, y, allow_nd=True, dtype="numeric")
    check_classification_targets(y)
    if sample_weight is None:
        return X, y, None
    weight = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
    kept = weight > 0
    if not kept.any():
        raise ValueError("sample_weight must have a positive sum, got 0")
    return (X, y, weight) if kept.all() else (X[kept], y[kept], weight[kept])


def check_inputs(estimator: Any, X: Any) -> Any:
    """Inputs of a fitted estimator: arrays that are finite and of the fitted width, or pictures on disk."""
    if isinstance(X, ImageFiles):
        return X
    check_one_shape("X", X)
    fitted = getattr(getattr(estimator, "preparation_", None), "sample_shape", ())
    if len(fitted) > 1 and np.shape(X)[1:] != tuple(fitted):
        raise ValueError(f"X must have samples of shape {tuple(fitted)}, got {np.shape(X)[1:]}")
    return validate_data(estimator, X, reset=False, allow_nd=True, dtype="numeric")


@dataclass(frozen=True)
class Targets:
    """Class codes 0 … C − 1 and what weighs them.

    >>> targets = Targets.fit(np.array(["b", "a", "b"]), None, "balanced")
    >>> targets.codes.tolist(), targets.class_weight.tolist()
    ([1, 0, 1], [1.5, 0.75])
    """

    classes: npt.NDArray[Any]
    codes: torch.Tensor
    weight: FloatArray | None
    class_weight: torch.Tensor | None

    @classmethod
    def fit(cls, y: npt.NDArray[Any], weight: FloatArray | None, class_weight: Any) -> Targets:
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y must have at least 2 classes, got one class only: {classes.tolist()[0]!r}")
        of_class = None
        if class_weight is not None:
            values = compute_class_weight(class_weight, classes=classes, y=y)
            if not np.isfinite(values).all() or (values < 0).any() or not values.any():
                raise ValueError(
                    f"class_weight must be finite, non-negative and not all 0, got {values.tolist()}"
                )
            of_class = torch.as_tensor(values, dtype=torch.float32)
        return cls(classes, torch.from_numpy(codes.astype(np.int64)), weight, of_class)

    def counts(self, rows: IntArray | slice = slice(None)) -> FloatArray:
        return np.bincount(self.codes[rows].numpy(), minlength=len(self.classes)).astype(np.float64)

    def mass(self, rows: IntArray | slice = slice(None)) -> FloatArray:
        """Sums of the sample weights in each class."""
        weight = None if self.weight is None else self.weight[rows]
        codes = self.codes[rows].numpy()
        return np.bincount(codes, weights=weight, minlength=len(self.classes)).astype(np.float64)

    def prior(self) -> FloatArray:
        return weighted_prior(self.codes.numpy(), len(self.classes), self.weight)

    def tensor_weight(self, rows: IntArray | slice) -> torch.Tensor | None:
        return None if self.weight is None else torch.as_tensor(self.weight[rows], dtype=torch.float32)

    def weight_for(self, rows: IntArray, prior: FloatArray) -> torch.Tensor:
        """Weights that give these rows a class prior: the sample weights times prior/present share."""
        codes, mass = self.codes[rows].numpy(), self.mass(rows)
        weight = np.ones(len(codes)) if self.weight is None else self.weight[rows]
        ratio = np.divide(prior * mass.sum(), mass, out=np.zeros_like(mass), where=mass > 0)
        return torch.as_tensor(weight * ratio[codes], dtype=torch.float32)

    def split(self, fraction: float | None, seed: int) -> tuple[Any, Any]:
        """Rows to train on and rows held out, stratified; all of them and None without a fraction."""
        if fraction is None:
            return slice(None), None
        check_fraction("validation_fraction", fraction)
        counts = self.counts()
        if counts.min() < 2:
            rare = self.classes.tolist()[int(counts.argmin())]
            raise ValueError(f"a validation split needs 2 samples of every class; class {rare!r} has 1")
        n_classes, n_rows = len(self.classes), len(self.codes)
        held = min(max(round(fraction * n_rows), n_classes), n_rows - n_classes)
        splitter = StratifiedShuffleSplit(1, test_size=held, random_state=seed)
        train, held_out = next(splitter.split(np.zeros(n_rows), self.codes.numpy()))
        return train, held_out
