"""Pictures go through the same advisor, by features and not by pixels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score

from equipoise import load
from equipoise.advisor import Advisor
from equipoise.datasets import DataTable
from pictures import stripes


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
