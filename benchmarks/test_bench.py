"""What a study costs beside its cells: claiming, running, measuring and storing 2,000 empty ones."""

from __future__ import annotations

import time
from typing import Any

import pytest

from equipoise.studies import Spec, run_study

CELLS = 2000
MOST = 0.020  # seconds a cell


def nothing(index: int) -> dict[str, Any]:
    return {}


@pytest.mark.parametrize("jobs", [1, 2])
def test_overhead_of_a_cell_on_the_local_engine(tmp_path, jobs):
    warm = Spec(name="warm", title="Processes started", run_cell=nothing, grid={"index": list(range(8))})
    run_study(warm, tmp_path / "warm.sqlite", jobs=jobs)
    spec = Spec(name="empty", title="Empty cells", run_cell=nothing, grid={"index": list(range(CELLS))})
    start = time.perf_counter()
    counts = run_study(spec, tmp_path / "empty.sqlite", jobs=jobs)
    per_cell = (time.perf_counter() - start) / CELLS
    print(f"\n{jobs} jobs: {1000 * per_cell:.2f} ms a cell")
    assert counts.done == CELLS
    assert per_cell < MOST
