"""The Dask engine on a real cluster of two worker processes."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

import bench_cells
from equipoise.bench import Spec, Store, run_study
from equipoise.bench.engines import DaskEngine, EngineError, make_engine
from equipoise.bench.specs.smoke import SPEC as SMOKE

distributed = pytest.importorskip("distributed")


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
    spec = Spec(name="study", title="A study", run_cell=bench_cells.slow_draw, grid=grid)

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
    expected = [bench_cells.draw(i, s)["mean"] for i in range(20) for s in (0, 1)]
    assert frame["mean"].tolist() == expected


def test_failures_come_back_with_their_traceback(tmp_path, cluster):
    spec = Spec(name="study", title="A study", run_cell=bench_cells.odd_fails, grid={"index": list(range(4))})
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
        DaskEngine(empty.scheduler_address, timeout=0.5)
