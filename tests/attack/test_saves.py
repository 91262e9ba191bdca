"""Saves that are killed, damaged, or read and written at once: nothing lost, nothing mixed, every damage named."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from equipoise._core import files

CLASSIFIERS = ["classifier", "meta", "conditional", "autoencoder", "diffusion"]
ADVISORS = ["advisor", "advisor with CatBoost", "advisor with forests"]
KILLED = ["classifier", "diffusion", "diffusion run", "retune", "report", "store"]


def survived(found, tally, what, key):
    for line in found:
        tally(f"{what}: {line['format']}", line[key], line[key] - len(line["wrong"]))
    assert not [wrong for line in found for wrong in line["wrong"]]


def test_the_harness_notices_a_careless_save(attack):
    (found,) = attack("kills.py", "1", "with", "careless")
    assert found["wrong"]


def test_killed_at_some_file_operations(attack, tally):
    survived(attack("kills.py", "40", "with", "report", "store"), tally, "kill", "kills")


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_killed_at_every_file_operation(attack, tally):
    survived(attack("kills.py", "1", "with", *KILLED), tally, "kill", "kills")
    survived(attack("kills.py", "1", "without", "retune"), tally, "kill, no exchange", "kills")


def test_some_damaged_files(attack, tally):
    survived(attack("damage.py", "both", "16", "logistic advisor", "store file"), tally, "damage", "tries")


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
        (found,) = attack("readers.py", exchange, "2")
        assert found["tries"] > 20
        survived([found], tally, f"read during saves, {exchange} exchange", "tries")


@pytest.mark.slow
def test_two_reports_on_one_folder(attack, tally):
    survived(attack("readers.py", "with", "8", "report"), tally, "two writers", "tries")


def test_a_sweep_in_the_moment_between_a_name_and_its_lock(tmp_path, monkeypatch):
    """Another writer takes the new temporary folder for a leftover, locks it first, and then removes it."""
    fcntl = pytest.importorskip("fcntl")
    make, sweepers = tempfile.mkdtemp, []

    def swept(**named: Any) -> str:
        name = make(**named)
        if not sweepers:
            handle = os.open(name, os.O_RDONLY)
            fcntl.flock(handle, fcntl.LOCK_EX)
            sweepers.append(threading.Timer(0.2, lambda: (files._remove(Path(name)), os.close(handle))))
            sweepers[0].start()
        return name

    monkeypatch.setattr(tempfile, "mkdtemp", swept)
    with files.replacing_folder(tmp_path / "x") as temporary:
        sweepers[0].join(5)
        (temporary / "a").write_text("whole")
    assert (tmp_path / "x" / "a").read_text() == "whole"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


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


@pytest.mark.timeout(20)
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
