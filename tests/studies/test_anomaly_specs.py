"""The anomaly studies: cells that are pure, and pages that say what the cells found."""

from __future__ import annotations

import pandas as pd
import pytest

from equipoise.studies import named_spec


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
    assert "vanish as N → ∞ within three standard errors" in text_of(spec, results)


def test_sgd_cells_and_page():
    cells = [{**cell, "dim": 60, "epochs": 4} for cell in named_spec("anomaly-sgd").cells("tiny")]
    spec, results = rows("anomaly-sgd", cells[:4])
    assert results["balanced_accuracy"].between(0, 1).all()
    assert "a maximum at" in text_of(spec, results)


def test_real_cells_and_page():
    spec = named_spec("anomaly-real")
    cells = [cell for cell in spec.cells("tiny") if cell["part"] == "G.3"]
    try:
        spec, results = rows("anomaly-real", cells)
    except FileNotFoundError as error:
        pytest.skip(f"no MVTec features here: {error}")
    assert results["test_balanced_accuracy"].between(0.3, 1).all()
    assert "re-weighting changes the score" in text_of(spec, results)
