"""Where fits run: on this machine's threads, or on a Dask cluster."""

from __future__ import annotations

import ctypes
import gc
import math
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlparse

import numpy as np

from equipoise._core.checks import BoolArray, IntArray
from equipoise._core.cluster import EngineError, cluster_address, connect, distributed
from equipoise.advisor.bags import FoldJob, Rows, Run
from equipoise.advisor.binned import binned
from equipoise.advisor.treatments._boosted import LightGBMTrees
from equipoise.datasets.blocks import ROWS_AT_ONCE, Block

_TRIES = 3  # of work that was lost with a worker
_USABLE = 0.75  # of a worker's memory: Dask pauses a worker at 80 %
_LOOK_EVERY, _NEVER, _NOT_YET = 10, 2**31, 0  # rounds
_LIBRARIES, _LEAST_ROOM = 350 * 2**20, 50 * 2**20  # bytes of a worker before it has any rows
_UNLIMITED = 10**12  # rows
_LOOKS_AT_MEMORY = 10  # at the most, until it falls no more
_GONE_AFTER = 20.0  # seconds without an answer: the others gave up
_HOPELESS = 1.2  # times the time that is left, for the rounds that are still needed


def count_threads(n_jobs: Any) -> int:
    """Threads as scikit-learn counts them: ``None`` is one, −1 all processors, −2 all but one.

    >>> count_threads(None), count_threads(3), count_threads(-1) >= 1
    (1, 3, True)
    >>> count_threads(0)
    Traceback (most recent call last):
    ...
    ValueError: n_jobs must be a number of threads, or -1 for all processors, got 0
    """
    import joblib

    whole = isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not whole or n_jobs == 0):
        raise ValueError(f"n_jobs must be a number of threads, or -1 for all processors, got {n_jobs!r}")
    return int(joblib.effective_n_jobs(None if n_jobs is None else int(n_jobs)))


@contextmanager
def running(engine: str, n_jobs: int, rows: Rows, notes: list[str]) -> Iterator[Run | None]:
    """What runs the jobs of a bag: ``None`` for one after the other.

    Parameters
    ----------
    engine : str
        ``local``, or the address of a Dask cluster.
    n_jobs : int
        Threads of this machine.
    rows : Rows
        What all jobs are fitted to; they are sent to a cluster once.
    notes : list of str
        A sentence is added if the cluster fails for good; the fits then go on here.
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
            if notes:
                return _on_threads(n_jobs)(jobs)
            light = [replace(job, rows=None) for job in jobs]

            def attempt() -> list[Any]:
                return list(client.gather([client.submit(_fit, job, sent, pure=False) for job in light]))

            try:
                return _again_if_lost(attempt, address)
            except EngineError as error:
                notes.append(f"The fits went on without the cluster: {error}.")
                return _on_threads(n_jobs)(jobs)

        yield run


def least_memory(engine: str) -> float:
    """Bytes of the cluster's smallest worker; infinite for this machine and for workers without a limit."""
    address = cluster_address(engine)
    if address is None:
        return math.inf
    with _client(address) as client:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return min((w["memory_limit"] or math.inf for w in workers), default=math.inf)


def room_for_a_sample(engine: str) -> int:
    """Bytes that fits to a sample may take on the cluster's smallest worker."""
    return int(min(max(least_memory(engine) - _LIBRARIES, _LEAST_ROOM), 2**62))


def rows_on_cluster(engine: str, width: int) -> int:
    """About how many rows the workers can boost on without one of them running out of memory.

    Parameters
    ----------
    engine : str
        The address of a Dask cluster.
    width : int
        Numbers in a row.

    Raises
    ------
    EngineError
        If the cluster is gone.
    """
    address = cluster_address(engine)
    assert address is not None

    def attempt() -> int:
        with _client(address) as client:
            return min(sum(_room(client, width).values()), _UNLIMITED)

    return int(_again_if_lost(attempt, address))


def _room(client: Any, width: int) -> dict[str, int]:
    """How many rows each worker can keep as bins, by its address, once it has given back what earlier fits took.

    A worker reads one block after the other, and keeps its rows as bins: at most two bytes a value, once by
    columns and once by rows, and a few numbers for each row. What it uses is asked of the worker itself, until it
    falls no more: what the scheduler knows is some seconds old.
    """
    used = client.run(_memory_in_use)
    for _ in range(_LOOKS_AT_MEMORY):
        time.sleep(0.5)
        before, used = used, client.run(_memory_in_use)
        if all(used[worker] > 0.98 * before.get(worker, 0) for worker in used):
            break
    block = 24 * width * ROWS_AT_ONCE  # as it was read, as it is encoded, and on the way
    workers = client.scheduler_info(n_workers=-1)["workers"]
    limits = {worker: workers[worker]["memory_limit"] for worker in sorted(set(used) & set(workers))}
    return {
        worker: max(int((_USABLE * limit - used[worker] - block) / (4 * width + 40)), 0)
        if limit
        else _UNLIMITED
        for worker, limit in limits.items()
    }


