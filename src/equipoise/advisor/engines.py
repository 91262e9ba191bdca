"""Where fits run: on this machine's threads, or on a Dask cluster."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from equipoise._core.checks import BoolArray
from equipoise._core.cluster import EngineError, cluster_address, connect, distributed
from equipoise.advisor.bags import FoldJob, Rows, Run
from equipoise.advisor.treatments._boosted import LightGBMTrees
from equipoise.datasets.blocks import Block

_TRIES = 3  # of work that was lost with a worker
_USABLE = 0.75  # of a worker's memory: Dask pauses a worker at 80 %


@contextmanager
def running(engine: str, n_jobs: int, rows: Rows) -> Iterator[Run | None]:
    """What runs the jobs of a bag: ``None`` for one after the other.

    Parameters
    ----------
    engine : str
        ``local``, or the address of a Dask cluster.
    n_jobs : int
        Threads of this machine.
    rows : Rows
        What all jobs are fitted to; they are sent to a cluster once.
    """
    address = cluster_address(engine)
    if address is None:
        yield _on_threads(n_jobs) if n_jobs > 1 else None
        return
    with _client(address) as client:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            # as a task's own argument, not scattered: the scheduler can make it again if a worker is lost
            sent = client.submit(_itself, rows, pure=False)

        def run(jobs: list[FoldJob]) -> list[Any]:
            light = [replace(job, rows=None) for job in jobs]

            def attempt() -> list[Any]:
                return list(client.gather([client.submit(_fit, job, sent, pure=False) for job in light]))

            return _again_if_lost(attempt, address)

        yield run


def rows_on_cluster(engine: str, width: int) -> int:
    """About how many rows the workers can boost on without one of them running out of memory.

    A worker holds its rows as 4-byte numbers, once more as the single array that LightGBM makes of them, and as
    bins of one byte.

    Parameters
    ----------
    engine : str
        The address of a Dask cluster.
    width : int
        Numbers in a row.
    """
    address = cluster_address(engine)
    assert address is not None
    with _client(address) as client:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
    free = [_USABLE * w["memory_limit"] - w["metrics"]["memory"] for w in workers if w["memory_limit"]]
    if len(free) < len(workers):
        return 10**12  # a worker without a limit
    return int(len(free) * max(min(free), 0) / (9 * width + 16))


def boost_on_cluster(
    engine: str,
    trees: LightGBMTrees,
    blocks: Sequence[Block],
    kept: Sequence[BoolArray],
    encoder: Any,
    n_classes: int,
) -> None:
    """Boost on blocks that the workers read and keep: no machine ever holds all rows.

    Parameters
    ----------
    engine : str
        The address of a Dask cluster.
    trees : LightGBMTrees
        Fitted here.
    blocks : sequence of Block
        They must be readable where the workers run.
    kept : sequence of arrays of bool
        Which rows of each block to use.
    encoder : TableEncoder
    n_classes : int
    """
    import dask.array
    from dask.delayed import delayed
    from lightgbm import DaskLGBMClassifier

    array: Any = dask.array

    address = cluster_address(engine)
    assert address is not None
    width = encoder.n_features_out_
    made = [
        (block.y[own], delayed(_encoded)(block, own, encoder))
        for block, own in zip(blocks, kept, strict=True)
        if own.any()
    ]
    X = array.concatenate([array.from_delayed(rows, (len(y), width), np.float32) for y, rows in made])
    y = array.concatenate([array.from_array(y, chunks=len(y)) for y, _ in made])
    settings = {
        **trees.boosting_params(n_classes, len(y)),
        "n_estimators": trees.rounds,
    }
    settings = {k: v for k, v in settings.items() if k not in ("num_threads", "num_class", "metric")}

    def attempt() -> Any:
        with _client(address) as client, warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # LightGBM says that it ignores a number of threads that nobody set
            held_X, held_y = client.persist([X, y])

            def fit() -> Any:
                with client.as_current():
                    return DaskLGBMClassifier(client=client, **settings).fit(held_X, held_y)

            return _while_complete(client, fit)

    trees.take_booster(_again_if_lost(attempt, address).booster_, n_classes)


def _while_complete(client: Any, work: Callable[[], Any]) -> Any:
    """What ``work`` returns; if a worker is lost, LightGBM would wait for it for ever, so the work is given up."""
    began = set(client.scheduler_info(n_workers=-1)["workers"])
    done: dict[str, Any] = {}

    def target() -> None:
        try:
            done["result"] = work()
        except Exception as error:
            done["error"] = error

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(1.0)
        if not began <= set(client.scheduler_info(n_workers=-1)["workers"]):
            raise _WorkerLost("a worker was lost")
    if "error" in done:
        raise _WorkerLost(str(done["error"])) from done["error"]
    return done["result"]


class _WorkerLost(OSError):
    pass


@contextmanager
def _client(address: str) -> Iterator[Any]:
    client = connect(address)
    try:
        yield client
    finally:
        client.close()


def _again_if_lost(attempt: Callable[[], Any], address: str) -> Any:
    """The result of ``attempt``, which is tried again where a worker was lost in the middle."""
    lost = (OSError, CancelledError, distributed().KilledWorker)
    for _ in range(_TRIES - 1):
        try:
            return attempt()
        except lost:
            time.sleep(1.0)
    try:
        return attempt()
    except lost as error:
        raise EngineError(f"the Dask cluster at {address} failed {_TRIES} times: {error}") from error


def _itself(rows: Rows) -> Rows:
    return rows


def _fit(job: FoldJob, rows: Rows) -> Any:
    return job(rows)


def _encoded(block: Block, kept: BoolArray, encoder: Any) -> Any:
    encoded = encoder.transform(block.read())
    return np.ascontiguousarray(encoded if kept.all() else encoded[kept], dtype=np.float32)


def _on_threads(n_jobs: int) -> Run:
    """Runs jobs on several threads; the learners leave Python while they fit."""
    from joblib import Parallel, delayed

    return lambda jobs: list(Parallel(n_jobs=n_jobs, prefer="threads")(delayed(job)() for job in jobs))
