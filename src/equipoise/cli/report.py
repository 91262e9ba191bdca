"""``equipoise report``."""

from __future__ import annotations

import argparse

HELP = "diagnose a data set, compare treatments fairly, and write a report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="out", metavar="DIR", help="where to write (default: out)")


def run(args: argparse.Namespace) -> int:
    from equipoise.bench.compare import compare
    from equipoise.bench.compare.sections import comparison_section
    from equipoise.datasets import load_digits_imbalanced
    from equipoise.report import Report

    counts = {digit: 45 if digit == 8 else 150 for digit in range(10)}
    data = load_digits_imbalanced(counts=counts)
    treatments = ["plain", "class_weight", "threshold", "smote"]
    result = compare(data.X, data.y, positive=8, treatments=treatments, repeats=2, n_jobs=2, random_state=0)
    report = Report(
        "The eights among the digits",
        [comparison_section(result)],
        data={"summary": result.summary.to_dict("records")},
    )
    paths = report.write(args.out)
    print(f"Wrote {paths['html']}")
    return 0