def _memory_in_use() -> int:
    """Bytes of this process, without what the allocator would keep for itself."""
    import psutil

    gc.collect()
    with suppress(OSError, AttributeError):  # a C library without it
        ctypes.CDLL(None).malloc_trim(0)
    return int(psutil.Process().memory_info().rss)


def _dealt(
    blocks: Sequence[tuple[Block, BoolArray]], room: dict[str, int]
) -> dict[str, list[tuple[Block, BoolArray]]]:
    """The blocks of each worker: evenly many rows, but none beyond a worker's room while another one has some."""
    dealt: dict[str, list[tuple[Block, BoolArray]]] = {worker: [] for worker in room}
    rows = dict.fromkeys(room, 0)
    for block, own in blocks:
        count = int(own.sum())
        able = [worker for worker in room if rows[worker] + count <= room[worker]]
        taker = min(able, key=lambda w: rows[w]) if able else max(room, key=lambda w: room[w] - rows[w])
        dealt[taker].append((block, own))
        rows[taker] += count
    return {worker: part for worker, part in dealt.items() if part}


@dataclass(frozen=True)
class Shared:
    """What every worker needs to boost on its own blocks.

    Attributes
    ----------
    trees : LightGBMTrees
        With the settings to use.
    encoder : TableEncoder
    X, codes : arrays
        The sample that bins are made from.
    n_classes : int
    """

    trees: LightGBMTrees
    encoder: Any
    X: Any
    codes: IntArray
    n_classes: int


def boost_on_cluster(
    engine: str,
    shared: Shared,
    blocks: Sequence[tuple[Block, BoolArray]],
    deadline: float,
    needed: int = 0,
) -> LightGBMTrees:
    """Boost on blocks that the workers read and keep as bins: no machine ever holds all rows.

    The workers are connected by LightGBM's own protocol for data that is spread by rows.

    Parameters
    ----------
    engine : str
        The address of a Dask cluster.
    shared : Shared
    blocks : sequence of (Block, array of bool)
        With the rows of each to use. They must be readable where the workers run.
    deadline : float
        A time of :func:`time.monotonic`, from which no new round begins.
    needed : int
        End early where it shows that the time will not do for so many rounds.

    Raises
    ------
    EngineError
        If the cluster is gone, workers were lost again and again, or the time was up before they had read the rows.
    """
    address = cluster_address(engine)
    assert address is not None

    def attempt() -> str:
        with _client(address) as client, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            ready, stop = distributed().Queue(client=client), distributed().Variable(client=client)
            try:
                plan = _Plan(deadline, needed, ready, stop)
                return str(_while_complete(client, lambda: _boosted(client, shared, blocks, plan), deadline))
            finally:  # also when the work was given up: nobody waits for the others for ever
                stop.delete()
                ready.close()

    try:
        text = _again_if_lost(attempt, address)
    except _TimeUp:
        raise EngineError(
            "the budget ended before the workers had read the rows and boosted on them"
        ) from None
    return LightGBMTrees.from_text(text, list(range(shared.n_classes)))


@dataclass(frozen=True)
class _Plan:
    """When boosting ends, and by what the workers and we agree on it."""

    deadline: float
    needed: int
    ready: Any
    stop: Any


