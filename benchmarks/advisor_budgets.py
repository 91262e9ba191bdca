"""How well a report keeps its budget: wall time as a share of it, on an idle machine and beside busy processes.

    python benchmarks/advisor_budgets.py --budgets 5s 20s 60s --busy 0 4

Each report is a process of its own, start-up and writing included. The tables are made anew: few rows, many rows,
many columns. The busy processes have the report's priority and share its cores (`taskset -c 0` puts all on one).
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from sklearn.datasets import make_classification

from equipoise.advisor.budget import parse_duration

SHAPES = {"few rows": (400, 8), "many rows": (60_000, 30), "many columns": (4_000, 400)}


def spin(parent: int) -> None:
    """Keep one core busy, for as long as the benchmark lives."""
    while os.getppid() == parent:
        sum(range(10_000))


def make_table(folder: Path, name: str, seed: int) -> Path:
    rows, columns = SHAPES[name]
    X, y = make_classification(
        rows, columns, n_informative=6, n_redundant=2, weights=[0.95], flip_y=0.02, random_state=seed
    )
    path = folder / f"{name.replace(' ', '-')}.csv"
    pd.DataFrame(X, columns=[f"c{i}" for i in range(columns)]).assign(label=y).to_csv(path, index=False)
    return path


def seconds_of(path: Path, budget: str, out: Path) -> float:
    """Wall seconds of one report; it must leave a page and a model."""
    started = time.monotonic()
    command = [
        sys.executable,
        "-m",
        "equipoise",
        "report",
        str(path),
        "--target",
        "label",
        "--budget",
        budget,
    ]
    subprocess.run([*command, "--out", str(out)], check=True, capture_output=True)
    spent = time.monotonic() - started
    assert (out / "report.html").exists()
    assert (out / "model").is_dir()
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budgets", nargs="+", default=["5s", "20s", "60s"])
    parser.add_argument("--busy", nargs="+", type=int, default=[0, 4])
    parser.add_argument("--tables", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(
        f"{len(os.sched_getaffinity(0))} cores\n| table | budget | busy processes | seconds | share of the budget |"
    )
    print("|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for busy in args.busy:
            others = [
                multiprocessing.Process(target=spin, args=(os.getpid(),), daemon=True) for _ in range(busy)
            ]
            for process in others:
                process.start()
            for table in args.tables:
                path = make_table(folder, table, args.seed)
                for budget in args.budgets:
                    spent = seconds_of(path, budget, folder / "out")
                    share = spent / parse_duration(budget)
                    print(f"| {table} | {budget} | {busy} | {spent:.1f} | {share:.2f} |", flush=True)
            for process in others:
                process.terminate()


if __name__ == "__main__":
    main()
