"""Pictures go through the same advisor, by features and not by pixels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from equipoise import load
from equipoise.advisor import Advisor
from equipoise.advisor.predicting import predict_file
from equipoise.datasets import DataTable, read_table
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


@pytest.mark.parametrize("shape", [(16, 16), (1, 16, 16), (16, 16, 1)])
def test_arrays_of_pictures_need_no_flattening(shape: tuple[int, ...], tmp_path: Path) -> None:
    X, y = stripes(240, 0)
    fast = {"treatments": ["lightgbm"], "trials": 0, "budget": 60, "verbose": False}
    flat = replace(DataTable.from_arrays(X, y), image_shape=(16, 16, 1))
    expected = Advisor(**fast).fit_table(flat).predict_proba(X)
    advisor = Advisor(**fast).fit(X.reshape(-1, *shape), y)
    np.testing.assert_array_equal(advisor.predict_proba(X.reshape(-1, *shape)), expected)
    np.testing.assert_array_equal(advisor.predict_proba(X), expected)
    np.savez(tmp_path / "new.npz", X=X.reshape(-1, *shape), y=y)
    assert read_table(tmp_path / "new.npz").image_shape == (16, 16, 1)
    told, _ = predict_file(load(advisor.save(tmp_path / "model")), tmp_path / "new.npz")
    np.testing.assert_allclose(told["probability of 1"], expected[:, 1])


def test_colors_first_or_last_are_the_same_pictures() -> None:
    X, y = stripes(90, 0)
    colored = np.repeat(X.reshape(-1, 16, 16, 1), 3, axis=3) * [1.0, 0.5, 0.2]
    fast = {"treatments": ["lightgbm"], "trials": 0, "budget": 60, "verbose": False}
    first = Advisor(**fast).fit(np.moveaxis(colored, -1, 1), y)
    last = Advisor(**fast).fit(colored, y)
    assert first.info_["image_shape"] == [16, 16, 3]
    np.testing.assert_array_equal(
        first.predict_proba(np.moveaxis(colored, -1, 1)), last.predict_proba(colored)
    )
    with pytest.raises(ValueError, match=r"1 or 3 channels, got \(90, 16, 8, 2\)"):
        Advisor(**fast).fit(X.reshape(-1, 16, 8, 2), y)
