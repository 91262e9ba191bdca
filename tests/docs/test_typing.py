"""What users give to losses, metrics and ``compare`` is typed."""

from __future__ import annotations

import importlib
import inspect

import pytest

pytest.importorskip("torch")

GIVEN = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)


@pytest.mark.parametrize(
    "room", ["losses", "losses.functional", "metrics", "metrics.significance", "advisor:compare"]
)
def test_no_parameter_is_anything(room):
    name, _, only = room.partition(":")
    module = importlib.import_module(f"equipoise.{name}")
    seen = 0
    for public in [only] if only else module.__all__:
        value = getattr(module, public)
        if not callable(value):
            continue
        for parameter in inspect.signature(value).parameters.values():
            if parameter.kind in GIVEN:
                seen += 1
                assert parameter.annotation not in ("Any", parameter.empty), (public, parameter.name)
    assert seen > 3
