"""Numbers and dates from text as people write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from equipoise._core.checks import FloatArray

DECIMAL_COMMA = "decimal comma"
DAY_FIRST = "day first"
_DATE_PATTERN = r"\s*(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})(?:[T ].*)?"

_MISSING = frozenset(
    ["", "-", "--", ".", "?", "n/a", "n.a.", "na", "nan", "none", "null", "missing", "unknown", "#n/a"]
)
_SIGNS = r"[\s'’€$£¥₹%]|^[A-Z]{3}(?=[\s\d.+-])|(?<=[\s\d.])[A-Z]{3}$"  # spaces, currencies, percent
_THOUSANDS = {"": r"[1-9]\d{0,2}(?:,\d{3})+", DECIMAL_COMMA: r"[1-9]\d{0,2}(?:\.\d{3})+"}
_NUMBER = {
    "": rf"[+-]?(?:{_THOUSANDS['']}|\d+|(?=\.\d))(?:\.\d*)?(?:[eE][+-]?\d+)?",
    DECIMAL_COMMA: rf"[+-]?(?:{_THOUSANDS[DECIMAL_COMMA]}|\d+|(?=,\d))(?:,\d*)?(?:[eE][+-]?\d+)?",
}


def is_missing_word(text: pd.Series[Any]) -> pd.Series[Any]:
    """Whether a text stands for a missing value."""
    return text.str.strip().str.lower().isin(_MISSING)


def number_form(text: pd.Series[Any]) -> tuple[str, float]:
    """How numbers are written in most of these texts, and the share of texts that are such numbers.

    >>> number_form(pd.Series(["1.234,56 €", "12", "0,5"]))
    ('decimal comma', 1.0)
    """
    text = text[~is_missing_word(text)]
    if text.empty:
        return "", 0.0
    plain = text.str.replace(_SIGNS, "", regex=True)
    shares = {form: float(plain.str.fullmatch(pattern).mean()) for form, pattern in _NUMBER.items()}
    form = max(shares, key=lambda form: shares[form])  # a tie goes to the decimal point
    return form, shares[form]


def parse_numbers(text: pd.Series[Any], form: str) -> FloatArray:
    """Floats from text; NaN where a text is missing or is no number. Percentages are fractions.

    >>> parse_numbers(pd.Series(["$1,234.5", "12 %", "old"]), "").tolist()
    [1234.5, 0.12, nan]
    """
    codes, unique = pd.factorize(text)
    different = pd.Series(unique, dtype=object).astype(str).str.strip()
    percent = different.str.endswith("%").to_numpy(dtype=bool)
    plain = different.str.replace(_SIGNS, "", regex=True)
    plain = plain.where(plain.str.fullmatch(_NUMBER[form]).astype(bool), "nan")
    if form == DECIMAL_COMMA:
        plain = plain.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    else:
        plain = plain.str.replace(",", "", regex=False)
    values = plain.to_numpy(dtype=object).astype(np.float64)
    values[percent] /= 100
    return np.append(values, np.nan)[codes]


def date_form(text: pd.Series[Any]) -> tuple[str, float]:
    """Whether the day comes before the month, and the share of texts that look like dates."""
    text = text[~is_missing_word(text)]
    if text.empty:
        return "", 0.0
    fields = text.str.extract(r"^\s*(\d{1,2})([-/.])(\d{1,2})[-/.]\d{2,4}")
    first, second = (pd.to_numeric(fields[i], errors="coerce") for i in (0, 2))
    european = bool((first > 12).any()) or (bool((fields[1] == ".").any()) and not (second > 12).any())
    return DAY_FIRST if european else "", float(text.str.fullmatch(_DATE_PATTERN).mean())


def parse_dates(values: pd.Series[Any], form: str) -> FloatArray:
    """Seconds since 1970 (UTC); NaN where a value is missing or is no date."""
    if not pd.api.types.is_datetime64_any_dtype(values.dtype):
        codes, unique = pd.factorize(values)
        dates = pd.to_datetime(
            pd.Series(unique, dtype=object),
            errors="coerce",
            utc=True,
            format="mixed",
            dayfirst=form == DAY_FIRST,
        )
        return np.append(_seconds(dates), np.nan)[codes]
    return _seconds(pd.to_datetime(values, utc=True))


def _seconds(dates: pd.Series[Any]) -> FloatArray:
    seconds = (dates - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    return np.asarray(seconds, dtype=np.float64)
