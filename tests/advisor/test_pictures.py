"""Pictures go through the same advisor, by features and not by pixels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score

from equipoise import load
from equipoise.advisor import Advisor
from equipoise.datasets import DataTable


def stripes(n: int, seed: int, size: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Stripes at a random place: upright for class 1, level for class 0. No pixel tells the class."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 8 == 0).astype(int)
    wave = np.sin(2 * np.pi * (np.arange(size)[None] + rng.uniform(0, 6, (n, 1))) / 6)
    pictures = np.where(y[:, None, None] == 1, wave[:, None, :], wave[:, :, None])
    return (pictures + rng.normal(0, 0.3, (n, size, size))).reshape(n, -1), y


def test_pictures_are_judged_by_features_and_survive_saving(tmp_path: Path) -> None:
    X, y = stripes(240, 0)
    table = replace(DataTable.from_arrays(X, y), image_shape=(16, 16, 1))
    advisor = Advisor(treatments=["lightgbm", "logistic"], trials=0, budget=60, verbose=False).fit_table(
        table
    )
    fresh, truth = stripes(200, 1)
    assert average_precision_score(truth, advisor.predict_proba(fresh)[:, 1]) > 0.95
    again = load(advisor.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict_proba(fresh), advisor.predict_proba(fresh))
