"""``equipoise bench``."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.studies import Spec

HELP = "run a study, resume it, list the studies, or write a study's page"


_STORE = "where results go (default: results.sqlite in the study's folder, else NAME.sqlite)"
_ONLY = "only the cells with these settings; may be given again"
_SET = "other values of a setting than the study's own, such as dataset=svhn; may be given again"
_VALUES = "SETTING=VALUE[,VALUE]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("run", help="run a study: a name of the list, or a path").add_argument
    add("spec", metavar="NAME|FOLDER|SPEC.toml")
    add("--store", metavar="FILE", help=_STORE)
    add("--engine", default="local", help="local, or a Dask scheduler's tcp://host:port")
    add("--jobs", type=int, metavar="N", help="local processes (default: all cores)")
    add("--size", default="small", help="small (default) or paper")
    add("--resume", action="store_true", help="go on from what the store holds")
    add("--retry-failed", action="store_true", help="with --resume: run failed cells again")
    add("--dry-run", action="store_true", help="print the cells that would run and about how long they take")
    add("--only", action="append", default=[], metavar=_VALUES, help=_ONLY)
    add("--set", action="append", default=[], metavar=_VALUES, help=_SET)
    add = actions.add_parser("report", help="write a study's pages: HTML, Markdown, pictures").add_argument
    add("store", metavar="NAME|FOLDER|STORE.sqlite")
    add("--out", metavar="DIR", help="where to write (default: the store's folder)")
    index = "write index.html, which leads to the pages of all studies"
    add = actions.add_parser("index", help=index).add_argument
    add("--out", default="studies", metavar="DIR", help="the folder of the studies")
    actions.add_parser("list", help="smoke, and the studies of the nearest folder studies/")


def run(args: argparse.Namespace) -> int:
    return {"run": _run, "report": _report, "index": _index, "list": _list}[args.action](args)


def _run(args: argparse.Namespace) -> int:
    from equipoise.studies import load_spec, run_study

    spec = load_spec(args.spec)
    store = args.store or spec.default_store(args.size)
    which = {"size": args.size, "only": _selection(args.only), "changed": _changes(args.set)}
    if args.dry_run:
        return _dry_run(spec, store, which)
    how = {name: getattr(args, name) for name in ("engine", "jobs", "resume", "retry_failed")}
    counts = run_study(spec, store, **which, **how)
    print(f"{store}: {counts.done} cells done" + (f", {counts.failed} failed" if counts.failed else ""))
    return 1 if counts.failed else 0


def _dry_run(spec: Spec, store: str | Path, which: dict[str, Any]) -> int:
    from equipoise.studies.grid import canonical_json
    from equipoise.studies.run import cells_to_run, clock

    cells, seconds = cells_to_run(spec, store, **which)
    for cell in cells:
        print(canonical_json(cell))
    unknown = "an unknown time, for the store holds no cell (run one with --only, then ask again)"
    time = unknown if seconds is None else f"about {clock(seconds)}"
    print(f"{spec.name}: {len(cells)} cells to run, {time}, one after another")
    return 0


def _report(args: argparse.Namespace) -> int:
    from equipoise.studies import load_spec
    from equipoise.studies.pages import write_pages

    given = Path(args.store)
    is_store = given.suffix == ".sqlite" or (given.is_file() and given.suffix not in (".py", ".toml"))
    spec = None if is_store else load_spec(args.store)
    store = Path(args.store) if spec is None else spec.default_store()
    for path in write_pages(store, args.out or store.parent, spec):
        print(path)
    return 0


def _index(args: argparse.Namespace) -> int:
    from equipoise.studies import named_spec, spec_names
    from equipoise.studies.pages import write_index

    print(write_index([named_spec(name) for name in spec_names()], args.out))
    return 0


def _changes(texts: list[str]) -> dict[str, list[Any]]:
    """New values by setting: numbers, true and false as JSON has them, anything else as text."""
    return {name: [_value(text) for text in values] for name, values in _selection(texts, "--set").items()}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _selection(texts: list[str], option: str = "--only") -> dict[str, list[str]]:
    """Values by setting; one with a comma in it is quoted, as in a CSV file."""
    chosen: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name or not values:
            raise ValueError(f"{option} must be SETTING=VALUE[,VALUE], got {text!r}")
        chosen.setdefault(name, []).extend(next(csv.reader([values])))
    return chosen


def _list(args: argparse.Namespace) -> int:
    from equipoise.studies import named_spec, spec_names

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
