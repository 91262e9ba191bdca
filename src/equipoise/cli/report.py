"""``equipoise report``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

HELP = "diagnose a data set, compare treatments fairly, and write a report and a model"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="?", metavar="DATA", help="CSV, Parquet, npz or a folder of images by class; "
                        "without it an embedded set")  # fmt: skip
    parser.add_argument("--target", metavar="COLUMN", help="the column to predict")
    parser.add_argument("--positive", metavar="LABEL", help="the label to find (default: the rarer of two)")
    parser.add_argument("--cost", metavar="fp=1,fn=20", help="costs of a false alarm and of a miss")
    parser.add_argument("--budget", default="5m", metavar="5m", help="time for all of it: 90s, 5m, 1h")
    parser.add_argument("--out", default="out", metavar="DIR", help="where to write (default: out)")
    parser.add_argument("--encoding", default="utf-8", help="of a text file (default: utf-8)")
    parser.add_argument("--treatments", metavar="NAMES", help="only these, separated by commas")
    parser.add_argument(
        "--repeats", type=int, default=3, help="most repeats of the cross-validation (default: 3)"
    )
    parser.add_argument("--jobs", type=int, help="processes (default: as many as cores)")
    parser.add_argument("--seed", type=int, default=0)


def run(args: argparse.Namespace) -> int:
    from equipoise._core.files import check_writable
    from equipoise._core.sealed import check_replaceable
    from equipoise.advisor.job import Options, run_job
    from equipoise.advisor.job.wishes import parse_cost, parse_duration
    from equipoise.datasets.reading import read_table

    options = Options(
        positive=args.positive,
        cost=parse_cost(args.cost),
        budget=parse_duration(args.budget),
        out=args.out,
        treatments=args.treatments.split(",") if args.treatments else None,
        repeats=args.repeats,
        n_jobs=args.jobs or len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else args.jobs or 1,
        seed=args.seed,
    )
    if args.data is None:
        from equipoise.advisor.job.embedded import embedded_table

        table = embedded_table()
        options = Options(**{**vars(options), "positive": args.positive or "8"})
    else:
        table = read_table(args.data, args.target, encoding=args.encoding)
    check_writable(args.out)
    check_replaceable(Path(args.out, "model"))
    for note in table.notes:
        print(note)
    paths = run_job(table, options)
    print(f"Report: {paths['html']} (also report.md, report.json)")
    print(f"Model:  {paths['model']}")
    return 0
