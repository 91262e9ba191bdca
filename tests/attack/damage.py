"""Run by test_damage: load saves with flipped bits, cuts, holes and files that are missing or of another save.

``plain`` damage must be named or change nothing. ``sealed`` damage has its seal written anew, as by one who makes
up a model: then any answer will do, but no traceback, crash or endless loop.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from formats import FORMATS, seal_again

SECONDS = 20  # of the processor
SEALED = set(FORMATS) - {"diffusion run", "store", "store file"}  # a whole file of another save is noticed


def damage(path: Path, other: Path, rng: np.random.Generator) -> str:
    """Damage a file in one of many ways, and say how."""
    data = bytearray(path.read_bytes())
    at = int(rng.integers(len(data)))
    way = str(rng.choice(["flip", "flip", "cut", "zeros", "noise", "grow", "empty", "remove", "other save"]))
    if way == "flip":
        data[at] ^= 1 << int(rng.integers(8))
    elif way == "cut":
        del data[at:]
    elif way in ("zeros", "noise"):
        part = data[at : at + 16]
        data[at : at + 16] = bytes(len(part)) if way == "zeros" else rng.bytes(len(part))
    elif way == "grow":
        data += b"more"
    elif way == "other save" and other.is_file():
        data = bytearray(other.read_bytes())
    if way == "remove":
        path.unlink()
    else:
        path.write_bytes(b"" if way == "empty" else data)
    return f"{way} of {path.name} at {at}"


def outcome(name: str, place: Path, known: str | None) -> str:
    """In a child: what loading gives; an empty text if all is well."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        text = ""
        try:
            if FORMATS[name].answer(place) != known and known is not None:
                text = "another answer, in silence"
        except (ValueError, FileNotFoundError) as error:
            said = str(error)
            if str(place) not in said or "\n" in said:
                text = f"the file is not named: {said!r:.200}"
        except BaseException as error:
            text = f"{error!r:.200}"
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else text


def attack(name: str, home: Path, tries: int, sealed: bool) -> dict[str, Any]:
    for version in (0, 1):
        FORMATS[name].save(home / str(version), version)
    known = None if sealed else FORMATS[name].answer(home / "0")
    paths = sorted(p.relative_to(home / "0") for p in (home / "0").rglob("*") if p.is_file())
    rng = np.random.default_rng(0)
    wrong = []
    for number in range(tries):
        place = home / "damaged"
        shutil.copytree(home / "0", place)
        path = paths[number % len(paths)]
        how = damage(place / path, home / "1" / path if name in SEALED else home / "no other", rng)
        if sealed:
            seal_again(place)
        found = outcome(name, place, known)
        if found:
            wrong.append(f"{how}: {found}")
        shutil.rmtree(place)
    return {"format": name, "tries": tries, "wrong": wrong}


if __name__ == "__main__":
    mode, count, *names = sys.argv[1:]
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    for chosen in names:
        with tempfile.TemporaryDirectory(dir=memory) as folder:
            for sealed in (False, True):
                if mode in ("both", "sealed" if sealed else "plain"):
                    home = Path(folder, str(sealed))
                    print(json.dumps(attack(chosen, home, int(count), sealed)), flush=True)
