"""``equipoise retune``."""

from __future__ import annotations

import argparse

HELP = "move a model's threshold to other costs, a wanted recall or another prior, without training"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="the folder of a report's model or a conditional one")
    parser.add_argument("--cost", metavar="fp=1,fn=20", help="costs of a false alarm and of a miss")
    parser.add_argument("--recall", type=float, metavar="R", help="find at least this share of the positives")
    parser.add_argument(
        "--prior", metavar="P", help="share of the positives (or of each class) where it will be used"
    )
    parser.add_argument("--data", metavar="FILE", help="labeled rows, which a conditional model is tuned on")
    parser.add_argument("--target", metavar="COLUMN", help="the column with the labels in --data")
    parser.add_argument("--out", metavar="DIR", help="write a new model folder (default: change this one)")


def run(args: argparse.Namespace) -> int:
    from equipoise.advisor.job.model import load_model, save_model
    from equipoise.advisor.job.predicting import retune
    from equipoise.advisor.job.wishes import parse_cost, parse_prior
    from equipoise.cli._retune_conditional import is_conditional, retune_conditional

    if args.cost is None and args.recall is None and args.prior is None:
        raise ValueError("say what to tune to: --cost fp=1,fn=20, --recall 0.95 or --prior 0.01")
    if args.cost is not None and args.recall is not None:
        raise ValueError("a threshold follows from a cost or from a recall, not from both: give one of them")
    if is_conditional(args.model):
        print(retune_conditional(args))
        return 0
    model = load_model(args.model)
    prior = parse_prior(args.prior, len(model.classes)) if args.prior else None
    tuned, point = retune(model, cost=parse_cost(args.cost), recall=args.recall, prior=prior)
    lines = []
    if point.threshold is not None:
        lines.append(f"Threshold {model.threshold:.4f} → {point.threshold:.4f} ({point.wish})")
    for name, value in point.figures.items():
        label = name.replace("_", " ")
        lines.append(f"  {label:18s} {value.value:.3f}  ({value.low:.3f} to {value.high:.3f})")
    folder = save_model(tuned, args.out or args.model)
    print(*lines, f"Wrote {folder}", sep="\n")
    return 0
