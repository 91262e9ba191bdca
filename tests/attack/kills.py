"""Run by test_kills: save over a save, killed before each file operation in turn, and see what is left.

Children are forked from a process that has imported and fitted everything, so that a kill is cheap to repeat.
Prints a line of JSON for each format: how many kills, and what did not survive.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from formats import FORMATS, Format

from equipoise._core import files

EVENTS = (
    "open",
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.chmod",
    "os.listdir",
    "os.scandir",
    "shutil.",
)

CONNECT, SQLITE_STEPS = sqlite3.connect, 40


def die_at(number: int, folder: str) -> None:
    """Kill this process before its file operation of that number under ``folder``, or in the midst of a write."""
    count = [0]

    def operation() -> None:
        if count[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        count[0] += 1

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(EVENTS) and arguments and str(arguments[0]).startswith(folder):
            operation()

    def before(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            operation()
            done = function(*arguments)
            operation()
            return done

        return call

    def connect(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection = CONNECT(*arguments, **named)
        connection.set_trace_callback(lambda statement: operation())
        connection.set_progress_handler(operation, SQLITE_STEPS)  # in the midst of a statement
        return connection

    os.fsync = before(os.fsync)
    files._exchange = before(files._exchange)
    sqlite3.connect = connect
    sys.addaudithook(hook)


def in_a_child(work: Callable[[], None]) -> bool:
    """Whether the child came to its end alive."""
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit("the save itself failed")
    return os.WIFEXITED(status)


def kill_everywhere(name: str, kind: Format, home: Path, step: int) -> dict[str, Any]:
    whole = home / "whole"
    kind.save(whole / "x", 0)
    known = {kind.answer(whole / "x")}
    shutil.copytree(whole, home / "new")
    kind.save(home / "new" / "x", 1)
    known.add(kind.answer(home / "new" / "x"))
    wrong: list[str] = []
    kills = number = 0
    while True:
        place = home / f"kill-{number}"
        shutil.copytree(whole, place)

        def work(place: Path = place, number: int = number) -> None:
            die_at(number, str(place))
            kind.save(place / "x", 1)

        if in_a_child(work):
            return {"format": name, "kills": kills, "wrong": wrong}
        kills += 1
        try:
            if kind.answer(place / "x") not in known:
                wrong.append(f"operation {number}: another answer")
            kind.save(place / "x", 1)
            kind.answer(place / "x")
            left = [p.name for p in (*place.iterdir(), *(place / "x").iterdir()) if p.name.startswith(".")]
            if left:
                wrong.append(f"operation {number}: left {left}")
        except Exception as error:
            wrong.append(f"operation {number}: {error!r}")
        shutil.rmtree(place)
        number += step


def _save_carelessly(place: Path, version: int) -> None:
    """As a program would that does not think of a kill; the harness must notice."""
    place.mkdir(parents=True, exist_ok=True)
    for name in ("a", "b"):
        (place / name).write_text(str(version))


def _careless_answer(place: Path) -> str:
    return (place / "a").read_text() + (place / "b").read_text()


if __name__ == "__main__":
    step, exchange, *names = sys.argv[1:]
    FORMATS["careless"] = Format(_save_carelessly, _careless_answer)
    if exchange == "without":
        files._system_exchange = lambda: None
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    for chosen in names:
        with tempfile.TemporaryDirectory(dir=memory) as home:
            print(json.dumps(kill_everywhere(chosen, FORMATS[chosen], Path(home), int(step))), flush=True)
