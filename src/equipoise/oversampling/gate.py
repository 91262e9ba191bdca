"""The quality gate: are the made rows of a class like its real ones, all over them, and not their copies?"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.neighbors import NearestNeighbors

from equipoise._core.checks import FloatArray
from equipoise._core.random import as_generator
from equipoise.metrics.generative import coverage, density
from equipoise.oversampling.provenance import Synthetic

_K_NEIGHBORS = 5
_LARGEST_SAMPLE = 2000  # rows a class that the gate looks at; more tell nothing new and cost quadratically
_SMALLEST_CLASS = 2 * _K_NEIGHBORS
_LOW = 0.3  # density and relative coverage are 1 for rows of the class's own distribution
_MOST_COPIES = 0.5


class LowQualityWarning(UserWarning):
    """Synthetic rows that do not resemble their class."""


class LowQualityError(ValueError):
    """Synthetic rows that do not resemble their class, where the caller asked to stop then."""


@dataclass(frozen=True)
class ClassQuality:
    """One class's synthetic rows against its real ones (Naeem et al. 2020 for density and coverage).

    ``relative_coverage`` divides by what rows of the class's own distribution would cover;
    ``copy_distance`` is the median distance to the nearest real row in units of the real rows' own;
    ``copies`` the share nearer than a twentieth of that. ``reason`` is empty where nothing is wrong.
    """

    label: Any
    n_real: int
    n_synthetic: int
    density: float
    coverage: float
    relative_coverage: float
    copy_distance: float
    copies: float
    reason: str


def expected_coverage(n_real: int, n_synthetic: int, k: int = _K_NEIGHBORS) -> float:
    """Coverage of ``n_synthetic`` rows drawn from the very distribution of ``n_real`` ones.

    A real row is uncovered when its k nearest among the other n−1+m exchangeable points are all real:
    1 − Π_{i<k} (n−1−i)/(n+m−1−i).

    >>> round(expected_coverage(1000, 1000), 3)
    0.969
    """
    i = np.arange(k)
    return float(1 - np.prod((n_real - 1 - i) / (n_real + n_synthetic - 1 - i)))


def assess(real: FloatArray, made: FloatArray, label: Any, rng: np.random.Generator) -> ClassQuality:
    """Measure one class, on at most 2,000 rows of each kind, in units of the real rows' spread."""
    counts = len(real), len(made)
    nan = float("nan")
    if counts[0] < _SMALLEST_CLASS or counts[1] < _SMALLEST_CLASS:
        alone = "it has one real row, which cannot tell how others would be" if counts[0] == 1 else ""
        return ClassQuality(label, *counts, nan, nan, nan, nan, nan, alone)
    spread = real.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    real, made = (_at_most(rows, _LARGEST_SAMPLE, rng) / scale for rows in (real, made))
    covered = float(coverage(real, made, k=_K_NEIGHBORS))
    dense = float(density(real, made, k=_K_NEIGHBORS))
    relative = covered / expected_coverage(len(real), len(made))
    search = NearestNeighbors(n_neighbors=1).fit(real)
    unit = (
        float(np.median(search.kneighbors()[0])) or 1.0
    )  # without an argument a point is not its own neighbor
    nearest = search.kneighbors(made)[0][:, 0] / unit
    copies = float((nearest < 0.05).mean())
    reasons = []
    if dense < _LOW:
        reasons.append(f"density {dense:.2f} < {_LOW}: rows lie outside the class")
    if relative < _LOW:
        reasons.append(f"relative coverage {relative:.2f} < {_LOW}: rows bunch together")
    if copies > _MOST_COPIES:
        reasons.append(f"{copies:.0%} of the rows are near copies of real ones")
    return ClassQuality(
        label, *counts, dense, covered, relative, float(np.median(nearest)), copies, "; ".join(reasons)
    )


def _at_most(rows: FloatArray, limit: int, rng: np.random.Generator) -> FloatArray:
    return rows if len(rows) <= limit else rows[rng.choice(len(rows), limit, replace=False)]


def pass_gate(
    X: FloatArray,
    codes: npt.NDArray[np.integer[Any]],
    classes: npt.NDArray[Any],
    made: Synthetic,
    *,
    on_low_quality: str,
) -> tuple[Synthetic, pd.DataFrame]:
    """Assess every class and do what ``on_low_quality`` says.

    ``"warn"`` keeps the rows, ``"skip"`` drops the rows of the classes that fail, ``"raise"`` stops.
    Returns what is kept and one line per class.
    """
    rng = as_generator(0)
    verdicts = [
        assess(X[codes == code], made.rows[made.codes == code], classes[code], rng)
        for code in np.unique(made.codes)
    ]
    table = pd.DataFrame([asdict(verdict) for verdict in verdicts])
    failed = [verdict for verdict in verdicts if verdict.reason]
    if failed:
        sentence = "; ".join(f"class {verdict.label}: {verdict.reason}" for verdict in failed)
        if on_low_quality == "raise":
            raise LowQualityError(f"synthetic rows of low quality: {sentence}")
        if on_low_quality == "skip":
            bad = [verdict.label for verdict in failed]
            made = made.keep(~np.isin(classes[made.codes], bad))
            sentence += " (those rows were dropped)"
        warnings.warn(f"synthetic rows of low quality: {sentence}", LowQualityWarning, stacklevel=4)
    return made, table
