"""Every example runs to its end, without a warning, and has something to show: words, and a title for its page."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import pytest

matplotlib = pytest.importorskip("matplotlib")

FOLDER = Path(__file__).parents[2] / "examples"
QUICK = (
    "datasets",
    "effective_number",
    "fraud_costs_by_row",
    "long_tails_with_losses",
    "metrics",
    "neural_classifier",
)  # the others train or search for longer


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=() if path.stem in QUICK else pytest.mark.slow)
        for path in sorted(FOLDER.rglob("*.py"))
    ],
)
def test_an_example_runs(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(path)])
    matplotlib.use("agg")
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.stem)
def test_an_example_has_a_title(path):
    title, line = ast.get_docstring(ast.parse(path.read_text("utf-8"))).splitlines()[:2]
    assert set(line) == {"="}
    assert len(line) == len(title)
