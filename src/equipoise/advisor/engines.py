"""Where fold fits run: on this machine's threads, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from equipoise._core.cluster import cluster_address, connect
from equipoise.advisor.bags import FoldJob, Rows, Run


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
    client = connect(address)
    try:
        sent = client.scatter(rows, broadcast=True, hash=False)

        def run(jobs: list[FoldJob]) -> list[Any]:
            light = [replace(job, rows=None) for job in jobs]
            return list(client.gather([client.submit(_fit, job, sent, pure=False) for job in light]))

        yield run
    finally:
        client.close()


def _fit(job: FoldJob, rows: Rows) -> Any:
    return job(rows)


def _on_threads(n_jobs: int) -> Run:
    """Runs jobs on several threads; the learners leave Python while they fit."""
    from joblib import Parallel, delayed

    return lambda jobs: list(Parallel(n_jobs=n_jobs, prefer="threads")(delayed(job)() for job in jobs))
