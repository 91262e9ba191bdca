"""``equipoise diagnose``."""

from __future__ import annotations

import argparse

from equipoise.cli._options import InputPath, add_table, table_of

HELP = "ask what is hard about a table or images, without training a model to keep"
JSON = True
_MARKS = {"good": "ok", "note": "note", "warning": "WARNING"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=InputPath, metavar="DATA",
                        help="CSV, Parquet, npz or a folder of images by class; - is standard input")  # fmt: skip
    add_table(parser)
    parser.add_argument("--questions", metavar="NAMES", help="only these, separated by commas")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="S",
                        help="leave out questions that would take longer together")  # fmt: skip
    parser.add_argument("--out", metavar="DIR", help="also write diagnosis.html, .md and .json there")
    parser.add_argument("--seed", type=int, default=0)


def run(args: argparse.Namespace) -> int:
    from equipoise.diagnosis import diagnose

    table = table_of(args)
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
