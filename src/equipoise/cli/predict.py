"""``equipoise predict``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from equipoise.cli._options import InputPath

JSON = True
HELP = "predict the rows of a new table with a model folder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=InputPath, metavar="MODEL", help="the model folder that a report wrote")
    parser.add_argument("data", type=InputPath, metavar="DATA",
                        help="CSV, Parquet, npz or a folder of images; - reads standard input")  # fmt: skip
    parser.add_argument(
        "--out", metavar="FILE", default="-",
        help="where to write the predictions as CSV (default: -, standard output)",
    )  # fmt: skip
    parser.add_argument("--id", metavar="COLUMN", help="a column that names the rows, kept in the output")
    parser.add_argument("--encoding", default="utf-8", help="of a text file (default: utf-8)")


def run(args: argparse.Namespace) -> int:
    from equipoise._core.files import check_writable, replacing
    from equipoise._core.text import for_spreadsheet
    from equipoise.advisor import load
    from equipoise.advisor.predicting import predict_file

    to_file = args.out != "-"
    if to_file:
        check_writable(Path(args.out).parent)
    table, notes = predict_file(load(args.model), args.data, id=args.id, encoding=args.encoding)
    shown = table.map(for_spreadsheet).rename(columns=for_spreadsheet)
    if not shown.equals(table):
        notes = [*notes, "A ' stands before text that a spreadsheet would take for a formula."]
    if args.output.verbosity >= 0:
        for note in notes:
            print(note, file=sys.stderr)
    if not to_file and not args.output.json:
        if sys.stdout.isatty():
            shown.to_csv(sys.stdout, index=False)
        else:  # for another program: every byte, whatever the terminal's encoding
            sys.stdout.buffer.write(shown.to_csv(index=False).encode())
        return 0
    if to_file:
        with replacing(args.out) as temporary:
            shown.to_csv(temporary, index=False)
        args.output.say(f"Wrote {len(table):,} predictions to {args.out}")
    args.output.give({"predictions": table.to_dict("records"), "notes": notes})
    return 0
