"""Rows that belong together although no column says so: copies and near-copies of one another."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.stats import entropy

from equipoise._core.checks import FloatArray, IntArray, check_type
from equipoise._core.random import RandomState, as_generator
from equipoise.datasets.encoding import ScaledNumbers
from equipoise.datasets.table import DataTable

_MOST_SEARCHED = 20_000  # rows in which neighbors are looked for
MOST_ASKED = 1_000  # rows whose neighbors are looked for
MOST_COMPARED = 5_000  # rows of which all pairs are compared
_NEIGHBORS = 30
GAP = 2.0  # copies are at least so many times nearer than the next row
_LEAST_SHARE = 0.2  # of the rows must have near-copies
_LEAST_EXACT = 0.05  # of the rows must have exact copies
_LEAST_COLUMNS = 3  # with many different values, for exact copies to be no chance
_MANY_VALUES = 0.2  # different values for each row
_LEAST_VALUES = 20  # different values of a column that tells rows apart
_TRIMMED_TO = (0.75, 0.6, 0.4, 0.25)  # of the columns, those in which two rows are nearest
_NEARER = 0.2  # times the usual difference: two rows are alike in a column
_NEAREST = 3  # rows around each one that may be its copies
_SELDOM = 0.7  # times as often: columns in which such rows are less often alike are no part of the copy
_MOST_TRIMMED, _MOST_ROWS_TRIMMED, _LEAST_ROWS_TRIMMED = 30_000_000, 300, 50  # differences, rows asked about
_LEAST_DETAIL = 3.0  # times what it takes to number the rows; few and coarse columns are equal by chance


def find_near_copies(table: DataTable, *, random_state: RandomState = 0) -> IntArray | None:
    """Find rows that are (nearly) copies of one another, as measurements of one patient are.

    A row has near-copies if its k nearest neighbors are at least twice as near as the next one. In data that fill
    a space of dimension m this happens by chance with probability 2^(−km), that is 1 / (2^m − 1) for any k; copies
    are reported where it happens three times as often (for any k, or from k = 2 or 3 on) and to a fifth of the rows
    at least. Only numbers and dates are compared. In a table of at most 20,000 rows columns may differ between
    copies, as the time of a visit does, or be noise: columns are looked for in which rows are often alike that are
    nearest by some of their columns, from three quarters to one quarter of them.

    Parameters
    ----------
    table : DataTable
        The rows; labels are not used.
    random_state : int, generator or None
        Seed of the rows that are looked at.

    Returns
    -------
    array of int or None
        A code for each row, equal for rows that are near-copies; ``None`` if there are hardly any.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> patients = rng.normal(size=(60, 10))
    >>> rows = np.repeat(patients, 4, axis=0) + rng.normal(0, 0.05, (240, 10))
    >>> groups = find_near_copies(DataTable.from_arrays(rows, np.arange(240) % 2))
    >>> len(np.unique(groups))
    60
    >>> find_near_copies(DataTable.from_arrays(rng.normal(size=(240, 10)), np.arange(240) % 2)) is None
    True
    """
    check_type("table", table, DataTable)
    X = _numbers(table)
    if len(X) < 2 * _NEIGHBORS or _detail(X) < _LEAST_DETAIL:
        return None
    rng = as_generator(random_state)
    scaler = ScaledNumbers().fit(X[np.sort(rng.permutation(len(X))[:_MOST_SEARCHED])])
    groups = _groups_of(_scaled(scaler, X), _scaled(scaler, _neighborhood(X, scaler, rng)), rng)
    for share in _TRIMMED_TO if len(X) <= _MOST_SEARCHED else ():
        some = _copied_columns(_scaled(scaler, X), share, rng)
        if some is not None and _detail(X[:, some]) >= _LEAST_DETAIL:
            Z = _scaled(scaler, X)[:, some]
            by_some = _groups_of(Z, Z, rng)
            if by_some is not None:
                return by_some
    if groups is not None:
        return groups
    if _columns_with_many_values(X) < _LEAST_COLUMNS:
        return None
    exact = _exact_copies(X)
    return exact if _share_in_groups(exact) >= _LEAST_EXACT else None


def describe_near_copies(table: DataTable, groups: IntArray) -> str:
    """A sentence about the groups that :func:`find_near_copies` found, and the column that names them.

    Parameters
    ----------
    table : DataTable
        The table that was searched.
    groups : array of int
        The group of each row, from :func:`find_near_copies`.

    Returns
    -------
    str
        The sentence.
    """
    check_type("table", table, DataTable)
    groups = np.asarray(groups)
    if groups.dtype.kind not in "iu" or groups.shape != table.y.shape:
        raise ValueError(f"groups must be one whole number a row, got shape {groups.shape}")
    sizes = np.bincount(groups)
    sizes = sizes[sizes > 1]
    text = (
        f"{sizes.sum():,} rows are near-copies of one another, in {len(sizes):,} groups of mostly "
        f"{int(np.median(sizes)):,}: rows of one group in both training and test make every score too good. "
    )
    column = _naming_column(table, groups)
    if column is not None:
        return text + f"Column {column!r} tells the groups apart: name it with --group."
    return text + "If a column tells whom a row belongs to, name it with --group."


def _groups_of(Z: FloatArray, nearby: FloatArray, rng: np.random.Generator) -> IntArray | None:
    """Codes of near-copies, from distances among the rows ``nearby``; ``None`` if there are hardly any."""
    radius = _copy_radius(nearby, rng)
    if radius is None:
        return None
    groups = _linked(Z, radius, rng)
    if np.bincount(groups).max() >= _LEAST_SHARE * len(Z) and len(Z) <= MOST_COMPARED:
        groups = _linked_by_jumps(Z)  # one radius is too long where rows are dense
    enough = _share_in_groups(groups) >= _LEAST_SHARE and np.bincount(groups).max() < _LEAST_SHARE * len(Z)
    return groups if enough else None


def _copied_columns(Z: FloatArray, share: float, rng: np.random.Generator) -> IntArray | None:
    """Columns in which rows are often alike that are nearest by a share of them; ``None`` for all or too few."""
    n, d = Z.shape
    asked = rng.permutation(n)[: min(_MOST_TRIMMED // (n * d), _MOST_ROWS_TRIMMED)]
    if d <= _LEAST_COLUMNS or len(asked) < _LEAST_ROWS_TRIMMED:
        return None
    kept = max(int(np.ceil(share * d)), _LEAST_COLUMNS)
    near = np.empty((len(asked), _NEAREST), dtype=np.int64)
    for i, row in enumerate(asked):
        squares = np.nan_to_num((Z - Z[row]) ** 2, nan=np.inf)  # what is not known is not near
        total = np.partition(squares, kept - 1, axis=1)[:, :kept].sum(axis=1)
        total[row] = np.inf
        near[i] = np.argpartition(total, _NEAREST)[:_NEAREST]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column may have no two known values
        usual = np.nanmedian(np.abs(Z[asked] - Z[rng.integers(0, n, len(asked))]), axis=0)
    copied = np.abs(Z[np.repeat(asked, _NEAREST)] - Z[near.ravel()]) < _NEARER * usual
    often = copied.mean(axis=0)
    some = np.flatnonzero(often > (often.max() + often.min()) / 2)
    apart = often.min() < _SELDOM * often.max()
    return some if apart and len(some) >= _LEAST_COLUMNS else None


def _numbers(table: DataTable) -> npt.NDArray[Any]:
    if not isinstance(table.X, pd.DataFrame):
        return np.asarray(table.X)
    names = [c.name for c in table.schema.columns if c.kind in ("number", "date")]
    return table.X[names].to_numpy(dtype=np.float64)


def _columns_with_many_values(X: npt.NDArray[Any]) -> int:
    some = X[:: max(1, len(X) // _MOST_SEARCHED)]
    return sum(len(np.unique(column)) > _MANY_VALUES * len(some) for column in some.T)


def _detail(X: npt.NDArray[Any]) -> float:
    """How many times over the columns together could number a fifth of the rows: their entropies over its log."""
    some = X[:: max(1, len(X) // _MOST_SEARCHED)]
    counts = [np.unique(column, return_counts=True)[1] for column in some.T]
    fine = [entropy(count) for count in counts if len(count) >= _LEAST_VALUES]
    return float(sum(fine)) / np.log(max(0.2 * len(some), 2))


def _scaled(scaler: ScaledNumbers, X: npt.NDArray[Any]) -> FloatArray:
    """Columns on one scale, with gaps where they are: what is not known of a row does not move it away."""
    return (np.asarray(X, dtype=np.float64) - scaler.means_) / scaler.deviations_


def _metric(Z: FloatArray) -> str:
    return "nan_euclidean" if np.isnan(Z).any() else "minkowski"


def _exact_copies(X: npt.NDArray[Any]) -> IntArray:
    """Codes of equal rows, from a hash that is made a column at a time."""
    total = np.zeros(len(X), dtype=np.uint64)
    for column in X.T:
        total = total * np.uint64(1_000_003) + pd.util.hash_array(
            np.ascontiguousarray(column, dtype=np.float64)
        )
    return pd.factorize(total)[0].astype(np.int64)


def _share_in_groups(groups: IntArray) -> float:
    return float((np.bincount(groups)[groups] > 1).mean())


def _neighborhood(X: npt.NDArray[Any], scaler: ScaledNumbers, rng: np.random.Generator) -> npt.NDArray[Any]:
    """All rows of a small table; of a large one the rows around one of them, where its copies must be."""
    if len(X) <= _MOST_SEARCHED:
        return X
    place = int(rng.integers(len(X)))
    center = scaler.transform(X[place : place + 1])
    step = 1 << 16
    distances = [
        ((scaler.transform(X[i : i + step]) - center) ** 2).sum(axis=1) for i in range(0, len(X), step)
    ]
    return X[np.sort(np.argpartition(np.concatenate(distances), _MOST_SEARCHED)[:_MOST_SEARCHED])]


def _copy_radius(Z: FloatArray, rng: np.random.Generator) -> float | None:
    """A distance between that of copies and that of other rows, if there are copies."""
    from sklearn.neighbors import NearestNeighbors

    asked = Z[rng.permutation(len(Z))[:MOST_ASKED]]
    search = NearestNeighbors(n_neighbors=_NEIGHBORS + 1, metric=_metric(Z)).fit(Z)
    distances = search.kneighbors(asked)[0][:, 1:]
    smallest = 1e-9 * float(np.median(distances[:, -1]))
    if smallest == 0:
        return None
    distances = np.maximum(distances, smallest)
    rows, jump = _jumps(distances)
    if not len(rows):
        return None
    inner, outer = distances[rows, jump], distances[rows, jump + 1]
    return float(np.sqrt(np.median(inner) * np.median(outer)))


def _jumps(distances: FloatArray) -> tuple[IntArray, IntArray]:
    """Rows with near-copies and the place of the farthest of these; none if chance could make as many."""
    near = distances[:, : _NEIGHBORS // 2 + 1]
    wide = near[:, 1:] > GAP * near[:, :-1]
    by_chance = float(GAP ** -_dimension(distances))
    for least in range(1, 4):  # a jump after k rows has the chance GAP^(-k m), so that later ones tell more
        rows = np.flatnonzero(wide[:, least - 1 :].any(axis=1))
        chance = by_chance**least / max(1 - by_chance, 1e-9)
        if len(rows) >= len(distances) * max(_LEAST_SHARE, 3 * chance):
            break
    else:
        rows = rows[:0]
    ratios = near[rows, 1:] / near[rows, :-1]
    ratios[:, : least - 1] = 0.0
    return rows, ratios.argmax(axis=1)


def _dimension(distances: FloatArray) -> float:
    """The dimension of the space that the far half of the neighbors fills (maximum likelihood)."""
    count = distances.shape[1]
    start = count // 2
    far = np.log(distances[:, -1:] / distances[:, start:-1])
    harmonic = np.cumsum(1 / np.arange(count - 1, start, -1))[::-1]
    return float(harmonic.sum() / max(far.sum(axis=1).mean(), 1e-12))


def _linked(Z: FloatArray, radius: float, rng: np.random.Generator) -> IntArray:
    """Codes of rows that a chain of steps shorter than ``radius`` connects."""
    first, second = _pairs(Z, radius, rng)
    near = np.sqrt(Z.shape[1] * np.nanmean((Z[first] - Z[second]) ** 2, axis=1)) < radius
    links = coo_matrix((near, (first, second)), shape=(len(Z), len(Z)))
    links.eliminate_zeros()
    return connected_components(links, directed=False)[1].astype(np.int64)


def _linked_by_jumps(Z: FloatArray) -> IntArray:
    """Codes of rows that are connected by steps from a row to those before its own jump."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=_NEIGHBORS + 1, metric=_metric(Z)).fit(Z)
    distances, order = (found[:, 1:] for found in search.kneighbors(Z))
    rows, jump = _jumps(np.maximum(distances, 1e-9 * float(np.median(distances[:, -1]))))
    firsts = np.repeat(rows, jump + 1)
    seconds = np.concatenate([order[row, : last + 1] for row, last in zip(rows, jump, strict=True)] or [rows])
    links = coo_matrix((np.ones(len(firsts)), (firsts, seconds)), shape=(len(Z), len(Z)))
    return connected_components(links, directed=False)[1].astype(np.int64)


