"""The ``equipoise`` command. One file a command: ``HELP``, ``add_arguments(parser)`` and ``run(args)``.

A command's file imports what is heavy inside ``run``, so that ``equipoise --help`` answers at once. Options that
name something to read have the type :class:`~equipoise.cli._options.InputPath`; sentences for people go through
``args.output.say``. A command with ``JSON = True`` takes ``--json`` and gives its result to ``args.output.give``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
import time
from collections.abc import Sequence

from equipoise.cli._border import Terminated, safe_streams, sentence, termination_as_interrupt
from equipoise.cli._options import Output, add_common, inputs_at_hand, leaves, with_config

__all__ = ["build_parser", "main"]


class _Version(argparse.Action):
    """Prints the version; it is looked up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        import equipoise

        print(f"equipoise {equipoise.__version__}")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line, with every command that has a file in this room.

    Returns
    -------
    argparse.ArgumentParser
        The parser; what it parses has the command's function as ``run``.
    """
    parser = argparse.ArgumentParser(
        prog="equipoise", description="Learning from imbalanced data: diagnose, compare, choose, and trust."
    )
    parser.add_argument("-V", "--version", nargs=0, action=_Version, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        if module.name.startswith("_"):
            continue
        command = importlib.import_module(f"{__name__}.{module.name}")
        subparser = commands.add_parser(module.name, help=command.HELP, description=command.HELP)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
        for leaf in leaves(subparser):
            add_common(leaf, with_json=getattr(command, "JSON", False))
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; whatever goes wrong ends in one sentence and exit code 2, never in a traceback.

    Parameters
    ----------
    argv : sequence of str, optional
        The words of the command line after the program's name; by default those of this process.

    Returns
    -------
    int
        The exit code: 0 if all went well, 2 after an error, 130 and 143 after an interrupt.

    Examples
    --------
    >>> main(["theory", "anomaly", "--figure", "99"])
    2
    """
    words = list(sys.argv[1:] if argv is None else argv)
    with safe_streams():
        parser = build_parser()
        if not words:
            parser.print_help()
            return 0
        command, debugging = words[0], bool(os.environ.get("EQUIPOISE_DEBUG"))
        try:
            args = parser.parse_args(with_config(parser, words))
            args.output = Output(args)
            debugging = debugging or args.output.verbosity > 0
            with termination_as_interrupt():
                return _run(args)
        except KeyboardInterrupt as stopped:
            print("equipoise: interrupted", file=sys.stderr)
            return 143 if isinstance(stopped, Terminated) else 130
        except BrokenPipeError:  # the reader (head, less) has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except Exception as error:
            if debugging:
                raise
            print(f"equipoise {command}: {sentence(error)}", file=sys.stderr)
            return 2


def _run(args: argparse.Namespace) -> int:
    started = time.monotonic()
    with inputs_at_hand(args), args.output.bars():
        code = args.run(args) or 0
    if args.output.verbosity > 0:
        print(f"{time.monotonic() - started:.1f} s", file=sys.stderr)
    return code
