"""Every program of the gallery runs, has a title for its page, and leaves a picture if it is a tutorial."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICK = {"datasets", "effective_number", "fraud_costs_by_row", "long_tails_with_losses", "metrics"}
PROGRAMS = sorted(EXAMPLES.rglob("*.py"))


@pytest.mark.parametrize(
    "program",
    [pytest.param(p, marks=[] if p.stem in QUICK else [pytest.mark.slow], id=p.stem) for p in PROGRAMS],
)
@pytest.mark.filterwarnings("default")
def test_programs_run(program, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(program)])
    left = runpy.run_path(str(program), run_name="__main__")
    if program.parent.name == "tutorials":
        assert any(isinstance(value, Figure) for value in left.values())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_programs_have_a_title(program):
    title, line = ast.get_docstring(ast.parse(program.read_text("utf-8"))).splitlines()[:2]
    assert set(line) == {"="}
    assert len(line) == len(title)
