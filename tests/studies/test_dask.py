"""The Dask engine on a real cluster of two worker processes."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import study_cells
from equipoise.studies import Spec, Store, run_study
from equipoise.studies.engines import DaskEngine, EngineError, make_engine
from equipoise.studies.smoke import SPEC as SMOKE

distributed = pytest.importorskip("distributed")

SCHEDULER = """
import time
from distributed import LocalCluster
if __name__ == "__main__":
    one = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with LocalCluster(**one, protocol="tcp", dashboard_address=":0", silence_logs=50) as cluster:
        print(cluster.scheduler_address, flush=True)
        time.sleep(600)
"""


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as found:
        yield found


def test_every_cell_is_done_once_though_a_worker_is_killed(tmp_path, cluster):
    ran = tmp_path / "ran"
    ran.mkdir()
    grid = {"index": list(range(20)), "seed": [0, 1], "folder": str(ran), "pause": 0.1}
    spec = Spec(name="study", title="A study", run_cell=study_cells.slow_draw, grid=grid)

    def kill_one():
        while len(list(ran.iterdir())) < 6:
            time.sleep(0.02)
        os.kill(int(next(ran.iterdir()).name.split("-")[2]), signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    counts = run_study(spec, tmp_path / "s.sqlite", engine=cluster.scheduler_address)
    killer.join()
    assert (counts.done, counts.failed, counts.left) == (40, 0, 0)
    with Store(tmp_path / "s.sqlite") as store:
        frame = store.frame("study")
        assert {record["attempts"] for record in store.records("study")} == {1}
    pids = {path.name.split("-")[2] for path in ran.iterdir()}
    assert len(pids) >= 2
    assert len(frame) == 40
    expected = [study_cells.draw(i, s)["mean"] for i in range(20) for s in (0, 1)]
    assert frame["mean"].tolist() == expected


def test_failures_come_back_with_their_traceback(tmp_path, cluster):
    spec = Spec(name="study", title="A study", run_cell=study_cells.odd_fails, grid={"index": list(range(4))})
    address = cluster.scheduler_address.replace("tcp://", "dask://")
    counts = run_study(spec, tmp_path / "s.sqlite", engine=address)
    assert (counts.done, counts.failed) == (2, 2)
    with Store(tmp_path / "s.sqlite") as store:
        assert "cell 1 is odd" in list(store.records("study"))[1]["error"]


def test_smoke_gives_the_same_bits_on_both_engines(tmp_path, cluster):
    run_study(SMOKE, tmp_path / "local.sqlite", size="tiny", jobs=1)
    run_study(SMOKE, tmp_path / "dask.sqlite", size="tiny", engine=cluster.scheduler_address)
    frames = []
    for name in ("local", "dask"):
        with Store(tmp_path / f"{name}.sqlite", read_only=True) as store:
            frames.append(store.frame("smoke").filter(regex="^(?!.*_seconds|cell_memory)"))
    assert len(frames[0]) == len(SMOKE.cells("tiny"))
    assert frames[0].equals(frames[1])


def test_a_cluster_that_is_not_there_or_has_no_workers():
    with pytest.raises(EngineError, match=r"no Dask cluster answers at tcp://127.0.0.1:9"):
        make_engine("dask://127.0.0.1:9")
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as empty,
        pytest.raises(EngineError, match=r"has no workers"),
    ):
        DaskEngine(empty.scheduler_address, timeout=3)


def test_a_cluster_that_goes_away_loses_nothing_that_was_done(tmp_path):
    ran = tmp_path / "ran"
    ran.mkdir()
    hold = tmp_path / "ran.hold"
    hold.write_text("5")  # so many cells are done
    grid = {"index": list(range(30)), "seed": 0, "folder": str(ran), "pause": 0.1}
    spec = Spec(name="study", title="A study", run_cell=study_cells.slow_draw, grid=grid)
    paths = os.pathsep.join(path for path in sys.path if path)
    scheduler = subprocess.Popen(
        [sys.executable, "-c", SCHEDULER],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    try:
        address = scheduler.stdout.readline().strip()

        def end_it():
            while len(list(ran.iterdir())) < 6:
                time.sleep(0.02)
            with Store(tmp_path / "s.sqlite", read_only=True) as store:
                while not len(store.frame("study")):
                    time.sleep(0.02)
            scheduler.kill()

        ending = threading.Thread(target=end_it)
        ending.start()
        with pytest.raises(EngineError, match=r"has gone; finished cells are kept"):
            run_study(spec, tmp_path / "s.sqlite", engine=address)
        ending.join()
    finally:
        scheduler.kill()
        scheduler.communicate()
    hold.unlink()
    with Store(tmp_path / "s.sqlite") as store:
        done = len(store.frame("study"))
        assert 0 < done < 30
        assert not store.frame("study", status="running").size
    assert run_study(spec, tmp_path / "s.sqlite", jobs=1, resume=True).done == 30


class Unloadable:
    """Can be sent, but not received: as with a module that the workers do not have."""

    def __call__(self, index):
        raise AssertionError("must not run")

    def __reduce__(self):
        return importlib.import_module, ("no_such_module",)


def test_workers_that_cannot_run_the_cells_end_the_run_and_fail_no_cell(tmp_path, cluster):
    spec = Spec(name="study", title="A study", run_cell=Unloadable(), grid={"index": [0, 1, 2]})
    with pytest.raises(EngineError, match=r"cannot run the study's cells: .*no_such_module"):
        run_study(spec, tmp_path / "s.sqlite", engine=cluster.scheduler_address)
    with Store(tmp_path / "s.sqlite") as store:
        assert {record["status"] for record in store.records("study")} == {"pending"}


@pytest.mark.slow
def test_the_whole_smoke_study_takes_under_two_minutes_on_either_engine(tmp_path, cluster):
    for name, engine in (("local", {"jobs": 2}), ("dask", {"engine": cluster.scheduler_address})):
        start = time.monotonic()
        counts = run_study(SMOKE, tmp_path / f"{name}.sqlite", **engine)
        assert counts.done == len(SMOKE.cells())
        assert time.monotonic() - start < 120
