"""Saves that are killed, damaged, or read and written at once: nothing lost, nothing mixed, every damage named."""

from __future__ import annotations

import os
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from equipoise._core import files

CLASSIFIERS = ["classifier", "meta", "conditional", "autoencoder", "diffusion"]
ADVISORS = ["advisor", "advisor with forests", "advisor with a network", "advisor with an auto-encoder"]
if find_spec("catboost"):
    ADVISORS.append("advisor with CatBoost")
KILLED = ["classifier", "diffusion", "diffusion run", "retune", "report", "store"]


def survived(found, tally, what, key):
    for line in found:
        tally(f"{what}: {line['format']}", line[key], line[key] - len(line["wrong"]))
    assert not [wrong for line in found for wrong in line["wrong"]]


def test_the_harness_notices_a_careless_save(attack):
    (found,) = attack("kills.py", "1", "with", "careless")
    assert found["wrong"]


def test_killed_at_every_file_operation_of_a_small_save(attack, tally):
    for exchange in ("with", "without"):
        found = attack("kills.py", "1", exchange, "sealed folder", "page and folder")
        survived(found, tally, f"kill, {exchange} exchange", "kills")


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_killed_at_every_file_operation(attack, tally):
    survived(attack("kills.py", "1", "with", *KILLED), tally, "kill, with exchange", "kills")
    survived(attack("kills.py", "1", "without", "retune"), tally, "kill, without exchange", "kills")


def test_some_damaged_files(attack, tally):
    survived(attack("damage.py", "both", "5", "logistic advisor", "store file"), tally, "damage", "tries")


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_two_thousand_damaged_files(attack, tally):
    names = [*CLASSIFIERS, *ADVISORS, "diffusion run", "store file"]
    survived(attack("damage.py", "plain", "140", *names), tally, "damage", "tries")
    survived(
        attack("damage.py", "sealed", "80", *CLASSIFIERS, *ADVISORS), tally, "damage, sealed again", "tries"
    )


def test_readers_never_see_two_saves_mixed(attack, tally):
    for exchange in ("with", "without"):
        survived(
            attack("readers.py", exchange, "200"), tally, f"read during saves, {exchange} exchange", "tries"
        )


@pytest.mark.slow
def test_two_reports_on_one_folder(attack, tally):
    survived(attack("readers.py", "with", "8", "report"), tally, "two writers", "tries")


@pytest.mark.parametrize("opened", [False, True], ids=["before it is opened", "before it is locked"])
def test_a_sweep_in_the_moment_between_a_name_and_its_lock(tmp_path, monkeypatch, opened):
    """Another writer takes the new temporary folder for a leftover and removes it."""
    fcntl = pytest.importorskip("fcntl")
    lock, flock = files._lock, fcntl.flock
    swept: list[Path] = []

    def sweep() -> None:
        if not swept:
            swept.extend(tmp_path.glob(".equipoise-*.part"))
            swept[0].rmdir()

    def locking(path: Path, *, wait: bool) -> int | None:
        if files._is_temporary(path.name) and not opened:
            sweep()
        return lock(path, wait=wait)

    def waiting(handle: int, how: int) -> None:
        sweep()
        flock(handle, how)

    monkeypatch.setattr(files, "_lock", locking)
    if opened:
        monkeypatch.setattr(fcntl, "flock", waiting)
    with files.replacing_folder(tmp_path / "x") as temporary:
        (temporary / "a").write_text("whole")
    assert swept
    assert (tmp_path / "x" / "a").read_text() == "whole"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_reader_waits_for_the_save_that_took_the_folder_away(tmp_path, monkeypatch):
    """However long that save takes: a reader that only looked twice would say that there is no model."""
    from equipoise._core import sealed

    with sealed.sealing(tmp_path / "x") as temporary:
        (temporary / "a").write_text("whole")
    away, read_seal, savers = threading.Event(), sealed._read_seal, []

    def put_in_place() -> None:
        with files.settled(tmp_path):
            (tmp_path / "x").rename(tmp_path / "y")
            away.set()
            time.sleep(0.2)
            (tmp_path / "y").rename(tmp_path / "x")

    def disturbed(source: Path) -> Any:
        if not savers:
            savers.append(threading.Thread(target=put_in_place))
            savers[0].start()
            away.wait()
        return read_seal(source)

    monkeypatch.setattr(sealed, "_read_seal", disturbed)
    assert sealed.open_sealed(tmp_path / "x").read_bytes("a") == b"whole"
    savers[0].join()


def test_a_lock_ends_with_its_block_though_another_thread_has_forked(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    flock, shared = fcntl.flock, []

    def forking(handle: int, how: int) -> None:
        flock(handle, how)
        shared.append(os.dup(handle))  # a child has the same open file

    monkeypatch.setattr(fcntl, "flock", forking)
    with files.settled(tmp_path):
        pass
    handle = os.open(tmp_path, os.O_RDONLY)
    flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for left in (handle, *shared):
        os.close(left)


def test_a_saved_file_has_the_rights_of_any_new_file_and_nobody_sets_them_for_all_threads(
    tmp_path, monkeypatch
):
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", None)
        files.write_text(tmp_path / "a", "text")
        assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    finally:
        monkeypatch.undo()
        os.umask(before)


def test_a_link_in_the_place_of_a_folder_is_replaced_and_a_file_is_kept(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model").symlink_to(tmp_path / "elsewhere")

    def save() -> None:
        with files.replacing_together(tmp_path / "out") as bundle:
            (bundle / "model").mkdir()
            (bundle / "page").write_text("new")

    save()
    assert not (tmp_path / "out" / "model").is_symlink()
    assert (tmp_path / "elsewhere").is_dir()
    (tmp_path / "out" / "model").rmdir()
    (tmp_path / "out" / "model").write_text("a thesis")
    (tmp_path / "out" / "page").write_text("old")
    with pytest.raises(NotADirectoryError, match="model is a file: choose"):
        save()
    assert (tmp_path / "out" / "model").read_text() == "a thesis"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["model", "page"]
    assert (tmp_path / "out" / "page").read_text() == "old"


def test_all_is_on_the_disk_before_it_is_in_place(tmp_path, monkeypatch):
    """A loss of power after the exchange must not find files whose bytes were never written."""
    flushed: set[int] = set()
    flush, exchange = os.fsync, files._exchange

    def recording(handle: int) -> None:
        flushed.add(os.fstat(handle).st_ino)
        flush(handle)

    def checking(new: Path, target: Path) -> bool:
        assert {path.stat().st_ino for path in (new, *new.rglob("*"))} <= flushed
        return exchange(new, target)

    monkeypatch.setattr(os, "fsync", recording)
    monkeypatch.setattr(files, "_exchange", checking)
    for value in ("one", "two"):
        with files.replacing_folder(tmp_path / "model") as temporary:
            (temporary / "inner").mkdir()
            (temporary / "inner" / "a").write_text(value)
    assert (tmp_path / "model" / "inner" / "a").read_text() == "two"
    assert tmp_path.stat().st_ino in flushed


@pytest.mark.timeout(60)
@pytest.mark.parametrize("exchange", [True, False])
def test_a_folder_saved_twice_inside_a_larger_save_does_not_wait_for_itself(tmp_path, monkeypatch, exchange):
    if not exchange:
        monkeypatch.setattr(files, "_system_exchange", lambda: None)
    with files.replacing_together(tmp_path) as bundle:
        for text in ("first", "second"):
            with files.replacing_folder(bundle / "model") as folder:
                (folder / "a.txt").write_text(text)
    assert (tmp_path / "model" / "a.txt").read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
