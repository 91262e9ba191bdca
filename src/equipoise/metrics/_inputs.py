"""What a metric may be given: labels, scores, probabilities, weights. Checked here, trusted elsewhere."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray, IntArray, check_array, check_in_range, check_same_length

AnyArray = npt.NDArray[Any]
LabelInput = tuple[AnyArray, AnyArray, AnyArray, "FloatArray | None"]


def check_labels(name: str, values: npt.ArrayLike) -> AnyArray:
    """A non-empty vector of class labels: numbers without NaN, booleans or strings."""
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must be a vector of labels, got the shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty")
    if array.dtype.kind in "fc":
        check_array(name, array.real)
    elif array.dtype.kind == "O":
        _check_objects(name, array)
    return array


def _check_objects(name: str, array: AnyArray) -> None:
    for value in array:
        if value is None or value != value:
            raise ValueError(f"{name} must not have missing labels, got {value!r}")
    kinds = {isinstance(value, str) for value in array}
    if len(kinds) > 1:
        raise TypeError(f"{name} must not mix strings and other labels")


def classes_of(labels: npt.ArrayLike | None, *given: tuple[str, AnyArray]) -> AnyArray:
    """The classes in order: ``labels`` if given (every label must be among them), else all that occur."""
    try:
        found = np.unique(np.concatenate([values for _, values in given]))
    except TypeError as error:
        raise TypeError(f"{' and '.join(name for name, _ in given)} must have labels of one kind") from error
    if len({values.dtype.kind in "OSU" for _, values in given}) > 1:
        names = " and ".join(name for name, _ in given)
        kinds = " and ".join(str(values.dtype) for _, values in given)
        raise TypeError(f"{names} must have labels of one kind, got {kinds}")
    if labels is None:
        return found
    classes = check_labels("labels", labels)
    if np.unique(classes).size != classes.size:
        raise ValueError(f"labels must not repeat, got {classes.tolist()}")
    for name, values in given:
        unknown = np.setdiff1d(values, classes)
        if unknown.size:
            raise ValueError(
                f"{name} has the unknown label {unknown.tolist()[0]!r}; labels are {classes.tolist()}"
            )
    return classes


def encode(values: AnyArray, classes: AnyArray) -> IntArray:
    """Labels → positions in ``classes``, which holds them all."""
    order = np.argsort(classes, kind="stable")
    return order[np.searchsorted(classes, values, sorter=order)].astype(np.int64)


def require_two_classes(y_true: AnyArray) -> None:
    found = np.unique(y_true)
    if found.size < 2:
        raise ValueError(f"y_true must have at least two classes, got only {found.tolist()[0]!r}")


def check_weight(sample_weight: npt.ArrayLike | None, y_true: AnyArray) -> FloatArray | None:
    if sample_weight is None:
        return None
    weight = check_in_range("sample_weight", sample_weight, 0)
    if weight.ndim != 1:
        raise ValueError(f"sample_weight must be a vector, got the shape {weight.shape}")
    check_same_length(y_true=y_true, sample_weight=weight)
    if weight.sum() <= 0:
        raise ValueError(f"sample_weight must have a positive sum, got {weight.sum():g}")
    return weight


def label_input(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> LabelInput:
    """True and predicted labels, the classes in order, and the weights."""
    true, predicted = check_labels("y_true", y_true), check_labels("y_pred", y_pred)
    check_same_length(y_true=true, y_pred=predicted)
    classes = classes_of(labels, ("y_true", true), ("y_pred", predicted))
    return true, predicted, classes, check_weight(sample_weight, true)


def positive_class(classes: AnyArray, pos_label: Hashable | None) -> Any:
    """``pos_label``, or the last of two classes in sorted order, as in scikit-learn's ``classes_[1]``."""
    if pos_label is not None:
        if pos_label not in classes.tolist():
            raise ValueError(f"pos_label must be one of the labels {classes.tolist()}, got {pos_label!r}")
        return pos_label
    if classes.size > 2:
        raise ValueError(
            f"pos_label must be given when there are more than two classes, got the labels {classes.tolist()}"
        )
    return classes[-1]


def score_input(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    pos_label: Hashable | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> tuple[npt.NDArray[np.bool_], FloatArray, FloatArray | None]:
    """Whether each sample is positive, its score, and the weights; both classes must occur.

    Probabilities of two classes, of the shape (n, 2), stand for the scores of the second.
    """
    true, score = check_labels("y_true", y_true), check_array("y_score", y_score)
    if score.ndim == 2 and score.shape[1] in (1, 2):
        score = score[:, -1]
    if score.ndim != 1:
        raise ValueError(f"y_score must be a vector of scores of the positive class, got {score.shape}")
    check_same_length(y_true=true, y_score=score)
    require_two_classes(true)
    positive = np.asarray(true == positive_class(np.unique(true), pos_label))
    weight = check_weight(sample_weight, true)
    if weight is not None and not (weight[positive].sum() > 0 and weight[~positive].sum() > 0):
        raise ValueError("sample_weight must be positive somewhere in both classes, got zeros in one")
    return positive, score, weight


def proba_input(
    y_true: npt.ArrayLike,
    proba: npt.ArrayLike,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    *,
    scores: bool = False,
) -> tuple[IntArray, FloatArray, AnyArray, FloatArray | None]:
    """Codes of the true classes, an (n, C) table, the classes of its columns, and the weights.

    A vector is taken as the probability of the second of two classes. With ``scores`` the table may hold
    any finite numbers; otherwise its rows must be distributions.
    """
    true, table = check_labels("y_true", y_true), check_array("proba", proba)
    if not scores:
        table = check_in_range("proba", table, 0, 1)
    if table.ndim == 1 or (table.ndim == 2 and table.shape[1] == 1):
        flat = table.reshape(-1)
        table = np.column_stack([-flat if scores else 1 - flat, flat])
    if table.ndim != 2:
        raise ValueError(f"proba must have the shape (samples, classes), got {table.shape}")
    check_same_length(y_true=true, proba=table)
    classes = classes_of(labels, ("y_true", true))
    if classes.size != table.shape[1]:
        hint = "" if labels is not None else "; name the columns by labels="
        raise ValueError(f"proba has {table.shape[1]} columns for the classes {classes.tolist()}{hint}")
    if not scores and np.abs(table.sum(axis=1) - 1).max() > 1e-4:
        worst = table.sum(axis=1)[np.abs(table.sum(axis=1) - 1).argmax()]
        raise ValueError(f"proba must have rows that sum to 1, got a sum of {worst:.6g}")
    return encode(true, classes), table, classes, check_weight(sample_weight, true)


def check_costs(cost_matrix: npt.ArrayLike, n_classes: int) -> FloatArray:
    """A square matrix of costs: row the truth, column the decision."""
    costs = check_array("cost_matrix", cost_matrix)
    if costs.shape != (n_classes, n_classes):
        raise ValueError(
            f"cost_matrix must have the shape {(n_classes, n_classes)} (truth, decision), got {costs.shape}"
        )
    return costs
