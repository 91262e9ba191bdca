"""Text from elsewhere, made safe to show."""

from __future__ import annotations

import re
from typing import Any

_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Text without what commands a terminal or turns the direction of reading; newlines, tabs and returns stay.

    >>> printable("a\\x1b[31mred\\x1b[0m\\tb\\x07")
    'ared\\tb'
    """
    return _CONTROLS.sub("", _SEQUENCES.sub("", text))


def spelling(label: Any) -> str:
    """What a label is however it is written: without regard to case and spaces.

    >>> spelling(" Not  Ill "), spelling(10)
    ('not ill', '10')
    """
    return " ".join(str(label).split()).casefold()


def for_spreadsheet(value: Any) -> Any:
    """A value that a spreadsheet shows and does not run: text that would be a formula gets a quote before it.

    >>> [for_spreadsheet(value) for value in ("=1+1", "-5", "-x", -5, "plain")]
    ["'=1+1", '-5', "'-x", -5, 'plain']
    """
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value
