"""Costs and shares by class: values follow the names of the classes, whatever the order in which they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from equipoise._core.checks import FloatArray, IntArray, check_array, check_distribution
from equipoise._core.text import spelling
from equipoise.metrics._inputs import check_costs

_ERRORS = frozenset({"fp", "fn"})


def sorted_codes(labels: Sequence[Any]) -> IntArray:
    """The place of each of the sorted labels among ``labels``; labels of several types are sorted by their texts.

    Parameters
    ----------
    labels : sequence
        The labels, in any order.

    Returns
    -------
    array of int
        ``labels[i]`` for each ``i`` of it are sorted, as in scikit-learn's ``classes_``.

    Examples
    --------
    >>> sorted_codes([10, 9]), sorted_codes(["well", "ill"])
    (array([1, 0]), array([1, 0]))
    """
    if len({type(label) for label in labels}) == 1:
        return np.argsort(np.array(labels), kind="stable").astype(np.int64)
    return np.array(sorted(range(len(labels)), key=lambda i: str(labels[i])), dtype=np.int64)


def costs_of_errors(cost: Any) -> bool:
    """Whether a cost is one of false alarms and misses, not one by class."""
    return isinstance(cost, Mapping) and bool(_ERRORS & set(cost))


def costs_by_code(cost: Any, labels: Sequence[Any]) -> Any:
    """A cost as :meth:`Wish.make` takes it, its rows and columns in the order of ``labels``.

    Parameters
    ----------
    cost : mapping, Series, DataFrame or array
        ``{"fp": 1, "fn": 20}`` is returned as it is. ``{label: cost}`` or a Series is what it costs to call a row
        of that class anything else. ``{truth: {call: cost}}`` or a DataFrame (its index the truth, its columns the
        call) is a cost table by name. An array is a cost table over the *sorted* labels, truth by call.
    labels : sequence
        The labels by class code.

    Returns
    -------
    mapping or array
        The costs of errors, or ``cost[truth, call]`` by class code.

    Raises
    ------
    ValueError
        If a name is not among the labels, a label has no cost, or the table has another size.

    Examples
    --------
    >>> costs_by_code({"ill": 20, "well": 1}, ["well", "ill"])
    array([[ 0.,  1.],
           [20.,  0.]])
    >>> costs_by_code([[0, 20], [1, 0]], ["well", "ill"])  # sorted: ill, well
    array([[ 0.,  1.],
           [20.,  0.]])
    """
    if cost is None or costs_of_errors(cost):
        return cost
    named = costs_by_name(cost, labels)
    if named is not None:
        return named
    rank = np.argsort(sorted_codes(labels))
    return check_costs(cost, len(labels))[np.ix_(rank, rank)]


def costs_by_name(cost: Any, labels: Sequence[Any]) -> FloatArray | None:
    """``cost[truth, call]`` in the order of ``labels``, from costs that name them; ``None`` for an array."""
    if isinstance(cost, Mapping) and cost and all(isinstance(row, Mapping) for row in cost.values()):
        calls = dict.fromkeys(name for row in cost.values() for name in row)
        cost = pd.DataFrame(
            [[row.get(call, np.nan) for call in calls] for row in cost.values()], list(cost), list(calls)
        )
    if isinstance(cost, pd.DataFrame):
        rows, columns = (
            _places(names, labels, f"the {what} of the cost table")
            for names, what in ((cost.index, "rows"), (cost.columns, "columns"))
        )
        table = cost.to_numpy(dtype=np.float64)[np.ix_(rows, columns)]
        right = np.diag(np.isnan(table).diagonal())  # what is right is free unless a cost is given
        return check_costs(np.where(right, 0.0, table), len(labels))
    if isinstance(cost, (Mapping, pd.Series)):
        values = np.array(list(dict(cost).values()), dtype=np.float64)
        missed = values[_places(list(dict(cost)), labels, "cost")]
        if not np.isfinite(missed).all() or (missed <= 0).any():
            raise ValueError(f"the cost of missing a class must be positive, got {missed.min():g}")
        return missed[:, None] * (1 - np.eye(len(labels)))
    return None


def shares_by_code(prior: Any, labels: Sequence[Any]) -> FloatArray:
    """Class shares in the order of ``labels``, the last of two being the positive one.

    Parameters
    ----------
    prior : float, mapping, Series or array
        The share of the positive class; or ``{label: share}``, of which one label may be left out; or an array
        over the *sorted* labels.
    labels : sequence
        The labels by class code.

    Returns
    -------
    array
        One share a class.

    Raises
    ------
    ValueError
        If they are no shares, or do not fit the labels.

    Examples
    --------
    >>> shares_by_code(0.25, ["well", "ill"]), shares_by_code({"ill": 0.25}, ["well", "ill"])
    (array([0.75, 0.25]), array([0.75, 0.25]))
    >>> shares_by_code([0.25, 0.75], ["well", "ill"])  # sorted: ill, well
    array([0.75, 0.25])
    """
    n = len(labels)
    if isinstance(prior, (Mapping, pd.Series)):
        given = dict(prior)
        names, shares = list(given), np.array(list(given.values()), dtype=np.float64)
        absent = [label for label in labels if not any(_same(name, label) for name in names)]
        if len(absent) == 1 and len(names) == n - 1 and shares.sum() <= 1:
            names, shares = [*names, absent[0]], np.append(shares, 1 - shares.sum())
        return check_distribution("prior", shares[_places(names, labels, "prior")])
    shares = np.atleast_1d(check_array("prior", prior))
    if shares.size == 1 and n == 2:
        share = float(shares.ravel()[0])
        if not 0 < share < 1:
            hint = f": write {share / 100:g} for {share:g}%" if 1 < share <= 100 else ""
            raise ValueError(f"prior must lie between 0 and 1, got {share:g}{hint}")
        return np.array([1 - share, share])
    if shares.shape != (n,):
        raise ValueError(f"prior must be {n} shares, got {shares.size}")
    return check_distribution("prior", shares)[np.argsort(sorted_codes(labels))]


def _same(name: Any, label: Any) -> bool:
    return bool(name == label) or spelling(name) == spelling(label)


def _places(names: Any, labels: Sequence[Any], what: str) -> npt.NDArray[np.int64]:
    """Where each label stands among the names, which must be the labels and no others."""
    every = list(names)
    found = []
    for label in labels:
        exact = [i for i, name in enumerate(every) if name == label]
        near = exact or [i for i, name in enumerate(every) if _same(name, label)]
        if len(near) != 1:
            times = "is named twice" if near else "is not named"
            raise ValueError(f"{what} must name every class once, and {label!r} {times}; {_are(labels)}")
        found += near
    unknown = [name for i, name in enumerate(every) if i not in found]
    if unknown:
        raise ValueError(f"{what} must name classes, and {unknown[0]!r} is none; {_are(labels)}")
    return np.array(found, dtype=np.int64)


def _are(labels: Sequence[Any]) -> str:
    shown = ", ".join(map(repr, labels[:12])) + (" …" if len(labels) > 12 else "")
    return f"the classes are {shown}"
