"""Time, peak memory and average precision of a report on a large table, against LightGBM on all rows.

    python benchmarks/advisor_scale.py --rows 1000000 --budget 10m --format csv
    python benchmarks/advisor_scale.py --rows 10000000 --budget 30m --format parquet
    python benchmarks/advisor_scale.py --rows 14000000 --budget 10m --format parquet --workers 12 \\
        --worker-memory 800MiB

The table is made in blocks, another 200,000 rows are for testing. `equipoise report` and LightGBM (its defaults,
100 rounds, all rows) run as processes of their own, and their peak memory is what the system counted. With workers
the report runs on a Dask cluster of processes that may use no more than the memory given, and one worker is killed
in the middle; any other worker that is lost was killed by its limit. With workers or `--memory` the table has
8-byte numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

COLUMNS, BLOCK, TEST_ROWS = 30, 100_000, 200_000


def make_block(number: int, rows: int, seed: int, share: float) -> pd.DataFrame:
    """Rows whose rare class depends on a few columns and their products; labels are noisy."""
    rng = np.random.default_rng([seed, number])
    X = rng.normal(size=(rows, COLUMNS)).astype(np.float32)
    X[:, 25:] = np.round(X[:, 25:] * 3)
    X[rng.random((rows, COLUMNS)) < 0.01] = np.nan
    Z = np.nan_to_num(X)
    score = Z[:, 0] + 0.8 * Z[:, 1] * Z[:, 2] + np.abs(Z[:, 3]) + 0.5 * Z[:, 4] + 0.7 * np.sin(2 * Z[:, 5])
    score = 1.6 * score + 0.4 * Z[:, 25] - 9.8 + np.log(share / 0.005)
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(COLUMNS)])
    frame["fraud"] = (rng.random(rows) < 1 / (1 + np.exp(-score))).astype(np.int8)
    return frame


def write_table(folder: Path, rows: int, share: float, seed: int, kind: str, dtype: str = "float32") -> Path:
    """The training rows as one CSV or as Parquet parts."""
    path = folder / ("train.csv" if kind == "csv" else "train")
    if kind == "parquet":
        path.mkdir()
    for number, start in enumerate(range(0, rows, BLOCK)):
        block = make_block(number, min(BLOCK, rows - start), seed, share)
        if kind == "csv":
            block.to_csv(path, mode="a", header=number == 0, index=False, float_format="%.5g")
        else:
            block.astype(dtype).to_parquet(path / f"{number:05d}.parquet", index=False)
    return path


@contextmanager
def cluster(workers: int, memory: str, found: dict[str, Any]) -> Iterator[list[str]]:
    """Options for a report on a Dask cluster that loses one worker once all rows are boosted on."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=memory, silence_logs=50
    ) as made:

        def alive() -> set[int]:
            return {worker.pid for worker in made.workers.values()}

        began, ended = alive(), threading.Event()

        def kill_one() -> None:
            while not ended.wait(0.5):
                tasks = made.scheduler.tasks.values()
                if any("_boost_on_blocks" in str(task.key) and task.state == "processing" for task in tasks):
                    ended.wait(5.0)
                    os.kill(min(alive()), signal.SIGKILL)
                    found["killed by us"] = 1
                    return

        killer = threading.Thread(target=kill_one, daemon=True)
        killer.start()
        yield ["--engine", made.scheduler_address]
        lost = began - alive()
        found["killed by the limit"] = len(lost) - found.get("killed by us", 0)
        ended.set()


def measured(command: list[str], note: str) -> dict[str, float]:
    """Wall seconds and the peak memory (GiB) of a process."""
    started = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    done = subprocess.run(command, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    if done.returncode:
        raise SystemExit(f"{note} failed")
    return {"seconds": round(time.monotonic() - started, 1), "peak_gib": round(max(peak, before) / 2**20, 2)}


def lightgbm_alone(train: Path, test: Path, threads: int) -> None:
    """LightGBM's defaults on all rows; prints its average precision and seconds."""
    import lightgbm as lgb
    from sklearn.metrics import average_precision_score

    if train.is_file():
        frame = pd.read_csv(train, dtype=np.float32)
    else:
        frame = pd.concat([pd.read_parquet(part).astype(np.float32) for part in sorted(train.iterdir())])
    started = time.monotonic()
    data = lgb.Dataset(frame.drop(columns="fraud"), frame["fraud"], free_raw_data=True)
    params = {"objective": "binary", "num_threads": threads, "verbosity": -1, "deterministic": True}
    booster = lgb.train(params, data, 100)
    seconds = time.monotonic() - started
    held = pd.read_parquet(test)
    score: Any = booster.predict(held.drop(columns="fraud"))
    found = float(average_precision_score(held["fraud"], score))
    print(json.dumps({"average_precision": found, "fit_seconds": round(seconds, 1)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--share", type=float, default=0.005, help="about the share of the rare class")
    parser.add_argument("--budget", default="10m")
    parser.add_argument("--format", choices=("csv", "parquet"), default="csv")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--memory", help="such as 2GiB: never load the parts whole")
    parser.add_argument("--workers", type=int, default=0, help="of a Dask cluster; 0 for none")
    parser.add_argument("--worker-memory", default="1GiB")
    parser.add_argument("--alone", nargs=2, type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.alone:
        lightgbm_alone(*args.alone, args.jobs)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dtype = "float64" if args.workers or args.memory else "float32"
        train = write_table(folder, args.rows, args.share, args.seed, args.format, dtype)
        test = make_block(10**6, TEST_ROWS, args.seed, args.share)
        test.to_parquet(folder / "test.parquet", index=False)
        print(json.dumps(compare(folder, train, test, args), indent=1))


def compare(folder: Path, train: Path, test: pd.DataFrame, args: argparse.Namespace) -> dict[str, Any]:
    """The report and LightGBM alone, judged on the same rows."""
    from sklearn.metrics import average_precision_score

    python = [sys.executable, "-m", "equipoise"]
    options = ["--memory", args.memory] if args.memory else []
    workers: dict[str, Any] = {}
    spread = cluster(args.workers, args.worker_memory, workers) if args.workers else nullcontext([])
    with spread as engine:
        ours = measured(
            [*python, "report", str(train), "--target", "fraud", "--budget", args.budget,
             "--jobs", str(args.jobs), "--out", str(folder / "out"), *options, *engine], "the report")  # fmt: skip
    predicted = folder / "predicted.csv"
    subprocess.run(
        [
            *python,
            "predict",
            str(folder / "out/model"),
            str(folder / "test.parquet"),
            "--out",
            str(predicted),
        ],
        check=True,
    )
    proba = pd.read_csv(predicted)["probability of 1"]
    ours["average_precision"] = float(average_precision_score(test["fraud"], proba))
    ours["mean_probability"], ours["share_in_test"] = float(proba.mean()), float(test["fraud"].mean())
    command = [
        sys.executable,
        __file__,
        "--jobs",
        str(args.jobs),
        "--alone",
        str(train),
        str(folder / "test.parquet"),
    ]
    alone = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    notes = json.loads((folder / "out/report.json").read_text())
    counts = notes["data"]["counts"]
    ours["share_in_training"] = counts["1"] / sum(counts.values())
    return {
        "rows": args.rows,
        "budget": args.budget,
        "equipoise": {**ours, **workers},
        "lightgbm": alone,
        "notes": _notes(notes),
    }


def _notes(report: Any) -> list[str]:
    """What the page says about the rows that were compared on and fitted to."""
    return [note for note in report["data"]["notes"] if "compared" in note or "fitted to" in note]


if __name__ == "__main__":
    main()
