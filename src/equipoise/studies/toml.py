"""A study from a ``SPEC.toml``."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from equipoise._core.checks import check_members
from equipoise._core.files import read_toml
from equipoise.studies.spec import Spec
from equipoise.studies.suite import suite

_KEYS = [
    "name", "title", "methods", "learners", "datasets", "metrics", "folds", "seeds", "trials", "inner_folds",
    "tune_metric", "max_rows", "parameters", "small", "paper",
]  # fmt: skip
_LISTS = ("methods", "learners", "datasets", "metrics", "seeds")
_AXES = {"methods": "method", "learners": "learner", "datasets": "dataset", "seeds": "seed"}
_REQUIRED = ("methods", "datasets", "metrics")


def spec_from_toml(path: str | Path) -> Spec:
    """Read and check a study; every name in it must exist before anything runs."""
    source, table = Path(path), read_toml(path)
    try:
        return _spec(source, table)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{source}: {error}") from error


def _spec(source: Path, table: dict[str, Any]) -> Spec:
    check_members("keys of a study", table, _KEYS)
    for key in _REQUIRED:
        if key not in table:
            raise ValueError(f'{key} must be given, as in {key} = ["..."]')
    for key in _LISTS:
        if key in table and (not isinstance(table[key], list) or not table[key]):
            raise ValueError(f"{key} must be a list that is not empty, got {table[key]!r}")
    sizes = {size: _overrides(size, table.pop(size, {})) for size in ("small", "paper")}
    name = table.pop("name", source.stem)
    return suite(name, table.pop("title", name), sizes=sizes, **table)


def _overrides(size: str, table: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ValueError(f"[{size}] must be a table, got {table!r}")
    known = [
        key for key in inspect.signature(suite).parameters if key in _KEYS and key not in ("name", "title")
    ]
    check_members(f"keys of [{size}]", table, [key for key in known if key not in ("metrics", "parameters")])
    return {_AXES.get(key, key): value for key, value in table.items()}
