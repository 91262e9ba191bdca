"""The set that the main job shows itself on: scikit-learn's digits, with few eights."""

from __future__ import annotations

from equipoise.datasets import load_digits_imbalanced
from equipoise.datasets.reading import Problem
from equipoise.datasets.schema import Column, Schema


def embedded_problem() -> Problem:
    """1,395 digits of which 45 are eights: find the eights."""
    data = load_digits_imbalanced(counts={digit: 45 if digit == 8 else 150 for digit in range(10)})
    schema = Schema(tuple(Column(name, "number", "float64") for name in data.feature_names))
    notes = ["An embedded set: scikit-learn's 8×8 digits, thinned so that eights are rare."]
    return Problem(data.table, data.y, schema, "digit", "Digits", notes, (8, 8, 1))
