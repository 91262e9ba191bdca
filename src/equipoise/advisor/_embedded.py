"""The set that the main job shows itself on: scikit-learn's digits, with few eights."""

from __future__ import annotations

from dataclasses import replace

from equipoise.datasets import DataTable, load_digits_imbalanced


def embedded_table() -> DataTable:
    """1,395 digits of which 45 are eights: find the eights."""
    data = load_digits_imbalanced(counts={digit: 45 if digit == 8 else 150 for digit in range(10)})
    table = DataTable.from_arrays(data.table, data.y, names=data.feature_names, name="Digits", target="digit")
    note = "An embedded set: scikit-learn's 8×8 digits, thinned so that eights are rare."
    return replace(table, image_shape=(8, 8, 1)).with_notes(note)
