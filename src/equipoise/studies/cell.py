"""Running one cell: its result or its traceback, with time, peak memory, warnings and versions."""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from equipoise._core.fingerprint import environment as versions
from equipoise.studies.grid import canonical_json
from equipoise.studies.locate import loaded_folders

_RECORDED = (
    "equipoise",
    "numpy",
    "scipy",
    "pandas",
    "scikit-learn",
    "imbalanced-learn",
    "torch",
    "optuna",
    "joblib",
    "distributed",
)
_MOST_WARNINGS = 10
_one_at_a_time = threading.Lock()  # peak memory, thread limits and warnings belong to the whole process


@dataclass(frozen=True)
class CellTask:
    """A cell to run: everything that a worker needs."""

    key: str
    function: Callable[..., Mapping[str, Any]]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class CellOutcome:
    """What came of a cell. ``result`` is JSON text, or ``None`` if it failed with ``error``."""

    key: str
    result: str | None
    error: str | None = None
    seconds: float = 0.0
    peak_memory_mb: float | None = None
    warnings: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def run_task(task: CellTask) -> CellOutcome:
    """Run a cell on one thread of its process; an error becomes a recorded outcome."""
    result: str | None = None
    error: str | None = None
    with _one_at_a_time, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        reset_peak_memory()
        start = time.perf_counter()
        try:
            with _single_thread():
                result = _checked(task.function(**task.settings), task.settings)
        except Exception:
            error = _own_traceback()
        seconds = time.perf_counter() - start
        memory = peak_memory_mb()
    texts = dict.fromkeys(f"{item.category.__name__}: {item.message}" for item in caught)
    return CellOutcome(task.key, result, error, seconds, memory, tuple(texts)[:_MOST_WARNINGS], environment())


def died(key: str, why: str) -> CellOutcome:
    """The outcome of a cell whose process was lost."""
    return CellOutcome(key, None, error=why, environment=environment())


def _checked(result: Any, settings: Mapping[str, Any]) -> str:
    if not isinstance(result, Mapping):
        raise TypeError(f"run_cell must return a dict of results, got {type(result).__name__}")
    twice = sorted(set(result) & set(settings))
    if twice:
        raise ValueError(f"results must not be named like settings, got {', '.join(twice)}")
    return canonical_json(result, allow_nan=True)


def _own_traceback() -> str:
    kind, error, trace = sys.exc_info()
    first = trace.tb_next if trace is not None and trace.tb_next is not None else trace
    text = "".join(traceback.format_exception(kind, error, first))
    folders = {os.path.join(root, "") for root in [*sys.path, *loaded_folders()] if root}
    roots = sorted(folders, key=len, reverse=True)
    for root in roots:  # a store travels: where its code lay says nothing elsewhere
        text = text.replace(f'File "{root}', 'File "')
    return text


def _single_thread() -> Any:
    """One thread a cell, so that the bits do not depend on how many cells run at once."""
    from threadpoolctl import threadpool_limits

    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    return threadpool_limits(limits=1)


def reset_peak_memory() -> None:
    """Start a new high-water mark (Linux); elsewhere the mark is the process's."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def peak_memory_mb() -> float | None:
    """The most memory that this process held since the mark was reset, or ``None`` where nobody knows."""
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return round(int(line.split()[1]) / 1024, 1)
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)


def environment() -> dict[str, str]:
    """The versions and the processor that a result depends on; torch's instruction set where torch was used."""
    found = {**versions(_RECORDED), "platform": f"{platform.system()} {platform.machine()}"}
    if "torch" in sys.modules:
        found["torch_cpu_capability"] = str(sys.modules["torch"].backends.cpu.get_cpu_capability())
    return found
