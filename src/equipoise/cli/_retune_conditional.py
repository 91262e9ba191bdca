"""``equipoise retune`` for a conditional model: its operating point chosen anew on a labeled table."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from equipoise.cli._wishes import parse_prior, read_wishes


def is_conditional(folder: str) -> bool:
    """Whether a folder holds a :class:`~equipoise.classifiers.ConditionalClassifier`."""
    return (Path(folder) / "conditional.json").is_file()


def retune_conditional(args: argparse.Namespace) -> int:
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
