"""Wishes as people type them: costs, priors, and the options that ``report`` and ``retune`` share."""

from __future__ import annotations

import argparse
import re
from typing import Any


def add_wishes(parser: argparse.ArgumentParser) -> None:
    """The options of a wish."""
    parser.add_argument(
        "--cost",
        metavar="fp=1,fn=20",
        help="costs of a false alarm and of a miss; a column's name instead of a number gives a cost by row; rows "
        "separated by ; give a full cost table",
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
        "--prior", metavar="P", help="share of the positives (or of each class) where it will be used"
    )


def read_wishes(args: argparse.Namespace) -> dict[str, Any]:
    """The wish's options as keywords of `Advisor`; empty if none was given."""
    wishes = {name: getattr(args, name) for name in ("recall", "precision", "alerts", "beta")}
    wishes["cost"] = _parse_cost(args.cost)
    given = {name: value for name, value in wishes.items() if value is not None}
    return {**given, "confidence": args.confidence} if given else {}


def _parse_cost(text: str | None) -> Any:
    """``{"fp": …, "fn": …}`` of ``fp=1,fn=20`` or ``fp=5,fn=amount``, or a table of ``0,1;20,0``.

    >>> _parse_cost("fp=1,fn=20"), _parse_cost("fp=5,fn=amount"), _parse_cost("0,1;20,0")
    ({'fp': 1.0, 'fn': 20.0}, {'fp': 5.0, 'fn': 'amount'}, [[0.0, 1.0], [20.0, 0.0]])
    """
    if text is None:
        return None
    wrong = f"cost must look like fp=1,fn=20, fp=5,fn=COLUMN or 0,1;20,0, got {text!r}"
    if "=" not in text:
        try:
            return [[float(cell) for cell in row.split(",")] for row in text.split(";")]
        except ValueError:
            raise ValueError(wrong) from None
    parts = dict(part.split("=", 1) for part in re.split(r"\s*[,;]\s*", text.strip()) if part.count("=") >= 1)
    if set(parts) != {"fp", "fn"} or text.count("=") != 2 or not all(parts.values()):
        raise ValueError(wrong)
    return {name: _number_or_name(parts[name]) for name in ("fp", "fn")}


def _number_or_name(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text.strip()


def parse_prior(text: str | None) -> Any:
    """A share, or one a class.

    >>> parse_prior("0.01"), parse_prior("0.7,0.2,0.1")
    (0.01, [0.7, 0.2, 0.1])
    """
    if text is None:
        return None
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"prior must be shares such as 0.01 or 0.7,0.2,0.1, got {text!r}") from None
    return shares[0] if len(shares) == 1 else shares
