"""Wishes as people type them: costs, priors, and the options that ``report`` and ``retune`` share."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any


def add_wishes(parser: argparse.ArgumentParser) -> None:
    """The options of a wish."""
    parser.add_argument(
        "--cost",
        metavar="fp=1,fn=20",
        help="costs of a false alarm and of a miss; a column's name instead of a number gives a cost by row. With "
        "labels for fp and fn: what it costs to call a row of that class anything else. A full cost table is a CSV "
        "file with the true labels in its first column and the called labels in its header, or numbers as "
        "0,1;20,0: a row for each true class, a column for each called one, classes sorted",
    )
    parser.add_argument("--recall", type=float, metavar="R", help="find at least this share of the positives")
    parser.add_argument(
        "--precision", type=float, metavar="P", help="at least this share of the alerts is right"
    )
    parser.add_argument(
        "--alerts", type=float, metavar="K", help="at most this share of the rows, or so many alerts"
    )
    parser.add_argument("--beta", type=float, metavar="B", help="the best F-beta")
    parser.add_argument(
        "--confidence", type=float, default=0.95, help="of a recall or precision (default: 0.95)"
    )
    parser.add_argument(
        "--prior",
        metavar="P",
        help="share of the positives where it will be used; or LABEL=SHARE,LABEL=SHARE, or "
        "a share for each of the sorted classes",
    )


def read_wishes(args: argparse.Namespace) -> dict[str, Any]:
    """The wish's options as keywords of `Advisor`; empty if none was given."""
    wishes = {name: getattr(args, name) for name in ("recall", "precision", "alerts", "beta")}
    wishes["cost"] = _parse_cost(args.cost)
    given = {name: value for name, value in wishes.items() if value is not None}
    return {**given, "confidence": args.confidence} if given else {}


def _parse_cost(text: str | None) -> Any:
    """``{"fp": …, "fn": …}`` of ``fp=1,fn=20`` or ``fp=5,fn=amount``, ``{label: …}``, a table of numbers or a file.

    >>> _parse_cost("fp=1,fn=20"), _parse_cost("fp=5,fn=amount"), _parse_cost("0,1;20,0")
    ({'fp': 1.0, 'fn': 20.0}, {'fp': 5.0, 'fn': 'amount'}, [[0.0, 1.0], [20.0, 0.0]])
    >>> _parse_cost("ill=20, not ill=1")
    {'ill': 20.0, 'not ill': 1.0}
    """
    if text is None:
        return None
    wrong = f"cost must look like fp=1,fn=20, fp=5,fn=COLUMN, LABEL=20,LABEL=1, 0,1;20,0 or FILE.csv, got {text!r}"
    if Path(text).suffix.lower() == ".csv" and "=" not in text:
        return _read_costs(Path(text))
    if "=" not in text:
        try:
            return [[float(cell) for cell in row.split(",")] for row in text.split(";")]
        except ValueError:
            raise ValueError(wrong) from None
    parts = _parts(text, wrong)
    if not {"fp", "fn"} & set(parts):
        return _numbers(parts, wrong)
    if set(parts) != {"fp", "fn"}:
        raise ValueError(wrong)
    return {name: _number_or_name(parts[name]) for name in ("fp", "fn")}


def _parts(text: str, wrong: str) -> dict[str, str]:
    """``NAME=VALUE`` pairs; the last = of a pair divides it, so that a label may hold others."""
    pairs = [part.rpartition("=") for part in re.split(r"\s*[,;]\s*", text.strip()) if part]
    names = [name.strip() for name, _, _ in pairs]
    if not all(names) or not all(value.strip() for *_, value in pairs) or len(set(names)) < len(names):
        raise ValueError(wrong)
    return {name: value.strip() for name, (_, _, value) in zip(names, pairs, strict=True)}


def _numbers(parts: dict[str, str], wrong: str) -> dict[str, float]:
    try:
        return {name: float(value) for name, value in parts.items()}
    except ValueError:
        raise ValueError(wrong) from None


def _read_costs(path: Path) -> Any:
    """A cost table by name: the truth in the first column, the calls in the header."""
    from equipoise.datasets.reading import read_frame

    frame = read_frame(path)
    names = [str(name) for name in frame.iloc[:, 0]]
    if len(set(names)) < len(names):
        raise ValueError(f"{path} must have one row for each true label, got {', '.join(names)}")
    try:
        cells = frame.iloc[:, 1:].astype(float)
    except ValueError:
        raise ValueError(f"{path} must hold numbers beside its first column, the true labels") from None
    return {
        name: {str(call): value for call, value in row.items() if value == value}
        for name, (_, row) in zip(names, cells.iterrows(), strict=True)
    }


def _number_or_name(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text.strip()


def parse_prior(text: str | None) -> Any:
    """A share, one a class, or shares by label.

    >>> parse_prior("0.01"), parse_prior("0.7,0.2,0.1"), parse_prior("ill=0.2,well=0.8")
    (0.01, [0.7, 0.2, 0.1], {'ill': 0.2, 'well': 0.8})
    """
    if text is None:
        return None
    wrong = f"prior must be shares such as 0.01, 0.7,0.2,0.1 or LABEL=0.2,LABEL=0.8, got {text!r}"
    if "=" in text:
        return _numbers(_parts(text, wrong), wrong)
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(wrong) from None
    return shares[0] if len(shares) == 1 else shares
