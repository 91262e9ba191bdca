"""``equipoise report``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.cli._options import InputPath, add_table, table_of
from equipoise.cli._wishes import add_wishes, parse_prior, read_wishes

if TYPE_CHECKING:
    from equipoise.datasets import DataTable

JSON = True
HELP = "from a table or images to the best decision: a diagnosis, a comparison, a model and a page"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="?", type=InputPath, metavar="DATA", help="CSV, Parquet, npz or a folder of "
                        "images by class; - reads standard input; without it an embedded set")  # fmt: skip
    add_table(parser)
    add_wishes(parser)
    parser.add_argument("--budget", default="5m", metavar="5m", help="time for all of it: 90s, 5m, 1h")
    parser.add_argument("--out", default="out", metavar="DIR", help="where to write (default: out)")
    parser.add_argument("--treatments", metavar="NAMES", help="only these, separated by commas")
    parser.add_argument(
        "--jobs", type=int, help="threads; -1 is as many as processors, -2 one less (default: -1)"
    )
    parser.add_argument("--engine", default="local", metavar="ADDRESS", help="local, or dask://host:port to spread "
                        "the fits over a Dask cluster")  # fmt: skip
    parser.add_argument(
        "--memory", metavar="2GiB", help="never load Parquet parts whole: use about so much memory"
    )
    parser.add_argument("--seed", type=int, default=0)


def run(args: argparse.Namespace) -> int:
    began = time.monotonic()  # loading the learners is part of the budget
    from equipoise._core.files import check_writable, read_json
    from equipoise._core.sealed import check_replaceable
    from equipoise.advisor import Advisor
    from equipoise.advisor.budget import Budget, parse_duration
    from equipoise.advisor.writing import write_report

    budget = Budget(parse_duration(args.budget), began)
    wishes = read_wishes(args)
    advisor = Advisor(
        **wishes, prior=parse_prior(args.prior), budget=args.budget,
        treatments=args.treatments.split(",") if args.treatments else None,
        n_jobs=-1 if args.jobs is None else args.jobs, engine=args.engine, random_state=args.seed,
        verbose=args.output.verbosity >= 0,
    )  # fmt: skip
    check_writable(args.out)
    check_replaceable(Path(args.out, "model"))
    table = _read(args, wishes)
    for note in table.notes:
        args.output.say(note)
    paths = write_report(advisor, table, args.out, budget, id=args.id)
    for note in advisor.compared_.notes:
        if note not in table.notes:
            args.output.say(note)
    args.output.say(f"Report: {paths['html']} (also report.md, report.json)")
    args.output.say(f"Model:  {paths['model']}")
    unmet = advisor.unmet_wish_
    if args.output.json:
        args.output.give({**read_json(paths["json"])["data"], "unmet_wish": unmet, "files": paths})
    if unmet:
        print(f"equipoise: {unmet}", file=sys.stderr)
        return 2
    return 0


def _read(args: argparse.Namespace, wishes: dict[str, Any]) -> DataTable:
    from equipoise.metrics import Wish
    from equipoise.metrics.by_class import costs_of_errors

    if args.data is None:
        from equipoise.advisor._embedded import embedded_table

        return embedded_table().with_positive(8 if args.positive is None else int(args.positive))
    errors = costs_of_errors(wishes.get("cost"))
    wish = Wish.make(**{k: v for k, v in wishes.items() if k != "cost" or errors})
    return table_of(args, keep_values=wish.columns, memory=_memory(args))


def _memory(args: argparse.Namespace) -> Any:
    """What a folder of parts may use: what was asked for, and on a cluster no more than a worker has to spare."""
    if args.engine == "local" or not Path(args.data).is_dir():
        return args.memory
    from equipoise.advisor.engines import room_for_a_sample
    from equipoise.datasets.parts import parse_memory

    return min(parse_memory(args.memory or "2GiB"), room_for_a_sample(args.engine))
