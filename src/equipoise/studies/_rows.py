"""The rows of a store, checked: their types, their JSON, and the SHA-256 that was written with each of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from equipoise.studies.grid import cell_key
from equipoise.studies.spec import is_study_name

STUDY = ("name", "title", "reference", "size", "metrics", "source", "written_by")
CELL = (
    "key", "study", "settings", "status", "result", "error", "warnings", "seconds", "peak_memory_mb", "attempts",
    "finished", "versions",
)  # fmt: skip


class StoreError(ValueError):
    """A store that cannot be used, said in one sentence."""


def row_checksum(row: Sequence[Any]) -> str:
    """The SHA-256 of all values of a row, in the order of ``STUDY`` or ``CELL``."""
    return hashlib.sha256(json.dumps(list(row), default=repr).encode()).hexdigest()


def read_study(path: Path, row: Sequence[Any], checksum: str | None) -> dict[str, Any]:
    """A row of studies, checked: whoever wrote it, its name becomes the name of a file."""
    study = dict(zip(STUDY, row, strict=True))
    if not is_study_name(study["name"]):
        raise StoreError(f"the store {path} holds a study with a name that is none: {study['name']!r}")
    what = f"study {study['name']!r}"
    _check_sum(path, what, row, checksum)
    for name, value in study.items():
        if value is not None and not isinstance(value, str):
            raise _damaged(path, f"the {name} of {what}", "text")
    metrics = _json(path, study["metrics"] or "[]", list, f"the metrics of {what}")
    if not all(isinstance(metric, str) for metric in metrics):
        raise _damaged(path, f"the metrics of {what}", "a list of names")
    texts = {name: value or "" for name, value in study.items()}
    return {**texts, "metrics": metrics}


def read_cell(path: Path, row: Sequence[Any], checksum: str | None) -> dict[str, Any]:
    """A row of cells, checked and with its JSON texts read."""
    cell = dict(zip(CELL, row, strict=True))
    what = f"cell {cell['key']!r}"
    if cell["status"] in ("done", "failed"):
        _check_sum(path, what, row, checksum)
    for name, kind in (("settings", dict), ("result", dict), ("warnings", list), ("versions", dict)):
        text = cell[name]
        cell[name] = _json(path, text, kind, f"the {name} of {what}") if text is not None else None
    _check_values(path, cell, what)
    return cell


def _check_values(path: Path, cell: Mapping[str, Any], what: str) -> None:
    settings = cell["settings"]
    if settings is None or (cell["status"] == "done" and cell["result"] is None):
        raise _damaged(path, what, "whole, with settings and a result")
    if cell["key"] != cell_key(cell["study"], settings):
        raise _damaged(path, f"the key of {what}", "that of its settings")
    for name in ("seconds", "peak_memory_mb"):
        if not isinstance(cell[name], (int, float, type(None))):
            raise _damaged(path, f"the {name} of {what}", "a number")
    if cell["status"] == "failed" and not isinstance(cell["error"], str):
        raise _damaged(path, f"the error of {what}", "text")


def _check_sum(path: Path, what: str, row: Sequence[Any], checksum: str | None) -> None:
    """Rows of stores that were written before there were checksums have none."""
    if checksum is not None and checksum != row_checksum(row):
        raise _damaged(path, what, "what was saved")


def _json(path: Path, text: Any, kind: type, what: str) -> Any:
    """A JSON text of the expected kind, or one sentence that names the store."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise _damaged(path, what, "JSON") from error
    if not isinstance(value, kind):
        raise _damaged(path, what, f"a JSON {'object' if kind is dict else 'list'}")
    return value


def _damaged(path: Path, what: str, wanted: str) -> StoreError:
    return StoreError(f"the store {path} is damaged: {what} must be {wanted}")
