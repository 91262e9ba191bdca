"""Running a study: claim a cell, run it, store it, until none is left."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from equipoise._core.checks import check_type
from equipoise._core.progress import Progress, bars_are_shown
from equipoise.studies._rows import StoreError
from equipoise.studies.cell import CellOutcome, CellTask
from equipoise.studies.data import check_required
from equipoise.studies.engines import Engine, make_engine
from equipoise.studies.grid import Settings, cell_key
from equipoise.studies.spec import Spec
from equipoise.studies.store import Counts, Store, keeping_leases

_LINE_EVERY = 20.0  # seconds between lines of progress where there is no terminal
_POLL = 1.0


def run_study(
    spec: Spec,
    store: str | Path | Store,
    *,
    size: str = "small",
    engine: str | Engine = "local",
    jobs: int | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    changed: Mapping[str, Sequence[Any]] | None = None,
    resume: bool = False,
    retry_failed: bool = False,
    verbose: bool | None = None,
) -> Counts:
    """Run the cells of a study that the store does not have yet.

    ``only`` selects cells by their settings, ``changed`` gives settings other values than the study's.
    Everything is checked before anything runs. A cell that fails is stored with its traceback and the rest
    goes on. A killed run loses the cells that were under way and nothing else; another call with ``resume``
    goes on, and may do so while other runners are at work on the same store.

    Parameters
    ----------
    spec : Spec
        The study.
    store : path or Store
        Where the results go.
    size : str
        A size of the study, such as ``"small"`` or ``"paper"``.
    engine : str or Engine
        ``"local"``, or a Dask scheduler's ``tcp://host:port``.
    jobs : int, optional
        Local processes; as many as cores by default.
    only : mapping of str to sequence of str, optional
        Only the cells with these settings.
    changed : mapping of str to sequence, optional
        Other values for settings than the study's.
    resume : bool
        Whether the store may hold cells already.
    retry_failed : bool
        Whether to run failed cells again.
    verbose : bool, optional
        Whether to show a progress bar; by default if somebody is looking.

    Returns
    -------
    Counts
        How many cells are pending, running, done and failed.

    Raises
    ------
    ValueError
        If a setting or a size is not known, or data are missing.

    Examples
    --------
    >>> import tempfile
    >>> from equipoise.studies.spec import _square
    >>> spec = Spec(name="squares", title="Squares", run_cell=_square, grid={"x": [1, 2], "seed": 0})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     counts = run_study(spec, f"{folder}/squares.sqlite", jobs=1)
    ...     with Store(f"{folder}/squares.sqlite") as store:
    ...         print(counts.done, store.frame("squares")["square"].tolist())
    2 [1, 4]
    """
    cells = check_type("spec", spec, Spec).cells(size, only, changed)
    needed = spec.requires_data
    check_required(needed(cells) if callable(needed) else needed)
    opening = contextlib.nullcontext(store) if isinstance(store, Store) else Store(store)
    with opening as opened, make_engine(engine, jobs) if isinstance(engine, str) else engine as working:
        tasks = _register(spec, opened, cells, size, resume)
        if retry_failed:
            opened.retry_failed(list(tasks))
        return _work(opened, tasks, working, spec.name, verbose)


def cells_to_run(
    spec: Spec,
    store: str | Path,
    *,
    size: str = "small",
    only: Mapping[str, Sequence[str]] | None = None,
    changed: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[list[Settings], float | None]:
    """Return the cells that a run would run, and about how many seconds they take one after another.

    The estimate is the mean time of the cells that the store holds for this study, or ``None`` if it has none.
    Nothing is run or written.

    Examples
    --------
    >>> from equipoise.studies.spec import _square
    >>> spec = Spec(name="squares", title="Squares", run_cell=_square, grid={"x": [1, 2], "seed": 0})
    >>> cells_to_run(spec, "none.sqlite", only={"x": ["2"]})
    ([{'x': 2, 'seed': 0}], None)
    """
    cells = spec.cells(size, only, changed)
    if not Path(store).exists():
        return cells, None
    with Store(store, read_only=True) as opened:
        records = list(opened.records(spec.name))
    finished = {record["key"] for record in records if record["status"] in ("done", "failed")}
    seconds = [record["seconds"] for record in records if record["seconds"] is not None]
    left = [cell for cell in cells if cell_key(spec.name, cell) not in finished]
    return left, sum(seconds) / len(seconds) * len(left) if seconds else None


def _register(
    spec: Spec, store: Store, cells: list[Settings], size: str, resume: bool
) -> dict[str, CellTask]:
    """Write the study and its cells into the store, which must be new or meant; the tasks by key."""
    keys = [cell_key(spec.name, cell) for cell in cells]
    tasks = {key: CellTask(key, spec.run_cell, cell) for key, cell in zip(keys, cells, strict=True)}
    before = store.counts(keys)
    if not resume and (before.done or before.failed or before.running):
        raise StoreError(
            f"the store {store.path} already holds {before.done + before.failed} of {len(tasks)} cells of "
            f"{spec.name!r}; pass --resume to go on from them, or name another store"
        )
    store.register(spec, cells, size)
    return tasks


def _work(
    store: Store, tasks: Mapping[str, CellTask], engine: Engine, label: str, verbose: bool | None
) -> Counts:
    """Claim, run and write until no cell is left."""
    keys = list(tasks)
    with keeping_leases(store), _Told(label, store.counts(keys), engine.workers, verbose) as told:
        try:
            while store.counts(keys).left:
                store.release_dead()
                for outcome in engine.run(_claims(store, tasks)):
                    if store.finish(outcome):
                        told.about(outcome)
                if store.counts(keys).left:  # other runners are at work: wait for them, or for their leases
                    time.sleep(_POLL)
        finally:
            store.release()
    counts = store.counts(keys)
    if not counts.left:
        store.compact()
    return counts


def _claims(store: Store, tasks: Mapping[str, CellTask]) -> Iterator[CellTask]:
    statuses = store.statuses(list(tasks))
    for key, task in tasks.items():
        if statuses[key] in ("pending", "running") and store.claim(key):
            yield task


class _Told:
    """Progress with what is left and an estimate: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, label: str, counts: Counts, workers: int, verbose: bool | None) -> None:
        self._label = label
        self._left = counts.left
        self._total = counts.left
        self._failed = 0
        self._start = self._last = time.monotonic()
        self._bar = Progress(counts.left, label, verbose)
        self._lines = not bars_are_shown(verbose) and verbose is not False

    def about(self, outcome: CellOutcome) -> None:
        self._left -= 1
        self._failed += outcome.result is None
        self._bar.advance(note=f"{self._failed} failed" if self._failed else "")
        now = time.monotonic()
        if self._lines and (now - self._last > _LINE_EVERY or self._left == 0):
            self._last = now
            print(self._sentence(now), file=sys.stderr, flush=True)

    def _sentence(self, now: float) -> str:
        done = self._total - self._left
        spent = now - self._start
        failed = f", {self._failed} failed" if self._failed else ""
        if not self._left:
            return f"{self._label}: {done} cells in {clock(spent)}{failed}"
        estimate = clock(spent / done * self._left)
        return f"{self._label}: {done} of {self._total} cells{failed}, about {estimate} left"

    def __enter__(self) -> _Told:
        return self

    def __exit__(self, *problem: object) -> None:
        self._bar.close()


def clock(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> clock(3725)
    '1:02:05'
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
