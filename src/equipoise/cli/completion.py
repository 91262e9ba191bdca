"""``equipoise completion``."""

from __future__ import annotations

import argparse

from equipoise.cli._options import InputPath, leaves

HELP = "print a script that lets a shell complete the command's words"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=["bash", "zsh"], help="the shell to write it for")


def run(args: argparse.Namespace) -> int:
    import shtab

    from equipoise.cli import build_parser

    parser = build_parser()
    for leaf in leaves(parser):
        for action in leaf._actions:
            if action.type is InputPath or action.dest in ("out", "config"):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell=args.shell))
    return 0
