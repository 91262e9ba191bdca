"""Checks at the border. Each message names the argument and the value that was got."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def _first_bad(values: FloatArray, bad: npt.NDArray[np.bool_]) -> float:
    return float(np.ravel(values)[np.ravel(bad).argmax()])


def check_array(name: str, value: npt.ArrayLike, *, allow_empty: bool = False) -> FloatArray:
    """Return ``value`` as a finite float array, or say which value is not finite.

    >>> check_array("x", [1, 2]).dtype
    dtype('float64')
    >>> check_array("x", [1, float("nan")])
    Traceback (most recent call last):
    ...
    ValueError: x must be finite, got nan
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numeric, got {value!r}") from error
    if array.size == 0 and not allow_empty:
        raise ValueError(f"{name} must not be empty")
    bad = ~np.isfinite(array)
    if bad.any():
        raise ValueError(f"{name} must be finite, got {_first_bad(array, bad)}")
    return array


def check_number(name: str, value: Any) -> float:
    """One finite number.

    >>> check_number("loss", [1, 2])
    Traceback (most recent call last):
    ...
    ValueError: loss must be one number, got shape (2,)
    """
    array = check_array(name, value)
    if array.ndim:
        raise ValueError(f"{name} must be one number, got shape {array.shape}")
    return float(array)


def check_in_range(
    name: str,
    value: npt.ArrayLike,
    low: float = -np.inf,
    high: float = np.inf,
    *,
    closed: str = "both",
) -> FloatArray:
    """Return ``value`` as floats that all lie between ``low`` and ``high``.

    ``closed`` says which ends belong to the range: ``"both"``, ``"neither"``, ``"left"`` or ``"right"``.

    >>> check_in_range("train_fraction", 1.3, 0, 1, closed="neither")
    Traceback (most recent call last):
    ...
    ValueError: train_fraction must lie in (0, 1), got 1.3
    """
    array = check_array(name, value)
    left, right = closed in ("both", "left"), closed in ("both", "right")
    bad = (array < low if left else array <= low) | (array > high if right else array >= high)
    if bad.any():
        span = f"{'[' if left else '('}{low:g}, {high:g}{']' if right else ')'}"
        raise ValueError(f"{name} must lie in {span}, got {_first_bad(array, bad):g}")
    return array


def check_fraction(name: str, value: npt.ArrayLike) -> FloatArray:
    """A fraction strictly between 0 and 1."""
    return check_in_range(name, value, 0, 1, closed="neither")


def check_positive(name: str, value: npt.ArrayLike) -> FloatArray:
    """Finite and greater than zero."""
    array = check_array(name, value)
    if (array <= 0).any():
        raise ValueError(f"{name} must be positive, got {_first_bad(array, array <= 0):g}")
    return array


def check_integer(name: str, value: Any, low: int | None = None, high: int | None = None) -> int:
    """An integer (numpy's count too, booleans do not) within ``[low, high]``.

    >>> check_integer("epochs", 0, low=1)
    Traceback (most recent call last):
    ...
    ValueError: epochs must be at least 1, got 0
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if low is not None and value < low:
        raise ValueError(f"{name} must be at least {low}, got {value}")
    if high is not None and value > high:
        raise ValueError(f"{name} must be at most {high}, got {value}")
    return int(value)


def check_type(name: str, value: Any, kind: type[T]) -> T:
    """An object of a class of ours.

    >>> check_type("comparison", 1, dict)
    Traceback (most recent call last):
    ...
    TypeError: comparison must be a dict, got 1
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, got {value!r:.60}")
    return value


def check_choice(name: str, value: T, choices: Iterable[T]) -> T:
    """One of a list; an unknown value is answered with what exists, of many names with those most like it.

    >>> check_choice("profile", "stp", ["exponential", "step"])
    Traceback (most recent call last):
    ...
    ValueError: profile must be one of 'exponential', 'step', got 'stp'
    """
    known = list(choices)
    if value not in known:
        raise ValueError(f"{name} must be one of {_most_like(value, known)}, got {value!r}")
    return value


