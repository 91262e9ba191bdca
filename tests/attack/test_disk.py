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


@pytest.mark.parametrize("name", ["logistic advisor", pytest.param("report", marks=pytest.mark.slow)])
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


def test_a_file_that_may_not_grow_is_named(tmp_path):
    code = """
import resource, sys
from pathlib import Path
from equipoise._core.sealed import open_sealed, sealing

def save(text):
    with sealing(place) as temporary:
        (temporary / "text").write_text(text)

place = Path(sys.argv[1], "x")
save("first" * 1000)
for limit in (0, 100, 3000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        save("other" * 1000)
    except OSError as error:
        print(error, open_sealed(place).read_bytes("text") == b"first" * 1000)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == 3, done.stderr
    for line in lines:
        assert "File too large" in line
        assert str(tmp_path / "x") in line
        assert line.endswith("True")


def test_a_folder_that_may_only_be_read_is_named(small_disk):
    kind, place = FORMATS["logistic advisor"], small_disk / "x"
    kind.save(place, 0)
    before = kind.answer(place)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(OSError, match=f"Read-only file system: '{place}'"):
        kind.save(place, 1)
    assert kind.answer(place) == before
