"""Where cells run: joblib's processes on this machine, or a Dask cluster by its address."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeAlias

from equipoise._core.checks import check_integer
from equipoise._core.cluster import EngineError, cluster_address, connect, distributed
from equipoise.studies.cell import CellOutcome, CellTask, died, run_task


def make_engine(name: str = "local", jobs: int | None = None) -> Engine:
    """``local`` (``jobs`` processes, all cores by default), or ``dask://host:port`` or ``tcp://host:port``."""
    address = cluster_address(name)
    return LocalEngine(jobs) if address is None else DaskEngine(address)


class LocalEngine(contextlib.AbstractContextManager["LocalEngine"]):
    """joblib's worker processes (loky); with one job, this very process."""

    def __init__(self, jobs: int | None = None) -> None:
        from joblib import cpu_count

        self.workers = check_integer("jobs", jobs, low=1) if jobs is not None else int(cpu_count())

    def run(self, tasks: Iterator[CellTask]) -> Iterator[CellOutcome]:
        if self.workers == 1:
            yield from map(run_task, tasks)
            return
        sent: dict[str, CellTask] = {}
        while True:
            try:
                yield from self._parallel(tasks, sent)
                return
            except BrokenProcessPool:  # a worker was killed: which cell did it shows when each runs alone
                for task in list(sent.values()):
                    yield self._alone(task)
                sent.clear()

    def _parallel(self, tasks: Iterator[CellTask], sent: dict[str, CellTask]) -> Iterator[CellOutcome]:
        from joblib import Parallel, delayed

        def sending() -> Iterator[Any]:
            for task in tasks:
                sent[task.key] = task
                yield delayed(run_task)(task)

        parallel = Parallel(n_jobs=self.workers, backend="loky", return_as="generator_unordered")
        for outcome in parallel(sending()):
            del sent[outcome.key]
            yield outcome

    def _alone(self, task: CellTask) -> CellOutcome:
        try:
            return next(self._parallel(iter([task]), {}))
        except BrokenProcessPool as error:
            return died(task.key, f"the worker process was lost: {error}")

    def __exit__(self, *problem: object) -> None:
        return None


class DaskEngine(contextlib.AbstractContextManager["DaskEngine"]):
    """A Dask cluster by its scheduler's address.

    A worker process runs one cell at a time, so give each worker one thread (``--nthreads 1``).
    """

    def __init__(self, address: str, timeout: float = 10.0) -> None:
        self.address = address
        self._distributed = distributed()
        self._client = connect(address, timeout)
        self.workers = max(1, len(self._client.scheduler_info(n_workers=-1)["workers"]))

    def run(self, tasks: Iterator[CellTask]) -> Iterator[CellOutcome]:
        sent: dict[str, str] = {}

        def submit(task: CellTask) -> Any:
            future = self._client.submit(run_task, task, pure=False, key=f"cell-{task.key}")
            sent[future.key] = task.key
            return future

        first = [submit(task) for task in itertools.islice(tasks, 2 * self.workers)]
        running = self._distributed.as_completed(first, loop=self._client.loop)
        for future in running:
            yield self._outcome(future, sent.pop(future.key))
            for task in itertools.islice(tasks, 1):
                running.add(submit(task))

    def _outcome(self, future: Any, key: str) -> CellOutcome:
        try:
            error = future.exception()
            if error is None:
                return future.result()
        except (OSError, CancelledError) as gone:
            raise EngineError(
                f"the Dask cluster at {self.address} has gone; finished cells are kept, resume later"
            ) from gone
        if isinstance(error, self._distributed.KilledWorker):
            return died(key, f"the worker process was lost: {error}")
        # a cell's own errors are caught where it runs: this one is the cluster's
        reason = error.__cause__ or error
        raise EngineError(
            f"the Dask cluster at {self.address} cannot run the study's cells: {type(reason).__name__}: {reason}; "
            "its workers need the same Equipoise as this machine"
        ) from error

    def __exit__(self, *problem: object) -> None:
        self._client.close()


Engine: TypeAlias = "LocalEngine | DaskEngine"
"""Takes tasks one by one as it has room for them, and yields outcomes as they come."""
