"""Hostile text in the pages of a report and of a study, opened in a browser: nothing runs and nobody is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from browsing import EVIL, launched, visiting
from equipoise.cli import main
from equipoise.studies import Spec, run_study
from equipoise.studies.pages import write_pages

TEXTS = [
    EVIL,
    "</script>" + EVIL,
    "'\"><svg onload=window.broken=3>",
    "{{7*7}}",
    "\x1b]0;x\x07=1+1",
    "\u202eb",
]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def check_in_browser(path: Path, tally: Any) -> None:
    with launched() as browser, visiting(browser, path) as page:
        for tab in page.query_selector_all("[role=tab]"):
            tab.click()
        assert page.evaluate("window.broken") is None
        assert page.query_selector("svg[onload], img[onerror]") is None
        assert [
            address for address in page.asked if not address.startswith(("file:", "data:", "blob:"))
        ] == []
        assert page.said == []
    tally(f"hostile texts in a page: {path.name}", len(TEXTS), len(TEXTS))


def hostile_cell(method: str, data: str, seed: int) -> dict[str, Any]:
    if method == TEXTS[-1] and data == TEXTS[0]:
        raise ValueError(EVIL)
    return {"accuracy": 0.5 + 0.1 * seed + 0.01 * len(method), EVIL: 1.0}


def test_the_page_of_a_study(tmp_path, tally):
    grid = {"method": TEXTS, "data": TEXTS[:3], "seed": [0, 1]}
    spec = Spec(
        name="study", title=EVIL, run_cell=hostile_cell, grid=grid, metrics=["accuracy", EVIL], reference=EVIL
    )
    run_study(spec, tmp_path / "s.sqlite", jobs=1, verbose=False)
    for path in write_pages(tmp_path / "s.sqlite", tmp_path / "out"):
        if path.suffix == ".html":
            check_in_browser(path, tally)


def test_the_page_of_a_report(tmp_path, tally):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({text: rng.normal(size=150) for text in TEXTS[:4]})
    frame[TEXTS[4]] = rng.choice(TEXTS, len(frame))
    frame[TEXTS[5]] = np.where(frame[TEXTS[0]] + rng.normal(size=150) > 1, TEXTS[0], TEXTS[1])
    frame.to_csv(tmp_path / "t.csv", index=False)
    command = ["report", str(tmp_path / "t.csv"), "--target", TEXTS[5], "--budget", "60s", "--jobs", "1"]
    assert main([*command, "--treatments", "logistic", "--out", str(tmp_path / "out")]) in (0, 2)
    check_in_browser(tmp_path / "out" / "report.html", tally)
    assert not set("\x1b\x07\u202e") & set((tmp_path / "out" / "report.md").read_text())
