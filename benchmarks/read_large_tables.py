"""Time and peak memory of reading large tables. Run: python benchmarks/read_large_tables.py csv|double|single"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

COLUMNS = 30
PART = 1_000_000


def make_part(rng: np.random.Generator, precision: str) -> pa.Table:
    columns = {f"v{i}": rng.normal(size=PART).astype(precision) for i in range(COLUMNS)}
    return pa.table({**columns, "y": (rng.random(PART) < 0.01).astype(np.int8)})


def write(path: Path, kind: str) -> None:
    rng = np.random.default_rng(0)
    if kind == "csv":
        pyarrow.csv.write_csv(make_part(rng, "float32"), path)
        return
    first = make_part(rng, "float32" if kind == "single" else "float64")
    with pyarrow.parquet.ParquetWriter(path, first.schema, use_dictionary=False) as writer:
        for _ in range(10):
            writer.write_table(first)


def read(path: str) -> None:
    from equipoise.datasets import read_table

    started = time.process_time()
    table = read_table(path, "y")
    seconds, peak = time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{table!r} {table.X.dtype}: {seconds:.1f} CPU seconds, peak {peak:.2f} GiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "kind", help="csv (1 million rows), double or single (10 million rows of Parquet), or a file"
    )
    kind = parser.parse_args().kind
    if Path(kind).is_file():
        read(kind)
        return
    with tempfile.TemporaryDirectory() as folder:  # another process reads, so that the peak is its own
        path = Path(folder) / ("table.csv" if kind == "csv" else "table.parquet")
        write(path, kind)
        subprocess.run([sys.executable, __file__, str(path)], check=True)


if __name__ == "__main__":
    main()
