"""The ``equipoise`` command. One file a command: ``HELP``, ``add_arguments(parser)`` and ``run(args)``.

A command's file imports what is heavy inside ``run``, so that ``equipoise --help`` answers at once.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence

import equipoise
from equipoise.cli._border import Terminated, safe_streams, sentence, termination_as_interrupt


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="equipoise", description="Learning from imbalanced data: diagnose, compare, choose, and trust."
    )
    parser.add_argument("--version", action="version", version=f"equipoise {equipoise.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        if module.name.startswith("_"):
            continue
        command = importlib.import_module(f"{__name__}.{module.name}")
        subparser = commands.add_parser(module.name, help=command.HELP, description=command.HELP)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; whatever goes wrong ends in one sentence and exit code 2, never in a traceback."""
    with safe_streams():
        args = build_parser().parse_args(argv)
        try:
            with termination_as_interrupt():
                return args.run(args) or 0
        except KeyboardInterrupt as stopped:
            print("equipoise: interrupted", file=sys.stderr)
            return 143 if isinstance(stopped, Terminated) else 130
        except BrokenPipeError:  # the reader (head, less) has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except Exception as error:
            if os.environ.get("EQUIPOISE_DEBUG"):
                raise
            print(f"equipoise {args.command}: {sentence(error)}", file=sys.stderr)
            return 2
