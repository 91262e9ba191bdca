"""A budget of time: what is left, and whether something that takes so long still fits."""

from __future__ import annotations

import re
import time

UNITS = {"": 60.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_KEPT_BACK = 0.06  # of the budget, for what comes after the search


def parse_duration(text: str | float) -> float:
    """Seconds of ``90s``, ``5m`` or ``1h``; a bare number in a text is minutes, a number is seconds.

    >>> parse_duration("90s"), parse_duration("1.5m"), parse_duration("2"), parse_duration(30)
    (90.0, 90.0, 120.0, 30.0)
    """
    if isinstance(text, (int, float)) and not isinstance(text, bool) and text > 0:
        return float(text)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", str(text))
    if not found or float(found.group(1)) <= 0:
        raise ValueError(f"budget must be a time such as 90s, 5m or 1h, got {text!r}")
    return float(found.group(1)) * UNITS[found.group(2)]


class Budget:
    """Seconds from now, a part of which is kept back for finishing.

    Parameters
    ----------
    seconds : float
    started : float, optional
        The time of :func:`time.monotonic` from which it counts; now by default.
    """

    def __init__(self, seconds: float, started: float | None = None) -> None:
        self.seconds = seconds
        self.started = time.monotonic() if started is None else started
        self.end = self.started + seconds * (1 - _KEPT_BACK)
        self.aside = 0.0

    @property
    def left(self) -> float:
        """Seconds that the search may still spend."""
        return self.end - self.aside - time.monotonic()

    def keep_back(self, seconds: float) -> None:
        """Keep so much more for finishing, up to a tenth of the budget."""
        self.end -= min(seconds, 0.1 * self.seconds)

    def set_aside(self, seconds: float) -> None:
        """Keep so much from the search, in place of what was kept before."""
        self.aside = seconds

    def fits(self, seconds: float) -> bool:
        """Whether something that takes so long still ends in time."""
        return seconds <= self.left

    def deadline(self, share: float = 1.0) -> float:
        """The moment at which a share of what is left is spent."""
        return time.monotonic() + share * max(self.left, 0.05)
