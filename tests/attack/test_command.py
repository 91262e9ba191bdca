"""Odd arguments for the command: an exit code and a sentence, never a traceback."""

from __future__ import annotations

import io
import os
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attack.formats import FORMATS
from attack.test_fuzz import within
from equipoise.cli import main

WORDS = [
    "", "x", "-1", "0", "1e999", "nan", "fp=1,fn=20", "fp=a", "fp=-1,fn=0", "0.5", "0.1,0.9", "1,1", ",", "=",
    "a=b",
    "5m", "1s", "../../x", "no-such-file.csv", "empty.csv", "one.csv", "bytes.npz", "list.json", "folder", "model",
    "damaged", "bad.parquet", "\x1b[2J", "é→语", "\udcff", "--", "utf-7", "optimum", "curves",
]  # fmt: skip
STARTS = [
    ["predict"], ["retune"], ["report", "one.csv"], ["report", "arrays.npz"], ["theory"], ["diffusion"],
    ["diffusion", "train"], ["diffusion", "report"], ["diffusion", "monitor"], ["bench", "report"],
    ["bench", "run"], ["study", "report"], ["study", "run"], [],
]  # fmt: skip
OPTIONS = [
    "--out",
    "--cost",
    "--recall",
    "--prior",
    "--target",
    "--positive",
    "--encoding",
    "--budget",
    "--only",
    "--seed",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with files of every kind that is no table."""
    folder = tmp_path_factory.mktemp("odd")
    (folder / "empty.csv").write_text("")
    (folder / "one.csv").write_text("a,b\n1,2\n")
    (folder / "list.json").write_text("[1]")
    (folder / "bytes.npz").write_bytes(b"PK\x03\x04" + bytes(range(256)))
    (folder / "bad.parquet").write_bytes(b"PAR1" + bytes(64) + b"PAR1")
    (folder / "folder").mkdir()
    for name in ("model", "damaged"):
        FORMATS["logistic advisor"].save(folder / name, 0)
    (folder / "damaged" / "advisor.json").write_text("{")
    np.savez(folder / "arrays.npz", X=np.eye(3), y=np.arange(3))
    return folder


def attack(arguments: list[str]) -> None:
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors), within(30):
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = ended.code
    assert code in (0, 1, 2), errors.getvalue()
    said = errors.getvalue()
    assert "unexpected" not in said, said
    assert "Traceback" not in said, said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["predict", "model", "/dev/zero"], "/dev/zero is a device"),
        (["retune", "model", "--recall", "0.5", "--data", "one.csv"], "--data is for a conditional model"),
        (["retune", "model", "--beta", "1e300"], "beta must be positive and at most 1e+06, got 1e+300"),
    ],
)
def test_what_cannot_be_followed_is_said(place, monkeypatch, capsys, arguments, said):
    """Not hung upon, nor passed over in silence."""
    monkeypatch.chdir(place)
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


def test_names_of_columns_are_no_formulas_either(place, monkeypatch, capfd):
    monkeypatch.chdir(place)
    rows = "".join(f"=1+{number},1,2,3,4\n" for number in range(3))
    Path("formula.csv").write_text(f"=1+1,column 0,column 1,column 2,column 3\n{rows}")
    assert main(["predict", "model", "formula.csv", "--id", "=1+1"]) == 0
    assert [line[:6] for line in capfd.readouterr().out.splitlines()] == [
        "'=1+1,",
        "'=1+0,",
        "'=1+1,",
        "'=1+2,",
    ]


def fuzz(examples: int, place: Path) -> int:
    tries = [0]
    words = st.lists(st.sampled_from([*WORDS, *OPTIONS]), max_size=5)

    @settings(
        max_examples=examples, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.sampled_from(STARTS), words)
    def run(start: list[str], more: list[str]) -> None:
        tries[0] += 1
        attack([*start, *more])

    here = os.getcwd()
    os.chdir(place)
    try:
        run()
    finally:
        os.chdir(here)
    return tries[0]


def test_odd_command_lines(place, tally):
    tries = fuzz(40, place)
    tally("odd command lines", tries, tries)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_odd_command_lines(place, tally):
    tries = fuzz(600, place)
    tally("odd command lines", tries, tries)
