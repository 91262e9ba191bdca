"""What the tables of several studies share."""

from __future__ import annotations

import pandas as pd


def spread(values: pd.Series[float]) -> str:
    """Mean and standard deviation; the mean alone of a single run."""
    return f"{values.mean():.2f} ± {values.std(ddof=1):.2f}" if len(values) > 1 else f"{values.mean():.2f}"
