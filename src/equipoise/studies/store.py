"""One SQLite file for a study's results: written atomically, resumable, shared by several runners."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import equipoise
from equipoise.studies._rows import CELL, STUDY, StoreError, read_cell, read_study, row_checksum
from equipoise.studies.cell import CellOutcome
from equipoise.studies.grid import Settings, canonical_json, cell_key
from equipoise.studies.spec import Spec

if TYPE_CHECKING:
    import pandas as pd

_APPLICATION_ID = 0x45515053  # "EQPS"
_VERSION = 1
_LEASE_SECONDS = 120.0

_SCHEMA = """
CREATE TABLE studies (
    name TEXT PRIMARY KEY, title TEXT, reference TEXT, size TEXT, metrics TEXT, source TEXT, written_by TEXT);
CREATE TABLE environments (id INTEGER PRIMARY KEY, versions TEXT UNIQUE);
CREATE TABLE cells (
    key TEXT PRIMARY KEY, study TEXT NOT NULL REFERENCES studies(name), settings TEXT NOT NULL, seed INTEGER,
    status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'running', 'done', 'failed')),
    owner TEXT, lease REAL, attempts INTEGER NOT NULL DEFAULT 0,
    result TEXT, error TEXT, warnings TEXT, seconds REAL, peak_memory_mb REAL,
    environment INTEGER REFERENCES environments(id), finished TEXT);
