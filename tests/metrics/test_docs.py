"""The page on metrics runs, and names every metric."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from equipoise.metrics import METRICS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "metrics.md"


def test_the_page_runs():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    results = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags, encoding="utf-8")
    assert results.attempted > 5
    assert results.failed == 0


@pytest.mark.parametrize("name", sorted(METRICS))
def test_the_page_names_every_metric(name):
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8")
