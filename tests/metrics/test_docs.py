"""The page on metrics names every metric."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.metrics import METRICS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "metrics.md"


@pytest.mark.parametrize("name", sorted(METRICS))
def test_the_page_names_every_metric(name):
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8")
