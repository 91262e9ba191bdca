"""``equipoise report``."""

from __future__ import annotations

import argparse

HELP = "diagnose a data set, compare treatments fairly, and write a report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="out", metavar="DIR", help="where to write (default: out)")


def run(args: argparse.Namespace) -> int:
    raise ValueError("not built yet")
