"""The border of the command: any text can be printed, and every failure is a sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from equipoise.cli import main

COMMAND = ["theory", "anomaly"]


def ending_with(monkeypatch, error: BaseException) -> int:
    def run(args):
        raise error

    monkeypatch.setattr("equipoise.cli.theory.run", run)
    return main(COMMAND)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError("Unable to allocate 8.00 TiB"), "not enough memory: Unable to allocate 8.00 TiB; try"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "not enough memory"),
        (RecursionError("maximum recursion depth exceeded"), "nested too deeply"),
        (KeyError("column"), "unexpected KeyError: 'column'. Check the input"),
        (IndexError("out of range"), "unexpected IndexError: out of range"),
        (
            OSError(28, "No space left on device", "out/model"),
            "out/model: No space left on device; free some",
        ),
        (OSError("plain words"), "plain words"),
        (ValueError("plain words"), "plain words"),
    ],
)
def test_every_error_is_one_line(monkeypatch, capsys, error, words):
    assert ending_with(monkeypatch, error) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert "Traceback" not in said


def test_debugging_shows_where(monkeypatch):
    monkeypatch.setenv("EQUIPOISE_DEBUG", "1")
    with pytest.raises(KeyError):
        ending_with(monkeypatch, KeyError("x"))


def test_an_error_cannot_command_the_terminal(monkeypatch, capsys):
    label = "\x1b]0;owned\x07\x1b[2Jclear\u202e\x9b31m\x08"
    assert ending_with(monkeypatch, ValueError(f"label {label} is unknown")) == 2
    assert capsys.readouterr().err == "equipoise theory: label clear31m is unknown\n"


def child(code: str, **environment: str) -> subprocess.Popen[bytes]:
    start = "import sys, equipoise.cli.theory as command; from equipoise.cli import main\n"
    end = f"\ncommand.run = run; sys.exit(main({COMMAND!r}))"
    return subprocess.Popen(
        [sys.executable, "-c", start + code + end],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252"])
def test_any_terminal_can_print_any_text(encoding):
    process = child('def run(args): print("0.5 → 0.7 “é” 语")', PYTHONIOENCODING=encoding)
    out, errors = process.communicate()
    assert (process.returncode, errors) == (0, b"")
    assert out.decode(encoding).startswith("0.5 ? 0.7")


def test_termination_ends_in_order(tmp_path):
    code = f"""
import time
from equipoise._core.files import replacing
def run(args):
    with replacing({str(tmp_path / "out.txt")!r}) as temporary:
        temporary.write_text("half")
        print("ready", flush=True)
        time.sleep(600)
"""
    process = child(code)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=200)
    assert (process.returncode, errors) == (143, b"equipoise: interrupted\n")
    assert list(tmp_path.iterdir()) == []
