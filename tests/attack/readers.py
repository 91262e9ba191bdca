"""Run by test_saves: two programs save over one folder again and again while two others read it.

With the name of a format two programs save it, each its own version, and the last save must be whole.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from formats import FORMATS

from equipoise._core import files

FOLDER = FORMATS["sealed folder"]


def end_after(work: Callable[[], Any]) -> None:
    """In a child: it must not come back to the folders that its parent removes."""
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def write_until(end: Path, place: Path, first: int) -> None:
    value = first
    while not end.exists():
        FOLDER.save(place, value)
        FOLDER.save(place, value)  # at times the same bytes again
        value += 2


def read_often(times: int, place: Path) -> list[str]:
    wrong = []
    for _ in range(times):
        try:
            if not (answer := FOLDER.answer(place)).isdigit():
                wrong.append(f"mixed {answer}")
        except Exception as error:
            wrong.append(repr(error))
    return wrong


def rivals(name: str, times: int, home: Path) -> dict[str, Any]:
    kind, known = FORMATS[name], {}
    for version in (0, 1):
        kind.save(home / str(version), version)
        known[kind.answer(home / str(version))] = version
    names = {path.name for path in (home / "0").iterdir()}
    children = []
    for version in (0, 1):
        children.append(os.fork())
        if not children[-1]:
            end_after(lambda version=version: [kind.save(home / "x", version) for _ in range(times)])
    ended = [os.waitpid(child, 0)[1] for child in children]
    wrong = [f"a writer ended with {status}" for status in ended if status]
    if kind.answer(home / "x") not in known:
        wrong.append("two saves are mixed")
    left = {path.name for path in (home / "x").iterdir()} ^ names
    return {"format": name, "tries": 2 * times, "wrong": [*wrong, *left]}


if __name__ == "__main__":
    if sys.argv[1] == "without":
        files._system_exchange = lambda: None
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    if len(sys.argv) > 3:
        with tempfile.TemporaryDirectory(dir=memory) as home:
            print(json.dumps(rivals(sys.argv[3], int(sys.argv[2]), Path(home))))
        sys.exit()
    times = int(sys.argv[2])
    with tempfile.TemporaryDirectory(dir=memory) as home:
        place, end = Path(home, "model"), Path(home, "end")
        FOLDER.save(place, 0)
        children = []
        for first in (1, 2):
            children.append(os.fork())
            if not children[-1]:
                end_after(lambda first=first: write_until(end, place, first))
        other = os.fork()
        if not other:
            end_after(lambda: Path(home, "other.json").write_text(json.dumps(read_often(times, place))))
        wrong = read_often(times, place)
        ended = [os.waitpid(other, 0)[1]]
        end.touch()
        ended += [os.waitpid(child, 0)[1] for child in children]
        wrong += json.loads(Path(home, "other.json").read_text())
        wrong += [f"a program ended with {status}" for status in ended if status]
        wrong += [name for name in os.listdir(home) if name not in ("model", "other.json", "end")]
        print(json.dumps({"format": "sealed folder", "tries": 2 * times, "wrong": wrong}))
