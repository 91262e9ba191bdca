"""Disks that are full or may only be read: the file is named and the last save stays."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from attack.formats import FORMATS


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes, where this user may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("name", ["advisor", "report"])
def test_a_full_disk_keeps_the_last_save(small_disk, name, tally):
    kind, place = FORMATS[name], small_disk / "x"
    kind.save(place, 0)
    before = kind.answer(place)
    failed = 0
    size = sum(path.stat().st_size for path in place.rglob("*"))
    for left in range(0, size, size // 8):  # from a disk without a free page to one with room for almost all
        filler = small_disk / "filler"
        with filler.open("wb") as file:
            free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
            file.write(bytes(max(free - left, 0)))
        said = ""
        try:
            kind.save(place, 1)
        except OSError as error:
            said = str(error)
        if said:
            assert f"No space left on device: '{small_disk}" in said
            assert ".part" not in said
            failed += 1
            assert kind.answer(place) == before
        filler.unlink()
        kind.save(place, 0)
    assert failed > 3
    tally(f"full disk: {name}", failed, failed)
    assert sorted(path.name for path in small_disk.iterdir()) == ["x"]


@pytest.mark.parametrize("limit", [0, 100, 3000])
def test_a_file_that_may_not_grow_is_named(tmp_path, limit):
    code = """
import resource, sys
from pathlib import Path
from attack.formats import FORMATS
kind, place = FORMATS["advisor"], Path(sys.argv[1], "x")
kind.save(place, 0)
before = kind.answer(place)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    kind.save(place, 1)
except OSError as error:
    print(error, kind.answer(place) == before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), str(limit)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert "File too large" in done.stdout, done.stderr
    assert str(tmp_path / "x") in done.stdout
    assert done.stdout.endswith("True\n")


def test_a_folder_that_may_only_be_read_is_named(small_disk):
    kind, place = FORMATS["advisor"], small_disk / "x"
    kind.save(place, 0)
    before = kind.answer(place)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(OSError, match=f"Read-only file system: '{place}'"):
        kind.save(place, 1)
    assert kind.answer(place) == before
