"""Wishes as people type them: durations, costs, priors."""

from __future__ import annotations

import re

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str) -> float:
    """Seconds of ``90s``, ``5m`` or ``1h``; a bare number is minutes.

    >>> parse_duration("90s"), parse_duration("1.5m"), parse_duration("2")
    (90.0, 90.0, 120.0)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", text)
    if not found or float(found.group(1)) <= 0:
        raise ValueError(f"budget must be a time such as 90s, 5m or 1h, got {text!r}")
    return float(found.group(1)) * UNITS[found.group(2) or "m"]


def parse_cost(text: str | None) -> tuple[float, float] | None:
    """Costs of a false alarm and a miss from ``fp=1,fn=20``.

    >>> parse_cost("fp=1,fn=20")
    (1.0, 20.0)
    """
    if text is None:
        return None
    found = dict(re.findall(r"(fp|fn)\s*=\s*(\d+(?:\.\d+)?)", text))
    rest = re.sub(r"(fp|fn)\s*=\s*\d+(\.\d+)?|[,;\s]", "", text)
    if set(found) != {"fp", "fn"} or rest or not all(float(v) > 0 for v in found.values()):
        raise ValueError(f"cost must look like fp=1,fn=20 with positive numbers, got {text!r}")
    return float(found["fp"]), float(found["fn"])


def parse_prior(text: str, n_classes: int) -> list[float]:
    """Class shares: one number is the positive class's in a binary question, otherwise one a class.

    >>> parse_prior("0.01", 2)
    [0.99, 0.01]
    """
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"prior must be shares such as 0.01 or 0.7,0.2,0.1, got {text!r}") from None
    if len(shares) == 1 and n_classes == 2:
        shares = [1 - shares[0], shares[0]]
    if len(shares) != n_classes or not all(0 < share < 1 for share in shares):
        raise ValueError(f"prior must be {n_classes} shares between 0 and 1, got {text!r}")
    total = sum(shares)
    if abs(total - 1) > 1e-6:
        raise ValueError(f"prior must sum to 1, got {total:g}")
    return [share / total for share in shares]
