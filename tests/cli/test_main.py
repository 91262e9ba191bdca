"""The command itself: quick to answer, clear when it fails."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from equipoise.cli import main


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)


def test_import_is_light():
    code = "import equipoise, sys; sys.exit(bool({'torch', 'matplotlib'} & set(sys.modules)))"
    assert run("-c", code).returncode == 0


def seconds_of_help() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert run("-m", "equipoise", "--help").returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_is_under_half_a_second_of_cpu():
    assert min(seconds_of_help() for _ in range(3)) < 0.5  # the first run may compile


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "report" in capsys.readouterr().out


def test_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["no-such-command"])
    assert ended.value.code == 2
