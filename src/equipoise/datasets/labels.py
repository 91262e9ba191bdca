"""Labels as class codes: what can be told apart, and which class is the positive one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from equipoise._core.checks import IntArray
from equipoise._core.text import spelling

_MANY_LABELS = 50


def code_labels(
    values: Any, name: str = "y", positive: Any = None
) -> tuple[IntArray, tuple[Any, ...], list[str]]:
    """Class codes, the labels that they stand for, and sentences about what was merged.

    Parameters
    ----------
    values
        One label per row.
    name
        The name of the target, for messages.
    positive
        The label to find, which gets code 1; with many labels all others become one class. Of two labels
        the rarer one is positive by default (the later one if both are as common).

    Returns
    -------
    codes, classes, notes

    Examples
    --------
    >>> codes, classes, notes = code_labels(["No", "yes", "no ", "No"], "ill")
    >>> codes.tolist(), classes
    ([0, 1, 0, 0], ('No', 'yes'))
    >>> notes
    ["Labels that differ only by case or spaces were merged: 'no ' was read as 'No'."]
    """
    labels, notes = _merge_spellings(check_target(values, name))
    classes_array, codes = np.unique(labels, return_inverse=True)
    classes: tuple[Any, ...] = tuple(classes_array.tolist())
    codes = codes.astype(np.int64)
    if len(classes) < 2:
        only = f", {classes[0]!r}" if classes else ""
        raise ValueError(
            f"the target {name!r} has only one class{only}: there is nothing to tell apart; add rows of "
            "another class or name another column"
        )
    if positive is not None:
        return (*choose_positive(codes, classes, positive), notes)
    if len(classes) == 2 and codes.mean() > 0.5:
        return 1 - codes, classes[::-1], notes
    return codes, classes, notes


def choose_positive(
    codes: IntArray, classes: tuple[Any, ...], positive: Any
) -> tuple[IntArray, tuple[Any, ...]]:
    """Code 1 for the label ``positive`` (or for the one that is written so), 0 for all others."""
    found = [code for code, label in enumerate(classes) if label == positive]
    if not found:
        wanted = spelling(positive)
        found = [code for code, label in enumerate(classes) if spelling(label) == wanted]
    if not found:
        shown = ", ".join(map(repr, classes[:12])) + (" …" if len(classes) > 12 else "")
        raise ValueError(f"the positive label {positive!r} is not among the labels {shown}")
    code = found[0]
    rest = classes[1 - code] if len(classes) == 2 else f"not {classes[code]}"
    return (codes == code).astype(np.int64), (rest, classes[code])


def check_target(values: Any, name: str = "y") -> Any:
    """Labels as integers, booleans or texts; what looks like a regression, or has gaps, is refused."""
    labels = pd.Series(values).infer_objects()
    if labels.isna().any():
        raise ValueError(f"{name} must have no missing labels, got {int(labels.isna().sum())}")
    if pd.api.types.is_float_dtype(labels.dtype):
        different = labels.nunique()
        if not (labels == labels.round()).all():
            raise ValueError(
                f"the target {name!r} has {different:,} different decimal numbers, as in a regression: "
                "cut it into classes first (for instance value above a limit: yes or no)"
            )
        labels = labels.astype(np.int64)
    if pd.api.types.is_bool_dtype(labels.dtype):
        return labels.to_numpy(dtype=bool)
    if not pd.api.types.is_numeric_dtype(labels.dtype):
        return labels.astype(object).astype(str).to_numpy(dtype=object)
    different = labels.nunique()
    if different > _MANY_LABELS and different > 0.02 * len(labels):
        raise ValueError(
            f"the target {name!r} has {different:,} different numbers in {len(labels):,} rows, as in a "
            "regression: cut it into classes first, or name another column"
        )
    return labels.to_numpy()


def _merge_spellings(labels: Any) -> tuple[Any, list[str]]:
    """One spelling, the commonest, for texts that differ only by case or spaces."""
    if labels.dtype != object:
        return labels, []
    counts = pd.Series(labels).value_counts()
    by_key: dict[str, list[str]] = {}
    for label in counts.index:  # from the commonest on
        by_key.setdefault(spelling(label), []).append(label)
    chosen = {label: group[0].strip() for group in by_key.values() for label in group}
    if all(label == new for label, new in chosen.items()):
        return labels, []
    merged = pd.Series(labels).map(chosen).to_numpy(dtype=object)
    changed = [
        (label, new) for label, new in chosen.items() if len(by_key[spelling(label)]) > 1 and label != new
    ]
    if not changed:
        return merged, []
    shown = ", ".join(f"{label!r} was read as {new!r}" for label, new in sorted(changed)[:8])
    return merged, [f"Labels that differ only by case or spaces were merged: {shown}."]
