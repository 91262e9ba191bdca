"""From axes to cells: a grid is a product of settings, and a cell's key is a hash of its settings alone."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

Settings: TypeAlias = dict[str, Any]
Axes: TypeAlias = Mapping[str, Any]
Grid: TypeAlias = "Axes | Sequence[Axes] | Callable[..., Iterable[Mapping[str, Any]]]"


def to_jsonable(value: Any) -> Any:
    """Python's own numbers, strings, lists and dicts for what numpy and pandas return.

    >>> to_jsonable({"curve": np.arange(3), "auc": np.float64(0.5)})
    {'curve': [0, 1, 2], 'auc': 0.5}
    """
    if isinstance(value, Mapping):
        return {str(name): to_jsonable(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value) if isinstance(value, (set, frozenset)) else value
        return [to_jsonable(item) for item in items]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise TypeError(f"a setting or result must be JSON-able, got {type(value).__name__}: {value!r}")


def canonical_json(value: Any, *, allow_nan: bool = False) -> str:
    """One text for one value: sorted keys, no spaces.

    >>> canonical_json({"b": 1, "a": (2.0, None)})
    '{"a":[2.0,null],"b":1}'
    """
    return json.dumps(
        to_jsonable(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=allow_nan
    )


def cell_key(study: str, settings: Mapping[str, Any]) -> str:
    """The name of a cell in the store: it depends on the study's name and the settings, on nothing else.

    >>> cell_key("s", {"a": 1, "b": 2}) == cell_key("s", {"b": 2, "a": 1})
    True
    """
    text = canonical_json([study, settings])
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def expand(grid: Grid, overrides: Mapping[str, Any] | None = None) -> list[Settings]:
    """All cells of a grid, in order, each once.

    A list or tuple is an axis, anything else a fixed setting (wrap a setting that is itself a list once
    more). ``overrides`` replace or add axes. A sequence of grids is their union; a callable gets the
    overrides as keywords and yields the cells itself.

    >>> expand({"method": ["a", "b"], "epochs": 3}, {"epochs": 1})
    [{'method': 'a', 'epochs': 1}, {'method': 'b', 'epochs': 1}]
    """
    overrides = dict(overrides or {})
    if callable(grid):
        cells = [dict(cell) for cell in grid(**overrides)]
    else:
        parts: Sequence[Axes] = [grid] if isinstance(grid, Mapping) else grid
        cells = [cell for part in parts for cell in _product({**part, **overrides})]
    unique = {canonical_json(cell): to_jsonable(cell) for cell in cells}
    return list(unique.values())


def _product(axes: Axes) -> Iterable[Settings]:
    values = [list(value) if isinstance(value, (list, tuple, range)) else [value] for value in axes.values()]
    for name, axis in zip(axes, values, strict=True):
        if not axis:
            raise ValueError(f"the grid's axis {name!r} must not be empty")
    for combination in itertools.product(*values):
        yield dict(zip(axes, combination, strict=True))


def change(cells: Sequence[Settings], values: Mapping[str, Sequence[Any]]) -> list[Settings]:
    """The cells with other values of some settings, each once.

    >>> change([{"set": "a", "seed": 0}, {"set": "b", "seed": 0}], {"set": ["c"]})
    [{'set': 'c', 'seed': 0}]
    """
    changed = list(cells)
    for name, wanted in values.items():
        _check_setting(name, cells)
        changed = [{**cell, name: value} for value in wanted for cell in changed if name in cell]
    return list({canonical_json(cell): cell for cell in changed}.values())


def _check_setting(name: str, cells: Sequence[Settings]) -> None:
    axes = sorted({axis for cell in cells for axis in cell})
    if name not in axes:
        raise ValueError(f"no setting is named {name!r}; there are {', '.join(axes)}")


def select(cells: Sequence[Settings], only: Mapping[str, Sequence[str]]) -> list[Settings]:
    """The cells whose settings, written as text, are among the wanted ones.

    >>> select([{"seed": 0}, {"seed": 1}], {"seed": ["1"]})
    [{'seed': 1}]
    """
    kept = list(cells)
    for name, wanted in only.items():
        _check_setting(name, cells)
        values = {str(cell[name]) for cell in cells if name in cell}
        unknown = [value for value in wanted if value not in values]
        if unknown:
            raise ValueError(
                f"{name}: unknown {', '.join(map(repr, unknown))}; there are {', '.join(sorted(values))}"
            )
        kept = [cell for cell in kept if str(cell.get(name)) in wanted]
    return kept
