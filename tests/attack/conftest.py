"""A table at the end of the run: what was attacked, how often, and what survived."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import equipoise

ROWS: dict[str, list[int]] = {}


@pytest.fixture(scope="session", autouse=True)
def fitted_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where models that were fitted in this session lie, for all its workers and the programs that they start."""
    base = tmp_path_factory.getbasetemp()
    os.environ["EQUIPOISE_ATTACK"] = str(
        (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "fitted"
    )


@pytest.fixture
def tally() -> Callable[[str, int, int], None]:
    """Enter a line of the table: the attack, the tries, and those survived."""

    def enter(name: str, tries: int, survived: int) -> None:
        row = ROWS.setdefault(name, [0, 0])
        row[0] += tries
        row[1] += survived

    return enter


@pytest.fixture
def attack() -> Callable[..., list[dict[str, Any]]]:
    """Run a script of this folder, which prints lines of JSON."""

    def run(script: str, *arguments: str) -> list[dict[str, Any]]:
        here = Path(__file__).parent
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(here / script), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={
                **os.environ,
                "PYTHONPATH": str(Path(equipoise.__file__).parents[1]),
                "OMP_NUM_THREADS": "1",
            },
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if ROWS:
        terminalreporter.section("attacks")
        for name, (tries, survived) in ROWS.items():
            terminalreporter.line(f"{name:58s} {tries:7,d} tries {survived:7,d} survived")


collect_ignore = ["damage.py", "formats.py", "kills.py", "readers.py"]  # programs that the tests start