CREATE INDEX cells_by_status ON cells (study, status);
"""
_CHECKSUMS = "CREATE TABLE IF NOT EXISTS checksums (row TEXT PRIMARY KEY, sha256 TEXT NOT NULL)"
_STUDIES = f"SELECT {', '.join(STUDY)} FROM studies"
_CELLS = f"SELECT {', '.join(CELL)} FROM cells LEFT JOIN environments ON environment=environments.id"


@dataclass(frozen=True)
class Counts:
    """How many cells of a run stand where."""

    pending: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0

    @property
    def left(self) -> int:
        return self.pending + self.running


class Store:
    """The results of studies in one file.

    Several runners on one machine may share it: a cell is claimed with a lease before it runs, and only the
    runner that holds the lease can finish it, so each cell is done exactly once.

    Parameters
    ----------
    path : path
        The SQLite file, made if it is not there (unless ``read_only``).
    read_only : bool
        Whether to refuse all changes.
    timeout : float
        How many seconds to wait for another program's lock.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, read_only: bool = False, timeout: float = 30.0
    ) -> None:
        self.path = Path(path)
        self.owner = (
            f"{socket.gethostname()}|{os.getpid()}|{_process_start(os.getpid())}|{uuid.uuid4().hex[:8]}"
        )
        self._lock = threading.RLock()
        if self.path.is_dir():
            raise StoreError(f"the store {self.path} is a folder, not a file")
        if read_only and not self.path.exists():
            raise StoreError(f"there is no store at {self.path}")
        if not read_only:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._speaking():
            mode = "ro" if read_only else "rwc"
            self._db = sqlite3.connect(
                f"file:{quote(str(self.path.absolute()))}?mode={mode}",
                uri=True,
                timeout=timeout,
                isolation_level=None,
                check_same_thread=False,
            )
        try:
            with self._speaking():
                self._prepare(read_only)
        except BaseException:
            self._db.close()
            raise

    def _prepare(self, read_only: bool) -> None:
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables == 0 and not read_only:
            self._create()
        elif application != _APPLICATION_ID:
            raise StoreError(f"{self.path} is no store of Equipoise; choose another file")
        elif version != _VERSION:
            raise StoreError(
                f"the store {self.path} has version {version} and this Equipoise reads version {_VERSION}; "
                f"it was left as it is"
            )
        if self._db.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("malformed")
        if not read_only:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(_CHECKSUMS)
        known = "SELECT 1 FROM sqlite_master WHERE name='checksums'"
        self._has_checksums = bool(self._db.execute(known).fetchone())

    def _create(self) -> None:
        with self._transaction():
            if self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return  # another runner was faster
            for statement in _SCHEMA.split(";"):
                self._db.execute(statement)
            self._db.execute(f"PRAGMA application_id={_APPLICATION_ID}")
            self._db.execute(f"PRAGMA user_version={_VERSION}")

    @contextlib.contextmanager
    def _speaking(self) -> Iterator[None]:
        """Turn SQLite's errors into one sentence with the file's name."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite may quote a damaged schema
            text = "malformed" if isinstance(error, UnicodeDecodeError) else str(error)
            if "locked" in text or "busy" in text:
                text = "another program holds its lock; end that or try again later"
            elif "not a database" in text or "malformed" in text:
                text = "it is damaged or no SQLite file; it was left as it is"
            raise StoreError(f"the store {self.path} cannot be used: {text}") from error

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock, self._speaking():
            return self._db.execute(statement, values).fetchall()

    # A run, from its registration to its end.

    def register(self, spec: Spec, cells: Sequence[Settings], size: str = "") -> list[str]:
        """Write the study and its cells (those not there yet), and return their keys in order.

        Parameters
        ----------
        spec : Spec
            The study.
        cells : sequence of dict
            The settings of each cell.
        size : str
            The size that is run.

        Returns
        -------
        list of str
            The keys.
        """
        keys = [cell_key(spec.name, cell) for cell in cells]
        rows = [
            (key, spec.name, canonical_json(cell), cell.get("seed"))
            for key, cell in zip(keys, cells, strict=True)
        ]
        study = (
            spec.name,
            spec.title,
            spec.reference,
            size,
            json.dumps(list(spec.metrics)),
            "",  # stores of earlier releases name a file here
            equipoise.__version__,
        )
        with self._speaking(), self._transaction():
            self._db.execute("INSERT OR REPLACE INTO studies VALUES (?,?,?,?,?,?,?)", study)
            self._write_checksum(f"study {spec.name}", study)
            self._db.executemany(
                "INSERT OR IGNORE INTO cells (key, study, settings, seed) VALUES (?,?,?,?)", rows
            )
        return keys

    def claim(self, key: str) -> bool:
        """Take a pending cell, or one whose runner has let its lease run out.

        Parameters
        ----------
        key : str
            The cell's key.

        Returns
        -------
        bool
            Whether it was taken.
        """
        now = time.time()
        claimed = self._execute(
            "UPDATE cells SET status='running', owner=?, lease=?, attempts=attempts+1 "
            "WHERE key=? AND (status='pending' OR (status='running' AND lease<?)) RETURNING key",
            (self.owner, now + _LEASE_SECONDS, key, now),
        )
        return bool(claimed)

    def renew(self) -> None:
        """Prolong the leases of this runner."""
        self._execute(
            "UPDATE cells SET lease=? WHERE owner=? AND status='running'",
            (time.time() + _LEASE_SECONDS, self.owner),
        )

    def finish(self, outcome: CellOutcome) -> bool:
        """Write an outcome, if this runner still holds the cell; otherwise somebody else has or will.

        Parameters
        ----------
        outcome : CellOutcome
            What the cell gave.

        Returns
        -------
        bool
            Whether it was written.
        """
        versions = canonical_json(outcome.environment)
        with self._speaking(), self._transaction():
            self._db.execute("INSERT OR IGNORE INTO environments (versions) VALUES (?)", (versions,))
            finished = self._db.execute(
                "UPDATE cells SET status=?, result=?, error=?, warnings=?, seconds=?, peak_memory_mb=?, "
                "environment=(SELECT id FROM environments WHERE versions=?), finished=?, "
                "owner=NULL, lease=NULL WHERE key=? AND owner=? AND status='running'",
                (
                    "failed" if outcome.result is None else "done",
                    outcome.result,
                    outcome.error,
                    json.dumps(outcome.warnings) if outcome.warnings else None,
                    outcome.seconds,
                    outcome.peak_memory_mb,
                    versions,
                    datetime.now(timezone.utc).isoformat(timespec="seconds"),
                    outcome.key,
                    self.owner,
                ),
            )
            if finished.rowcount == 1:
                row = self._db.execute(f"{_CELLS} WHERE key=?", (outcome.key,)).fetchone()
                self._write_checksum(f"cell {outcome.key}", row)
        return finished.rowcount == 1

    def _write_checksum(self, name: str, row: Sequence[Any]) -> None:
        self._db.execute("INSERT OR REPLACE INTO checksums VALUES (?,?)", (name, row_checksum(row)))

    def release(self, owner: str | None = None) -> None:
        """Give back what a runner (this one) claimed and did not finish.

        Parameters
        ----------
        owner : str, optional
            The runner; this one by default.
        """
        self._execute(
            "UPDATE cells SET status='pending', owner=NULL, lease=NULL WHERE owner=? AND status='running'",
            (owner or self.owner,),
        )

    def release_dead(self) -> None:
        """Give back the cells of this machine's runners that are no more, before their leases end."""
        for (owner,) in self._execute("SELECT DISTINCT owner FROM cells WHERE status='running'"):
            if owner != self.owner and _is_gone(owner):
                self.release(owner)

    def retry_failed(self, keys: Sequence[str]) -> None:
        """Make failed cells pending again.

        Parameters
        ----------
        keys : sequence of str
            Keys of cells, as :meth:`register` returns them.
        """
        with self._speaking(), self._transaction():
            self._db.executemany(
                "UPDATE cells SET status='pending', error=NULL WHERE key=? AND status='failed'",
                [(key,) for key in keys],
            )

    # Reading.

    def statuses(self, keys: Sequence[str]) -> dict[str, str]:
        """The status of each cell that the store knows.

        Parameters
        ----------
        keys : sequence of str
            Keys of cells, as :meth:`register` returns them.

        Returns
        -------
        dict of str to str
            ``"pending"``, ``"running"``, ``"done"`` or ``"failed"``, by key.
        """
        wanted = set(keys)
        rows = self._execute("SELECT key, status FROM cells")
        return {key: status for key, status in rows if key in wanted}

    def counts(self, keys: Sequence[str]) -> Counts:
        """How many cells have each status.

        Parameters
        ----------
        keys : sequence of str
            Keys of cells, as :meth:`register` returns them.

        Returns
        -------
        Counts
            The numbers.
        """
        found = list(self.statuses(keys).values())
        return Counts(*(found.count(status) for status in ("pending", "running", "done", "failed")))

    def studies(self) -> list[dict[str, Any]]:
        """What the store holds, a row per study.

        Returns
        -------
        list of dict
            The name, title, reference, size, metrics and source of each study, and who wrote it.
        """
        rows = self._checked_rows(_STUDIES, "'study ' || name", "ORDER BY studies.rowid")
        return [read_study(self.path, row, checksum) for *row, checksum in rows]

    def records(self, study: str) -> Iterator[dict[str, Any]]:
        """Every cell of a study with all that is known of it.

        Parameters
        ----------
        study : str
            The name of the study.

        Yields
        ------
        dict
            The settings, the status and the results of a cell.
        """
        rows = self._checked_rows(_CELLS, "'cell ' || key", "WHERE study=? ORDER BY cells.rowid", (study,))
        for *row, checksum in rows:
            yield read_cell(self.path, row, checksum)

    def _checked_rows(
        self, select: str, name: str, which: str, values: Sequence[Any] = ()
    ) -> list[tuple[Any, ...]]:
        """Rows with their checksums in one statement, so that no writer comes in between."""
        found = f"(SELECT sha256 FROM checksums WHERE row = {name})" if self._has_checksums else "NULL"
        return self._execute(f"{select.replace(' FROM', f', {found} FROM', 1)} {which}", values)

    def frame(self, study: str, *, status: str | None = "done") -> pd.DataFrame:
        """A row per cell: a column per setting and a result, and what was measured as ``cell_…``.

        Parameters
        ----------
        study : str
            The name of the study.
        status : str, optional
            Only cells of this status; None for all.

        Returns
        -------
        DataFrame
            The table.
        """
        import pandas as pd

        rows = [
            {
                **record["settings"],
                **(record["result"] or {}),
                "cell_seconds": record["seconds"],
                "cell_memory_mb": record["peak_memory_mb"],
                "cell_status": record["status"],
                "cell_key": record["key"],
            }
            for record in self.records(study)
            if status is None or record["status"] == status
        ]
        return pd.DataFrame(rows)

    # The end.

    def compact(self) -> None:
        """One small file to commit or copy: no WAL, no free pages. Skipped while others write."""
        with contextlib.suppress(sqlite3.OperationalError), self._lock:
            self._db.execute("PRAGMA busy_timeout=200")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA journal_mode=DELETE")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


@contextlib.contextmanager
def keeping_leases(store: Store) -> Iterator[None]:
    """Prolong the store's leases in the background while the block runs."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(_LEASE_SECONDS / 4):
            with contextlib.suppress(StoreError):  # a lock that lasts; the next beat tries again
                store.renew()

    thread = threading.Thread(target=renew, daemon=True, name="equipoise-leases")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _process_start(pid: int) -> str:
    """Tells a process from a later one with the same number; empty if there is none (or nobody can know)."""
    try:
        import psutil
    except ImportError:
        return "?"
    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except psutil.Error:
        return ""


def _is_gone(owner: str) -> bool:
    parts = str(owner).split("|")
    if len(parts) != 4 or not parts[1].isdecimal():
        return False  # written by somebody else: its lease will end
    host, pid, start, _ = parts
    return start != "?" and host == socket.gethostname() and _process_start(int(pid)) != start
