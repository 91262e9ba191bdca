"""The anomaly studies: cells that are pure, and pages that say what the cells found."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from equipoise.studies import named_spec
from equipoise.studies.locate import study_module


def rows(name, cells):
    spec = named_spec(name)
    return spec, pd.DataFrame([{**cell, **spec.run_cell(**cell)} for cell in cells])


def text_of(spec, results):
    return repr(spec.page(results, spec))


def test_gibbs_cells_and_page():
    spec = named_spec("anomaly-gibbs")
    cells = spec.cells("tiny")
    assert spec.run_cell(**cells[0]) == spec.run_cell(**cells[0])
    spec, results = rows("anomaly-gibbs", cells)
    text = text_of(spec, results)
    assert "within three standard errors" in text
    assert "balanced" in text


def test_a_known_bias_is_not_compared_with_an_error_of_zero():
    study = named_spec("anomaly-gibbs")
    cell = {**study.cells("tiny")[0], "learn_bias": False}
    results = pd.DataFrame(
        [{**cell, "dim": dim, **study.run_cell(**{**cell, "dim": dim})} for dim in (8, 12)]
    )
    assert (results["bias_deviation"] == 0).all()
    sampled = study.page(results, study)[1].blocks[0].rows
    assert [row for row in sampled if "bias" in row] == []


def test_sgd_cells_and_page():
    cells = [{**cell, "dim": 60, "epochs": 4} for cell in named_spec("anomaly-sgd").cells("tiny")]
    spec, results = rows("anomaly-sgd", [*cells[:4], *cells[-3:]])
    assert results["balanced_accuracy"].between(0, 1).all()
    assert "a maximum at" in text_of(spec, results)


def test_the_weight_decay_is_the_papers(monkeypatch):
    """scikit-learn divides alpha by the batch: a decay of 0.01 at batches of 20 is alpha = 0.2."""
    import sklearn.neural_network

    seen = {}

    class Stub:
        def __init__(self, **options):
            seen.update(options)

        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.linspace(0, 1, len(X))

    study = study_module("anomaly-real")
    images = np.random.default_rng(0).random((12_000, 3)), np.arange(12_000) % 2
    monkeypatch.setattr(sklearn.neural_network, "MLPRegressor", Stub)
    monkeypatch.setattr(study, "_images", lambda dataset, split: images)
    found = study.run_cell("G.2", "fashion-mnist", 0.5, False, 2, 0, weight_decay=0.01)
    assert seen["alpha"] / seen["batch_size"] == pytest.approx(0.01)
    assert {"test_recall", "test_specificity", "test_precision", "test_f1", "test_auc"} <= set(found)


def test_the_pool_leaves_out_no_more_than_the_fraction_asks(monkeypatch):
    study = study_module("anomaly-real")
    rng = np.random.default_rng(0)
    labels = np.repeat([1, 0], [60, 240])
    features = rng.standard_normal((300, 40)) + labels[:, None] * np.eye(40)[0] * 2
    monkeypatch.setattr(study, "_features", lambda category: (features, labels))
    whole, half = (study.run_cell("pool", "x", share, False, 2, 0) for share in (None, 0.5))
    assert whole["kept"] == [260, 260]
    assert half["kept"] == [80, 80]
    assert half["share"] == [0.5, 0.5]
    assert len(half["logistic_weighted"]) == 2


def test_real_cells_and_page():
    spec = named_spec("anomaly-real")
    cells = [cell for cell in spec.cells("tiny") if cell["part"] != "G.2"]
    try:
        spec, results = rows("anomaly-real", cells)
    except FileNotFoundError as error:
        pytest.skip(f"no MVTec features here: {error}")
    assert results["test_balanced_accuracy"].dropna().between(0.3, 1).all()
    text = text_of(spec, results)
    assert "re-weighting changes the score" in text
    assert "one category only" in text
