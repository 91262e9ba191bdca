"""Blocks and data as JSON, strict: no NaN, which other readers refuse."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.report.blocks import Block, Figure, Gallery, Picture
from equipoise.report.operating import LiveOperatingPoint

if TYPE_CHECKING:
    from equipoise.report.document import Report


def to_plain(value: Any) -> Any:
    """Numpy, dataclasses and mappings as what JSON knows; a number that is not finite becomes null.

    >>> to_plain({"a": np.float64("nan"), 2: np.arange(2)})
    {'a': None, '2': [0, 1]}
    """
    if isinstance(value, Figure):
        return {"kind": "figure", "caption": value.caption, "alt": value.alt}
    if isinstance(value, Picture):
        return {"kind": "picture", "name": value.name, "caption": value.caption, "alt": value.alt}
    if isinstance(value, Gallery):
        return {"kind": "gallery", "caption": value.caption, "lines": [line for _, line in value.items]}
    if isinstance(value, LiveOperatingPoint):
        return {"kind": "live", "classes": to_plain(value.classes), "figures": to_plain(value.figures)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        plain = {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {**plain, "kind": value.kind} if isinstance(value, Block) else plain
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if hasattr(value, "tolist") and not isinstance(value, np.generic):  # arrays, and pandas' columns
        return to_plain(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)


def render(report: Report) -> str:
    content = {
        "title": report.title,
        "subtitle": report.subtitle,
        "data": to_plain(report.data),
        "sections": [{"title": s.title, "blocks": to_plain(s.blocks)} for s in report.sections],
    }
    return json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False) + "\n"
