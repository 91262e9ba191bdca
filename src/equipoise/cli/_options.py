"""What all commands share: paths that must exist, how much is said, JSON for programs, and a config file."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise._core.files import existing, read_toml

if TYPE_CHECKING:
    from equipoise.datasets import DataTable

_KINDS = {b"PAR1": "stdin.parquet", b"PK\x03\x04": "stdin.npz"}


class InputPath(str):
    """The type of an option that names something to read; ``-`` is the standard input."""


def leaves(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """The parsers that end a command line: the parser itself, or those of all its subcommands."""
    found = [leaf for subparser in _subcommands(parser).values() for leaf in leaves(subparser)]
    return found or [parser]


def _subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The subcommands of a parser, by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def add_common(parser: argparse.ArgumentParser, *, with_json: bool) -> None:
    """Add the options that every command takes to a parser that ends a command line."""
    group = parser.add_argument_group("what every command takes")
    group.add_argument(
        "-q", "--quiet", dest="verbosity", action="store_const", const=-1, default=0,
        help="say nothing but results and errors",
    )  # fmt: skip
    group.add_argument(
        "-v", "--verbose", dest="verbosity", action="store_const", const=1,
        help="show progress also off a terminal, the time it took, and where an error happened",
    )  # fmt: skip
    if with_json:
        group.add_argument(
            "--json", action="store_true", help="print the result as JSON; all else goes to standard error"
        )
    group.add_argument(
        "--config", metavar="FILE.toml", help="take options from a file; the command line wins over it"
    )


def add_table(parser: argparse.ArgumentParser) -> None:
    """Add what says how a table is read."""
    add = parser.add_argument
    add("--target", metavar="COLUMN", help="the column to predict")
    add("--positive", metavar="LABEL", help="the label to find (default: the rarer of two)")
    add("--group", metavar="COLUMN", help="rows with the same value belong together")
    add("--time", metavar="COLUMN", help="when each row was seen: what is learned early is judged late")
    add("--id", metavar="COLUMN", help="names the rows, and is not learned from")
    add("--drop", metavar="COLUMNS", help="not to be learned from, separated by commas")
    add("--encoding", default="utf-8", help="of a text file (default: utf-8)")


def table_of(args: argparse.Namespace, **more: Any) -> DataTable:
    """The table that a command line names."""
    from equipoise.datasets.reading import read_table

    given = {name: getattr(args, name) for name in ("positive", "group", "time", "id", "encoding")}
    dropped = args.drop.split(",") if args.drop else ()
    return read_table(args.data, args.target, drop=dropped, **given, **more)


def with_config(parser: argparse.ArgumentParser, argv: Sequence[str]) -> list[str]:
    """The command line with the options of its ``--config`` file written before its own.

    Raises
    ------
    ValueError
        If the file cannot be read as TOML or holds a key that is no option of the command.
    """
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--config")
    config = finder.parse_known_args(list(argv))[0].config
    depth = 0
    while depth < len(argv) and argv[depth] in _subcommands(parser):
        parser = _subcommands(parser)[argv[depth]]
        depth += 1
    if config is None or _subcommands(parser):
        return list(argv)
    words = [
        word for key, value in read_toml(config).items() for word in _words(parser, config, key, value, argv)
    ]
    return [*argv[:depth], *words, *argv[depth:]]


def _words(
    parser: argparse.ArgumentParser, config: str, key: str, value: Any, argv: Sequence[str]
) -> list[str]:
    """One entry of a config file as it would stand on the command line."""
    options = {
        name[2:]: action for action in parser._actions for name in action.option_strings if name[:2] == "--"
    }
    action = options.get(key)
    if action is None or key in ("config", "help"):
        known = ", ".join(sorted(set(options) - {"config", "help"}))
        raise ValueError(f"{config}: {parser.prog} has no option {key!r}; it has {known}")
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise ValueError(f"{config}: {key} must be true or false, got {value!r}")
        return [f"--{key}"] if value else []
    if isinstance(value, (bool, dict)):
        raise ValueError(f"{config}: {key} must be a text, a number or a list of them, got {value!r}")
    repeated = isinstance(action, argparse._AppendAction)
    if repeated and any(word == f"--{key}" or word.startswith(f"--{key}=") for word in argv):
        return []  # the command line's list replaces the file's
    values = value if isinstance(value, list) else [value]
    return [f"--{key}={one}" for one in values] if repeated else [f"--{key}={','.join(map(str, values))}"]


@contextlib.contextmanager
def inputs_at_hand(args: argparse.Namespace) -> Iterator[None]:
    """Refuse inputs that do not exist before anything heavy is loaded, and put the standard input into a file."""
    with contextlib.ExitStack() as stack:
        for name, value in vars(args).items():
            if not isinstance(value, InputPath):
                continue
            if value == "-":
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="equipoise-"))
                setattr(args, name, str(_standard_input(Path(folder))))
            else:
                existing(value)
        yield


def _standard_input(folder: Path) -> Path:
    """The standard input as a file, named by the kind of its content so that it is read as such."""
    stream = sys.stdin.buffer
    start = stream.read(4)
    if not start:
        raise ValueError("the standard input is empty: nothing to read")
    path = folder / _KINDS.get(start, "stdin.csv")
    with path.open("wb") as file:
        file.write(start)
        while block := stream.read(1 << 20):
            file.write(block)
    return path


class Output:
    """Where a command's words and its result go, by ``--quiet``, ``--verbose`` and ``--json``."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.verbosity: int = args.verbosity
        self.json: bool = getattr(args, "json", False)

    def say(self, text: str = "") -> None:
        """Print a sentence for people: not with ``--quiet``, and beside the result with ``--json``."""
        if self.verbosity >= 0:
            print(text, file=sys.stderr if self.json else sys.stdout, flush=True)

    def give(self, result: Any) -> None:
        """Print the result for programs if ``--json`` asks for it."""
        if self.json:
            from equipoise.report.as_json import to_plain

            print(json.dumps(to_plain(result), indent=1, ensure_ascii=True, allow_nan=False))

    @contextlib.contextmanager
    def bars(self) -> Iterator[None]:
        """Let progress bars follow the wish: never with ``--quiet``, always with ``--verbose``."""
        before = os.environ.get("EQUIPOISE_PROGRESS")
        if self.verbosity:
            os.environ["EQUIPOISE_PROGRESS"] = "1" if self.verbosity > 0 else "0"
        try:
            yield
        finally:
            if self.verbosity:
                os.environ.pop("EQUIPOISE_PROGRESS")
                if before is not None:
                    os.environ["EQUIPOISE_PROGRESS"] = before