def _most_like(value: Any, known: Sequence[Any], most: int = 40) -> str:
    """All names, or where there are very many, a few that are written most like the value."""
    if len(known) <= most:
        return ", ".join(map(repr, known))
    near = difflib.get_close_matches(str(value), [str(one) for one in known], 8, cutoff=0.0)
    return f"{', '.join(map(repr, near))} and {len(known) - len(near)} more"


def check_distribution(name: str, value: npt.ArrayLike, *, tolerance: float = 1e-8) -> FloatArray:
    """Non-negative numbers that sum to one."""
    array = check_in_range(name, value, 0, 1)
    total = float(array.sum())
    if array.ndim != 1 or abs(total - 1) > tolerance:
        raise ValueError(f"{name} must be a vector that sums to 1, got a sum of {total:.10g}")
    return array


def check_counts(name: str, value: npt.ArrayLike, *, minimum: int = 0) -> IntArray:
    """Whole numbers, none below ``minimum``."""
    array = check_array(name, value)
    bad = (array < minimum) | (array != np.round(array))
    if bad.any():
        raise ValueError(
            f"{name} must be whole numbers of at least {minimum}, got {_first_bad(array, bad):g}"
        )
    if (array > 2**53).any():
        raise ValueError(f"{name} must be at most 2⁵³, got {array.max():g}")
    return array.astype(np.int64)


def check_same_length(**named: Any) -> int:
    """Sequences of equal length, given by keyword so that the message can name them.

    >>> check_same_length(X=[1, 2], y=[1])
    Traceback (most recent call last):
    ...
    ValueError: X and y must have the same length, got 2 and 1
    """
    lengths = {}
    for name, value in named.items():
        if value is None:
            continue
        try:
            lengths[name] = len(value)
        except TypeError:
            raise TypeError(f"{name} must be a sequence, got {value!r}") from None
    if not lengths:
        raise ValueError("at least one sequence must be given, got none")
    if len(set(lengths.values())) > 1:
        names, sizes = " and ".join(lengths), " and ".join(map(str, lengths.values()))
        raise ValueError(f"{names} must have the same length, got {sizes}")
    return next(iter(lengths.values()))


def check_one_shape(name: str, samples: Any) -> None:
    """A list (or an array of objects) whose samples are of one shape; anything else passes unseen.

    >>> check_one_shape("X", [[1, 2], [3]])
    Traceback (most recent call last):
    ...
    ValueError: X must have samples of one shape, got (2,) and (1,)
    """
    if isinstance(samples, list) or (isinstance(samples, np.ndarray) and samples.dtype == object):
        shapes = list(dict.fromkeys(np.shape(sample) for sample in samples))
        if len(shapes) > 1:
            raise ValueError(f"{name} must have samples of one shape, got {shapes[0]} and {shapes[1]}")


def check_members(name: str, values: Iterable[Any], known: Sequence[Any]) -> None:
    """All of ``values`` are known; otherwise list the unknown and what exists."""
    unknown = [value for value in values if value not in known]
    if unknown:
        offered = _most_like(unknown[0], known)
        raise ValueError(f"{name}: unknown {', '.join(map(repr, unknown))}; there are {offered}")


def check_columns(name: str, table: Any, columns: Iterable[Any]) -> None:
    """A data frame that has these columns.

    >>> import pandas as pd
    >>> check_columns("table", pd.DataFrame({"a": [1]}), ["a", "b"])
    Traceback (most recent call last):
    ...
    ValueError: table must have the columns 'a', 'b', got 'a'
    """
    found, wanted = list(getattr(table, "columns", ())), list(columns)
    if not all(isinstance(column, str) and column in found for column in wanted):
        shown, there = (", ".join(map(repr, names))[:200] for names in (wanted, found))
        raise ValueError(f"{name} must have the columns {shown}, got {there or 'none'}")
