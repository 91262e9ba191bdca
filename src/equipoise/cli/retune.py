"""``equipoise retune``."""

from __future__ import annotations

import argparse
from pathlib import Path

from equipoise.cli._options import InputPath
from equipoise.cli._wishes import add_wishes, parse_prior, read_wishes

JSON = True
HELP = "decide otherwise with the same model, without training: other costs, a recall, alerts, another prior"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", type=InputPath, metavar="MODEL", help="the folder of a report's model or a conditional one"
    )
    add_wishes(parser)
    parser.add_argument(
        "--threshold", type=float, metavar="T", help="this threshold on the positive's probability"
    )
    parser.add_argument("--data", type=InputPath, metavar="FILE",
                        help="labeled rows to tune a conditional model on; - is standard input")  # fmt: skip
    parser.add_argument("--target", metavar="COLUMN", help="the column with the labels in --data")
    parser.add_argument(
        "--out", metavar="DIR", help="where to write the model (default: beside it, as MODEL-retuned)"
    )
    parser.add_argument("--in-place", action="store_true", help="change MODEL itself")


def run(args: argparse.Namespace) -> int:
    from equipoise.advisor import load
    from equipoise.cli._retune_conditional import is_conditional, retune_conditional

    wishes, prior = read_wishes(args), parse_prior(args.prior)
    if args.threshold is not None:
        wishes["threshold"] = args.threshold
    if not wishes and prior is None:
        raise ValueError("say what to tune to: --cost fp=1,fn=20, --recall 0.95, --alerts 50 or --prior 0.01")
    if args.out and args.in_place:
        raise ValueError("--out and --in-place cannot both be followed: give one of them")
    if is_conditional(args.model):
        return retune_conditional(args)
    if args.data is not None:
        raise ValueError(
            "a report's model is retuned on its own held-out rows: --data is for a conditional model"
        )
    model = load(args.model)
    tuned = model.retuned(prior=prior, **wishes)
    point = tuned.operating_point_
    lines = []
    if point.threshold is not None:
        before, now = (
            "by row" if p.decision.wish.by_row else f"{p.threshold:.4f}"
            for p in (model.operating_point_, point)
        )
        lines.append(f"Threshold {before} -> {now}, for {point.wish}")
    named = zip(model._labels, point.decision.prior, strict=True)
    shares = ", ".join(f"{share:.4g} of {label}" for label, share in named)
    lines.append(f"At class shares {shares}, on rows that were not trained on:")
    for name, value in point.figures.items():
        code = name.removeprefix("recall of class ")
        label = f"recall of {model._labels[int(code)]}" if code != name else name.replace("_", " ")
        lines.append(
            f"  {label:18s} {value.value:.3f}  ({value.low:.3f} to {value.high:.3f} in a fresh batch)"
        )
    source = Path(args.model)
    target = source if args.in_place else Path(args.out or source.with_name(f"{source.name}-retuned"))
    saved = tuned.save(target)
    args.output.say("\n".join([*lines, f"Wrote {saved}"]))
    figures = {name: [one.value, one.low, one.high, *one.long_run] for name, one in point.figures.items()}
    args.output.give(
        {"wish": point.wish, "threshold": point.threshold, "prior": point.decision.prior, "classes": model._labels,
         "figures": figures, "model": saved}
    )  # fmt: skip
    return 0