def _boosted(client: Any, shared: Shared, blocks: Sequence[tuple[Block, BoolArray]], plan: _Plan) -> str:
    """The trees as text, from workers that each take their turn of the blocks."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    dealt = _dealt(blocks, _room(client, shared.X.shape[1]))
    addresses = list(dealt)
    ports = client.gather([client.submit(_open_port, workers=[a], pure=False) for a in addresses])
    hosts = [urlparse(address).hostname for address in addresses]
    plan.stop.set(_NOT_YET)
    sent = client.submit(_itself, shared, pure=False)
    n_rows = sum(int(own.sum()) for _, own in blocks)
    network = {
        "machines": ",".join(f"{host}:{port}" for host, port in zip(hosts, ports, strict=True)),
        "num_machines": len(addresses), "tree_learner": "data", "time_out": 2,
    }  # fmt: skip
    futures = [
        client.submit(
            _boost_on_blocks,
            sent,
            dealt[address],
            {**network, "local_listen_port": ports[rank], "num_threads": workers[address]["nthreads"]},
            n_rows,
            (plan.ready.name, plan.stop.name, rank == 0, plan.deadline - time.monotonic(), plan.needed),
            workers=[address],
            pure=False,
        )
        for rank, address in enumerate(addresses)
    ]
    if _all_ready(plan, futures):  # LightGBM's patience with a machine that is late is short
        plan.stop.set(_NEVER)
    return str(client.gather(futures)[0])


def _all_ready(plan: _Plan, futures: Sequence[Any]) -> bool:
    """Wait until every worker has its rows; False where one of them failed."""
    while plan.ready.qsize() < len(futures):
        if any(future.status == "error" for future in futures):
            return False
        if time.monotonic() > plan.deadline:
            raise _TimeUp
        time.sleep(0.2)
    return True


def _open_port() -> int:
    """A port that is free on the worker that is asked."""
    with socket.socket() as tried:
        tried.bind(("", 0))
        return int(tried.getsockname()[1])


def _boost_on_blocks(
    shared: Shared,
    blocks: Sequence[tuple[Block, BoolArray]],
    network: dict[str, Any],
    n_rows: int,
    together: tuple[str, str, bool, float, int],
) -> str:
    end = _AgreedEnd(*together)
    blocks = [(end.reading(block), own) for block, own in blocks]
    data = binned(blocks, shared.encoder, shared.trees.dataset(shared.X, shared.codes).construct())
    end.wait_for_others()
    return shared.trees.fit_with_others(data, shared.n_classes, n_rows, network, end).to_text()


class _AgreedEnd:
    """Whether a round is the last one, on which all workers agree.

    The first worker looks at its clock at every tenth round. When its time is up, or will be before the rounds that
    are needed, it names the tenth round from there, which nobody can pass without it, so that everybody has heard
    of it by then.
    """

    def __init__(self, ready: str, stop: str, leads: bool, seconds: float, needed: int) -> None:
        self.ready, self.last = distributed().Queue(ready), distributed().Variable(stop)
        self.leads, self.end, self.needed = leads, time.monotonic() + seconds, needed

    def reading(self, block: Block) -> Block:
        """The block, which is not read anymore when the others gave up: the worker is free for the next attempt."""

        def read() -> Any:
            self._agreed()
            return block.read()

        return replace(block, read=read)

    def wait_for_others(self) -> None:
        """Say that this worker is ready, and return when all are."""
        self.ready.put(1)
        while self._agreed() == _NOT_YET:
            time.sleep(0.2)

    def _is_over(self, done: int) -> bool:
        now = time.monotonic()
        if done == _LOOK_EVERY:  # the first rounds do not count: the workers were still connecting
            self.began = now
            return now > self.end
        pace = (now - self.began) / (done - _LOOK_EVERY)
        too_late = now + 2 * _LOOK_EVERY * pace  # if the next look were the one that ends it
        return too_late > self.end or pace * max(self.needed - done, 0) > _HOPELESS * (self.end - now)

    def __call__(self, done: int) -> bool:
        if done % _LOOK_EVERY:
            return False
        agreed = self._agreed()
        if self.leads and agreed == _NEVER and self._is_over(done):
            agreed = done + _LOOK_EVERY
            self.last.set(agreed)
        return done >= agreed

    def _agreed(self) -> int:
        return int(self.last.get(timeout=_GONE_AFTER))


def _while_complete(client: Any, work: Callable[[], Any], deadline: float) -> Any:
    """What ``work`` returns; it is given up if a worker is lost, for which LightGBM would wait for ever, and some
    seconds after the deadline: workers that wait for one another are not waited for.
    """
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
        if time.monotonic() > deadline + _GONE_AFTER:
            raise _TimeUp
        if not began <= set(client.scheduler_info(n_workers=-1)["workers"]):
            raise _WorkerLost("a worker was lost")
    if isinstance(done.get("error"), _TimeUp):
        raise done["error"]
    if "error" in done:
        raise _WorkerLost(str(done["error"])) from done["error"]
    return done["result"]


class _WorkerLost(OSError):
    pass


class _TimeUp(Exception):
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


def _on_threads(n_jobs: int) -> Run:
    """Runs jobs on several threads; the learners leave Python while they fit."""
    from joblib import Parallel, delayed

    return lambda jobs: list(Parallel(n_jobs=n_jobs, prefer="threads")(delayed(job)() for job in jobs))
