"""``equipoise diagnose``."""

from __future__ import annotations

import argparse

from equipoise.cli._options import InputPath

HELP = "ask what is hard about a table or images, without training a model to keep"
JSON = True
_MARKS = {"good": "ok", "note": "note", "warning": "WARNING"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=InputPath, metavar="DATA",
                        help="CSV, Parquet, npz or a folder of images by class; - is standard input")  # fmt: skip
    parser.add_argument("--target", metavar="COLUMN", help="the column to predict")
    parser.add_argument("--positive", metavar="LABEL", help="the label to find (default: the rarer of two)")
    parser.add_argument("--group", metavar="COLUMN", help="rows with the same value belong together")
    parser.add_argument("--time", metavar="COLUMN", help="when each row was seen")
    parser.add_argument("--id", metavar="COLUMN", help="names the rows, and is not learned from")
    parser.add_argument("--drop", metavar="COLUMNS", help="not to be learned from, separated by commas")
    parser.add_argument("--encoding", default="utf-8", help="of a text file (default: utf-8)")
    parser.add_argument("--questions", metavar="NAMES", help="only these, separated by commas")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="S",
                        help="leave out questions that would take longer together")  # fmt: skip
    parser.add_argument("--out", metavar="DIR", help="also write diagnosis.html, .md and .json there")
    parser.add_argument("--seed", type=int, default=0)


def run(args: argparse.Namespace) -> int:
    from equipoise.datasets import read_table
    from equipoise.diagnosis import diagnose

    table = read_table(
        args.data, args.target, encoding=args.encoding, positive=args.positive, group=args.group, time=args.time,
        id=args.id, drop=args.drop.split(",") if args.drop else (),
    )  # fmt: skip
    for note in table.notes:
        args.output.say(note)
    questions = args.questions.split(",") if args.questions else None
    found = diagnose(table, questions=questions, seconds=args.seconds, random_state=args.seed)
    if not args.output.json:  # the answers are the result, which --quiet keeps
        for finding in found.findings:
            print(f"{_MARKS[finding.level]:>7}  {finding.question}\n{'':9}{finding.answer}")
    counts = dict(zip(map(str, table.classes), table.counts.tolist(), strict=True))
    result = {"counts": counts, "findings": found.to_json(), "left_out": found.left_out, "notes": table.notes}
    if found.left_out:
        args.output.say(f"Not asked, for lack of time: {' '.join(found.left_out)}")
    if args.out:
        from equipoise.report import Report

        page = Report(f"{table.name}: a diagnosis", [found.section()], data=result)
        paths = page.write(args.out, "diagnosis")
        args.output.say(f"Page: {paths['html']} (also diagnosis.md, diagnosis.json)")
        result["files"] = paths
    args.output.give(result)
    return 0
