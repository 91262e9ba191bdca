"""``equipoise bench``."""

from __future__ import annotations

import argparse
import csv
import sys

HELP = "run a study, resume it, list the studies, or write a study's page"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    run_parser = actions.add_parser("run", help="run a study: a name of the list, or a SPEC.toml")
    run_parser.add_argument("spec", metavar="NAME|SPEC.toml")
    run_parser.add_argument("--store", metavar="FILE", help="where results go (default: NAME.sqlite)")
    run_parser.add_argument(
        "--engine", default="local", metavar="ENGINE", help="local, or a Dask scheduler's tcp://host:port"
    )
    run_parser.add_argument("--jobs", type=int, metavar="N", help="local processes (default: all cores)")
    run_parser.add_argument("--size", default="small", help="small (default) or paper")
    run_parser.add_argument("--resume", action="store_true", help="go on from what the store holds")
    run_parser.add_argument(
        "--retry-failed", action="store_true", help="with --resume: run failed cells again"
    )
    run_parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="SETTING=VALUE[,VALUE]",
        help="only the cells with these settings; may be given again",
    )
    report_parser = actions.add_parser("report", help="write a store's pages: HTML, Markdown, pictures")
    report_parser.add_argument("store", metavar="STORE")
    report_parser.add_argument("--out", default="out", metavar="DIR", help="where to write (default: out)")
    actions.add_parser("list", help="the studies that come with Equipoise")


def run(args: argparse.Namespace) -> int:
    return {"run": _run, "report": _report, "list": _list}[args.action](args)


def _run(args: argparse.Namespace) -> int:
    from equipoise.bench import load_spec, run_study

    spec = load_spec(args.spec)
    suffix = "" if args.size == "small" else f"-{args.size}"
    store = args.store or f"{spec.name}{suffix}.sqlite"
    counts = run_study(
        spec,
        store,
        size=args.size,
        engine=args.engine,
        jobs=args.jobs,
        only=_selection(args.only),
        resume=args.resume,
        retry_failed=args.retry_failed,
    )
    print(f"{store}: {counts.done} cells done" + (f", {counts.failed} failed" if counts.failed else ""))
    return 1 if counts.failed else 0


def _report(args: argparse.Namespace) -> int:
    from equipoise.bench.pages import write_pages

    for path in write_pages(args.store, args.out):
        print(path)
    return 0


def _selection(texts: list[str]) -> dict[str, list[str]]:
    """Values by setting; one with a comma in it is quoted, as in a CSV file."""
    chosen: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name or not values:
            raise ValueError(f"--only must be SETTING=VALUE[,VALUE], got {text!r}")
        chosen.setdefault(name, []).extend(next(csv.reader([values])))
    return chosen


def _list(args: argparse.Namespace) -> int:
    from equipoise.bench import named_spec, spec_names

    for name in spec_names():
        try:
            spec = named_spec(name)
        except Exception as error:  # a study whose extra is not installed must not hide the others
            print(f"{name:24} cannot be loaded: {error}", file=sys.stderr)
            continue
        try:
            sizes = "cells: " + ", ".join(f"{size} {len(spec.cells(size))}" for size in spec.sizes)
        except ValueError:
            sizes = "its data is not all on this machine"
        reference = f" [{spec.reference}]" if spec.reference else ""
        print(f"{name:24} {spec.title}{reference} ({sizes})")
    return 0
