"""``equipoise retune``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

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

    wishes, prior = read_wishes(args), parse_prior(args.prior)
    if args.threshold is not None:
        wishes["threshold"] = args.threshold
    if not wishes and prior is None:
        raise ValueError("say what to tune to: --cost fp=1,fn=20, --recall 0.95, --alerts 50 or --prior 0.01")
    if args.out and args.in_place:
        raise ValueError("--out and --in-place cannot both be followed: give one of them")
    if _is_conditional(args.model):
        return _retune_conditional(args)
    if args.data is not None:
        raise ValueError(
            "a report's model is retuned on its own held-out rows: --data is for a conditional model"
        )
    model = load(args.model)
    tuned = model.retuned(prior=prior, **wishes)
    point = tuned.operating_point_
    lines = []
    if len(model._labels) == 2:
        before, now = (
            "by row" if p.threshold is None else f"{p.threshold:.4f}" for p in (model.operating_point_, point)
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


def _is_conditional(folder: str) -> bool:
    """Whether a folder holds a :class:`~equipoise.classifiers.ConditionalClassifier`."""
    return (Path(folder) / "conditional.json").is_file()


def _retune_conditional(args: argparse.Namespace) -> int:
    """Tune a saved conditional model on the rows of a file, save it, and say what it does there."""
    from equipoise.classifiers import ConditionalClassifier

    if args.data is None:
        raise ValueError("a conditional model holds no labeled rows: name a table of new ones with --data")
    if args.threshold is not None:
        raise ValueError(
            "a conditional model has no fixed threshold to set: give --recall, --cost or another wish"
        )
    model = ConditionalClassifier.load(args.model)
    X, y = _rows(args, model)
    wish, prior = read_wishes(args), parse_prior(args.prior)
    metric = None if wish else "balanced_accuracy"
    found = model.tune(X, y, metric, prior="data" if prior is None else prior, **wish)
    source = Path(args.model)
    folder = source if args.in_place else Path(args.out or source.with_name(f"{source.name}-retuned"))
    model.save(folder)
    at = ", ".join(f"{name} = {value:.3g}" for name, value in found.params.items())
    assert found.decision is not None
    threshold = "" if found.threshold is None else f", threshold {found.threshold:.4f}"
    words = found.decision.wish.words
    args.output.say(f"{at}{threshold} ({words}): {found.value:.3f}\nWrote {folder}")
    args.output.give(
        {
            "wish": words,
            "threshold": found.threshold,
            "parameters": found.params,
            "value": found.value,
            "model": folder,
        }
    )
    return 0


def _rows(args: argparse.Namespace, model: Any) -> tuple[Any, Any]:
    import numpy as np
    import pandas as pd

    from equipoise.datasets import read_table

    table = read_table(args.data, args.target)
    X, columns = table.X, [column.name for column in table.schema.columns]
    names = list(getattr(model, "feature_names_in_", columns))
    missing = [name for name in names if name not in columns]
    if missing:
        raise ValueError(f"{args.data} lacks the column {missing[0]!r}, which the model was trained on")
    if not isinstance(X, np.ndarray):
        raise ValueError(f"a conditional model takes numbers, and {args.data} has columns of other kinds")
    if len(names) != model.n_features_in_:
        raise ValueError(f"the model takes {model.n_features_in_} columns, and {args.data} has {len(names)}")
    labels = {str(label): label for label in model.classes_.tolist()}
    said = [str(table.classes[code]) for code in table.y]
    unknown = sorted(set(said) - set(labels))
    if unknown:
        raise ValueError(f"{args.data} holds the class {unknown[0]!r}, which the model was not trained on")
    frame = pd.DataFrame(X, columns=columns)[names]
    named = hasattr(model, "feature_names_in_")
    return frame if named else frame.to_numpy(), np.array([labels[text] for text in said])
