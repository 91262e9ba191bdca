"""Kills, rivals and resumption: the same bits, each cell once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import study_cells
from equipoise.studies import Spec, Store, run_study
from equipoise.studies.cell import CellOutcome
from equipoise.studies.grid import cell_key

SCRIPT = """
import sys, study_cells
from equipoise.studies import Spec, run_study
folder, store, pause, jobs = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
grid = {"index": list(range(12)), "seed": [0, 1], "folder": folder, "pause": pause}
spec = Spec(name="study", title="A study", run_cell=study_cells.slow_draw, grid=grid)
run_study(spec, store, jobs=jobs, resume=True)
"""


def start_runner(folder: Path, store: Path, pause: float = 0.05, jobs: int = 1) -> subprocess.Popen[bytes]:
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-c", SCRIPT, str(folder), str(store), str(pause), str(jobs)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths, "EQUIPOISE_PROGRESS": "0"})


def wait_for(condition, seconds=250.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def table(path: Path) -> list[tuple[object, ...]]:
    """The metrics of every cell as the very text that was stored."""
    with Store(path, read_only=True) as store:
        return store._execute("SELECT key, settings, status, result FROM cells ORDER BY rowid")


def same_study(folder: Path, pause: float = 0.05) -> Spec:
    grid = {"index": list(range(12)), "seed": [0, 1], "folder": str(folder), "pause": pause}
    return Spec(name="study", title="A study", run_cell=study_cells.slow_draw, grid=grid)


def test_resume_after_kill_equals_an_uninterrupted_run(tmp_path):
    ran = tmp_path / "ran"
    ran.mkdir()
    hold = tmp_path / "ran.hold"
    hold.write_text("5")  # so many cells are done
    victim = start_runner(ran, tmp_path / "killed.sqlite", jobs=2)
    wait_for(lambda: len(list(ran.iterdir())) >= 7)  # two of which are held
    wait_for(lambda: any(row[2] == "done" for row in table(tmp_path / "killed.sqlite")))
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    hold.unlink()
    done_before = [row for row in table(tmp_path / "killed.sqlite") if row[2] == "done"]
    assert 0 < len(done_before) < 24
    assert run_study(same_study(ran), tmp_path / "killed.sqlite", jobs=1, resume=True).done == 24
    assert run_study(same_study(ran), tmp_path / "whole.sqlite", jobs=1).done == 24
    assert table(tmp_path / "killed.sqlite") == table(tmp_path / "whole.sqlite")
    assert set(done_before) <= set(table(tmp_path / "killed.sqlite"))


def test_two_runners_share_a_store_and_run_each_cell_once(tmp_path):
    ran = tmp_path / "ran"
    ran.mkdir()
    (tmp_path / "ran.hold").write_text("0")  # until both have begun
    runners = [start_runner(ran, tmp_path / "s.sqlite") for _ in range(2)]
    wait_for(lambda: len(list(ran.iterdir())) == 2)
    (tmp_path / "ran.hold").unlink()
    assert [runner.wait(timeout=250) for runner in runners] == [0, 0]
    rows = table(tmp_path / "s.sqlite")
    assert [row[2] for row in rows] == ["done"] * 24
    marks = [path.name.split("-") for path in ran.iterdir()]
    assert len(marks) == 24  # nobody ran a cell that another had
    assert len({mark[2] for mark in marks}) == 2  # both took part


def registered(path, n=3):
    spec = Spec(name="study", title="A study", run_cell=study_cells.draw, grid={"index": list(range(n))})
    store = Store(path)
    store.register(spec, spec.cells())
    return store, spec, [cell_key("study", cell) for cell in spec.cells()]


def test_a_cell_belongs_to_one_runner_until_its_lease_ends(tmp_path, monkeypatch):
    first, _, keys = registered(tmp_path / "s.sqlite")
    with first, Store(tmp_path / "s.sqlite") as second:
        assert first.claim(keys[0])
        assert not second.claim(keys[0])
        assert not second.finish(CellOutcome(keys[0], "{}"))  # not the holder
        now = time.time()
        monkeypatch.setattr("equipoise.studies.store.time.time", lambda: now + 10_000)
        assert second.claim(keys[0])  # the lease of the first has run out
        assert not first.finish(CellOutcome(keys[0], "{}"))  # too late, the result is dropped
        assert second.finish(CellOutcome(keys[0], "{}"))
        assert not second.finish(CellOutcome(keys[0], "{}"))  # done is done
        assert first.statuses(keys)[keys[0]] == "done"


def test_cells_of_a_runner_that_is_gone_are_free_at_once(tmp_path):
    store, _, keys = registered(tmp_path / "s.sqlite")
    with store:
        store.claim(keys[0])
        host, _, start, tail = store.owner.split("|")
        store._execute(
            "UPDATE cells SET owner=? WHERE key=?", (f"{host}|{2**22 + 1}|{start}|{tail}", keys[0])
        )
        store.claim(keys[1])
        store.release_dead()
        assert store.statuses(keys) == {keys[0]: "pending", keys[1]: "running", keys[2]: "pending"}


def test_an_interrupted_run_gives_its_cells_back(tmp_path):
    def interrupted(index):
        if index == 1:
            raise KeyboardInterrupt
        return {"value": index}

    spec = Spec(name="study", title="A study", run_cell=interrupted, grid={"index": [0, 1, 2]})
    with pytest.raises(KeyboardInterrupt):
        run_study(spec, tmp_path / "s.sqlite", jobs=1)
    with Store(tmp_path / "s.sqlite") as store:
        counts = store.counts([cell_key("study", cell) for cell in spec.cells()])
    assert (counts.done, counts.running, counts.pending) == (1, 0, 2)


def test_failed_cells_are_kept_unless_asked_for(tmp_path):
    spec = Spec(name="study", title="A study", run_cell=study_cells.odd_fails, grid={"index": list(range(4))})
    run_study(spec, tmp_path / "s.sqlite", jobs=1)
    assert run_study(spec, tmp_path / "s.sqlite", jobs=1, resume=True).failed == 2
    mended = Spec(name="study", title="A study", run_cell=study_cells.draw, grid={"index": list(range(4))})
    counts = run_study(mended, tmp_path / "s.sqlite", jobs=1, resume=True, retry_failed=True)
    assert (counts.done, counts.failed) == (4, 0)
