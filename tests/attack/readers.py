"""Run by test_saves: two programs save over one folder again and again while two others read it.

With the name of a format two programs save it, each its own version, and the last save must be whole.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
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


def write_for(seconds: float, place: Path, first: int) -> None:
    end = time.monotonic() + seconds
    value = first
    while time.monotonic() < end:
        FOLDER.save(place, value)
        value += 2 * (value % 7 != 0)  # at times the same bytes again
        value += 2 * (value % 7 == 0)


def read_for(seconds: float, place: Path) -> tuple[int, list[str]]:
    end, reads, wrong = time.monotonic() + seconds, 0, []
    while time.monotonic() < end:
        reads += 1
        try:
            if not (answer := FOLDER.answer(place)).isdigit():
                wrong.append(f"mixed {answer}")
        except Exception as error:
            wrong.append(repr(error))
    return reads, wrong


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
    ended = [os.WEXITSTATUS(os.waitpid(child, 0)[1]) for child in children]
    wrong = [f"a writer ended with {code}" for code in ended if code]
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
    seconds = float(sys.argv[2])
    with tempfile.TemporaryDirectory(dir=memory) as home:
        place = Path(home, "model")
        FOLDER.save(place, 0)
        children = []
        for first in (1, 2):
            children.append(os.fork())
            if not children[-1]:
                end_after(lambda first=first: write_for(seconds, place, first))
        other = os.fork()
        if not other:
            end_after(lambda: Path(home, "other.json").write_text(json.dumps(read_for(seconds, place))))
        reads, wrong = read_for(seconds, place)
        ended = [os.WEXITSTATUS(os.waitpid(child, 0)[1]) for child in (*children, other)]
        more, errors = json.loads(Path(home, "other.json").read_text())
        wrong += errors + [f"a writer ended with {code}" for code in ended if code]
        wrong += [name for name in os.listdir(home) if name not in ("model", "other.json")]
        print(json.dumps({"format": "sealed folder", "tries": reads + more, "wrong": wrong}))