def _pairs(Z: FloatArray, radius: float, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Pairs that may be near: all of a small table; of a large one those in one cell of a random grid."""
    if len(Z) <= MOST_COMPARED:
        from sklearn.neighbors import NearestNeighbors

        search = NearestNeighbors(radius=radius, metric=_metric(Z)).fit(Z)
        found = search.radius_neighbors_graph(Z, mode="connectivity").tocoo()
        return found.row.astype(np.int64), found.col.astype(np.int64)
    Z = np.nan_to_num(Z)
    firsts, seconds = [], []
    for _ in range(12):
        directions = rng.normal(size=(Z.shape[1], 8))
        cells = np.floor(Z @ directions / (4 * radius) + rng.random(8)).astype(np.int64)
        keys = (cells * rng.integers(1, 1 << 60, 8) | 1).sum(axis=1)  # overflow is part of the hash
        order = np.argsort(keys, kind="stable")
        for step in (1, 2, 3):
            same = keys[order[step:]] == keys[order[:-step]]
            firsts.append(order[:-step][same])
            seconds.append(order[step:][same])
    return np.concatenate(firsts), np.concatenate(seconds)


def _naming_column(table: DataTable, groups: IntArray) -> str | None:
    """A column whose values are the groups, as far as there are copies."""
    together = np.bincount(groups)[groups] > 1
    codes = pd.Series(groups[together])
    for i, name in enumerate(table.schema.names):
        values = table.X[name] if isinstance(table.X, pd.DataFrame) else pd.Series(table.X[:, i])
        values = values[together].reset_index(drop=True)
        pure = codes.groupby(values).nunique().max() == 1 and values.groupby(codes).nunique().max() == 1
        if pure:
            return name
    return None
