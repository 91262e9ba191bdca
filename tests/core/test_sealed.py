"""Sealed folders: whole or absent, one save at a time, every damage named."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

from equipoise._core import files
from equipoise._core.files import DamagedFileError, recover, replacing_folder, replacing_together
from equipoise._core.sealed import SEAL, open_sealed, sealing


def save(folder: Path, value: int) -> None:
    with sealing(folder) as temporary:
        files.write_json(temporary / "a.json", {"value": value})
        (temporary / "inner").mkdir()
        np.savez(temporary / "inner" / "b.npz", x=np.full(3, value))


def read(folder: Path) -> int:
    saved = open_sealed(folder)
    value = saved.read_json("a.json")["value"]
    assert ((saved / "inner").read_arrays("b.npz", "x")["x"] == value).all()
    return value


@pytest.fixture(params=["exchange", "rename"])
def both_ways(request, monkeypatch):
    """With the kernel's exchange and without."""
    if request.param == "rename":
        monkeypatch.setattr(files, "_system_exchange", lambda: None)
    elif files._system_exchange() is None:
        pytest.skip("this system cannot exchange two names")


@pytest.mark.usefixtures("both_ways")
def test_a_save_replaces_the_last_one_and_leaves_nothing_else(tmp_path):
    for value in (1, 2, 3):
        save(tmp_path / "model", value)
        assert read(tmp_path / "model") == value
        assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_equal_saves_have_equal_bits(tmp_path):
    for name in ("one", "other"):
        with sealing(tmp_path / name) as temporary:
            files.write_json(temporary / "a.json", {})
    assert (tmp_path / "one" / SEAL).read_bytes() == (tmp_path / "other" / SEAL).read_bytes()


def test_every_changed_byte_is_noticed(tmp_path):
    save(tmp_path / "model", 1)
    for path in [p for p in (tmp_path / "model").rglob("*") if p.is_file()]:
        whole = path.read_bytes()
        for place in range(0, len(whole), 7):
            flipped = bytearray(whole)
            flipped[place] ^= 1
            path.write_bytes(flipped)
            with pytest.raises(DamagedFileError, match=r"a\.json|b\.npz|seal\.json"):
                read(tmp_path / "model")
        path.write_bytes(whole)
    assert read(tmp_path / "model") == 1


@pytest.mark.parametrize(
    "seal",
    [
        b"[]", b"{}", b"[" * 10_000, b"\xff", b'{"format": 2, "files": {}}', b'{"format": 1, "files": []}',
        b'{"format": 1, "files": {"../secret": {"bytes": 1, "sha256": ""}}}',
        b'{"format": 1, "files": {"/etc/passwd": {"bytes": 1, "sha256": ""}}}',
        b'{"format": 1, "files": {"pipe": {"bytes": 1, "sha256": ""}}}',
        b'{"format": 1, "files": {"a.json": null}}',
    ],
)  # fmt: skip
def test_a_made_up_seal_is_refused(tmp_path, seal):
    save(tmp_path / "model", 1)
    os.mkfifo(tmp_path / "model" / "pipe")  # reading it would wait for ever
    (tmp_path / "model" / SEAL).write_bytes(seal)
    with pytest.raises(DamagedFileError, match=str(tmp_path)):
        open_sealed(tmp_path / "model")
    if seal.startswith(b'{"'):  # with the right checksum, as an attacker would write it
        files.write_checked_json(tmp_path / "model" / SEAL, json.loads(seal))
    with pytest.raises(DamagedFileError, match=str(tmp_path)):
        open_sealed(tmp_path / "model")


def test_an_array_larger_than_its_file_is_not_made(tmp_path):
    with sealing(tmp_path / "model") as temporary:
        np.savez(temporary / "b.npz", x=np.zeros(3))
        data = (temporary / "b.npz").read_bytes()
        header = b"'shape': (3,), "
        assert header in data
        import io
        import zipfile

        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            inner = zipfile.ZipFile(io.BytesIO(data)).read("x.npy")
            archive.writestr("x.npy", inner.replace(header, b"'shape': (10**12,),"[: len(header)]))
            archive.writestr("y.npy", inner.replace(b"(3,), }  ", b"(3333,),}"))
        (temporary / "b.npz").write_bytes(made.getvalue())
    saved = open_sealed(tmp_path / "model")
    for name in ("x", "y", "absent"):
        with pytest.raises(DamagedFileError, match=r"b\.npz is not usable"):
            saved.read_arrays("b.npz", name)


def test_foreign_folders_are_not_overwritten(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("years")
    with pytest.raises(FileExistsError, match="did not save"):
        save(tmp_path / "home", 1)
    assert (tmp_path / "home" / "thesis.txt").read_text() == "years"
    with pytest.raises(FileNotFoundError, match=r"no seal\.json"):
        open_sealed(tmp_path / "home")
    with pytest.raises(NotADirectoryError, match="is a file"):
        save(tmp_path / "home" / "thesis.txt", 1)


def test_leftovers_of_dead_programs_go_and_those_in_use_stay(tmp_path):
    (tmp_path / ".equipoise-dead.part").mkdir()
    (tmp_path / ".equipoise-dead2.part").write_text("half")
    (tmp_path / ".equipoise-notes.txt").write_text("the user's")
    with replacing_folder(tmp_path / "one") as busy:
        save(tmp_path / "two", 2)
        assert busy.is_dir()
    assert sorted(p.name for p in tmp_path.iterdir()) == [".equipoise-notes.txt", "one", "two"]


def test_what_changes_together_is_completed_after_a_kill(tmp_path, monkeypatch):
    def write(value: int) -> None:
        with replacing_together(tmp_path) as temporary:
            files.write_text(temporary / "page.html", str(value))
            save(temporary / "model", value)

    (tmp_path / "other").write_text("stays")
    write(1)
    for survived in range(20):  # die before each rename of the second write
        calls = [0]
        plain = (Path.rename, Path.replace)

        def dying(which, calls=calls, plain=plain, survived=survived):
            def call(self, target):
                calls[0] += 1
                if calls[0] > survived:
                    raise KeyboardInterrupt
                return plain[which](self, target)

            return call

        before = (tmp_path / "page.html").read_text()
        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", dying(0))
            patch.setattr(Path, "replace", dying(1))
            try:
                write(survived + 2)
            except KeyboardInterrupt:
                pass
            else:
                break
        recover(tmp_path)
        now = (tmp_path / "page.html").read_text()
        assert now in (before, str(survived + 2))
        assert read(tmp_path / "model") == int(now)
        assert (tmp_path / "other").read_text() == "stays"
    assert 3 < survived < 19
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "other", "page.html"]


def test_a_full_disk_names_the_file(tmp_path):
    def full(folder: bool) -> None:
        with (replacing_folder if folder else files.replacing)(tmp_path / "model") as temporary:
            if folder:
                raise OSError(errno.ENOSPC, "No space left on device", str(temporary / "a.json"))
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"No space left on device: '.*/model/a\.json'"):
        full(True)
    with pytest.raises(OSError, match=r"No space left on device: '.*/model'"):
        full(False)


def test_checked_json_notices_every_change(tmp_path):
    path = tmp_path / "run.json"
    files.write_checked_json(path, {"steps": 100, "rate": 0.5})
    assert files.read_checked_json(path) == {"steps": 100, "rate": 0.5}
    path.write_text(path.read_text().replace("100", "900"))
    with pytest.raises(DamagedFileError, match=r"run\.json is damaged"):
        files.read_checked_json(path)
    path.write_text(json.dumps([1]))
    with pytest.raises(DamagedFileError, match=r"run\.json is damaged"):
        files.read_checked_json(path)
