"""Workers, schedulers and clients of a Dask cluster, killed in turn until a study has been through them all."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import study_cells
from equipoise.studies import Store

pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

KILLS, CELLS = 30, 400

CLUSTER = """
import time
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster:
        print(cluster.scheduler_address, flush=True)
        time.sleep(1800)
"""

CLIENT = """
import sys
import study_cells
from equipoise.studies import Spec, run_study
from equipoise.studies.engines import EngineError
if __name__ == "__main__":
    folder, address = sys.argv[1:]
    grid = {"index": list(range(%d)), "seed": 0, "folder": folder + "/ran", "pause": 0.05}
    spec = Spec(name="study", title="A study", run_cell=study_cells.slow_draw, grid=grid)
    try:
        run_study(spec, folder + "/s.sqlite", engine=address, resume=True, verbose=False)
    except EngineError as error:
        sys.exit(f"said: {error}")
"""


def _started(program: str, *arguments: str) -> subprocess.Popen[str]:
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )


def _wait_for(ready: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "nothing moved for too long"
        time.sleep(0.02)


class Run:
    """A cluster and the client that runs a study on it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ran = folder, folder / "ran"
        self.ran.mkdir()
        self.begin_cluster()
        self.begin_client()

    def begin_cluster(self) -> None:
        self.cluster = _started(CLUSTER)
        assert self.cluster.stdout is not None
        self.address = self.cluster.stdout.readline().strip()

    def begin_client(self) -> None:
        self.client = _started(CLIENT % CELLS, str(self.folder), self.address)

    def kill_worker(self) -> None:
        newest = max(self.ran.iterdir(), key=lambda path: int(path.name.split("-")[3]))
        os.kill(int(newest.name.split("-")[2]), signal.SIGKILL)

    def kill_scheduler(self) -> None:
        self.cluster.kill()
        self.cluster.communicate()
        _, said = self.client.communicate(timeout=120)
        assert self.client.returncode == 1
        assert said.splitlines()[-1].startswith("said: ")
        assert "Traceback" not in said, said
        self.begin_cluster()
        self.begin_client()

    def kill_client(self) -> None:
        self.client.kill()
        self.client.communicate()
        self.begin_client()

    def end(self) -> None:
        for process in (self.client, self.cluster):
            process.kill()
            process.communicate()


def test_a_cluster_that_is_killed_again_and_again(tmp_path, tally):
    run = Run(tmp_path)
    try:
        kinds = itertools.cycle((run.kill_worker, run.kill_scheduler, run.kill_client))
        for kill in itertools.islice(kinds, KILLS):
            begun = len(list(run.ran.iterdir()))
            _wait_for(lambda begun=begun: len(list(run.ran.iterdir())) >= begun + 3)
            kill()
        _, said = run.client.communicate(timeout=600)
        assert run.client.returncode == 0, said
    finally:
        run.end()
    with Store(tmp_path / "s.sqlite", read_only=True) as store:
        frame = store.frame("study")
        assert {record["status"] for record in store.records("study")} == {"done"}
    assert frame["mean"].tolist() == [study_cells.draw(index)["mean"] for index in range(CELLS)]
    tally("workers, schedulers and clients of a cluster killed", KILLS, KILLS)
