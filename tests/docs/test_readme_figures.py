"""The README's figures against peers are those of the study's store, and say what they are."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def figures():
    spec = importlib.util.spec_from_file_location("make_readme_figures", ROOT / "docs/make_readme_figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_constant_gap_has_no_width_and_a_sign_that_means_better(figures):
    cells = [
        {"dataset": f"d{d}", "split": s, "method": m, "average_precision": 0.5 + d / 10 + 0.1 * (m == "advisor"),
         "balanced_accuracy": 0.5, "brier": 0.2 - 0.1 * (m == "advisor"), "cost": 1.0 + (m == "advisor")}
        for d in range(3) for s in range(2) for m in ("advisor", "lightgbm")
    ]  # fmt: skip
    line = next(row for row in figures.make_block(pd.DataFrame(cells)).splitlines() if "| LightGBM |" in row)
    assert "| +0.100 (+0.100 to +0.100) | +0.000 (+0.000 to +0.000) | +0.100" in line
    assert "-1.000 (-1.000 to -1.000) | 3 |" in line


def test_text_without_a_place_is_refused(figures):
    with pytest.raises(ValueError, match="no place"):
        figures.fill("nothing here", "x")


def test_the_readme_is_up_to_date(figures):
    frame, looked_at = figures.read_store()
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert figures.fill(text, figures.make_block(frame[~frame["dataset"].isin(looked_at)])) == text, (
        "run python docs/make_readme_figures.py"
    )
