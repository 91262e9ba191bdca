"""The studies of oversampling: their cells, and pages that show the paper's number beside ours."""

from __future__ import annotations

import pandas as pd
import pytest

from equipoise.report import Report
from equipoise.studies import named_spec
from equipoise.studies.locate import study_module

MEASURES = study_module("oversampling-images", "page").MEASURES
_images = study_module("oversampling-images")
METHODS, OURS, _epochs = _images.METHODS, _images.OURS, _images._epochs


def test_every_method_gets_the_same_budget():
    cells = pd.DataFrame(named_spec("oversampling-images").cells())
    compared = cells[cells["budget"] == 2000]
    assert set(compared.loc[compared["dataset"] == "fashion-mnist", "seed"]) == {0, 1, 2}
    assert (compared.groupby(["dataset", "seed"])["method"].nunique() == len(METHODS)).all()
    assert set(cells.loc[cells["budget"] == 1000, "method"]) == set(OURS)
    long = pd.DataFrame(named_spec("oversampling-images").cells("small", long=9000))
    assert set(long.loc[long["budget"] > 2000, "method"]) == {"ours"}
    assert _epochs(700, 9000) == 10
    assert _epochs(1, 9000) == 1


def made_up(method, seed=0, budget=700, score=80.0, **more):
    names = [f"{test}_{name}" for test in ("balanced", "imbalanced") for name in MEASURES]
    row = {
        "dataset": "fashion-mnist",
        "method": method,
        "seed": seed,
        "budget": budget,
        "fit_cpu_seconds": 50.0,
    }
    return row | dict.fromkeys(names, score) | more


def image_page(rows):
    spec = named_spec("oversampling-images")
    return Report("page", spec.page(pd.DataFrame(rows), spec)).to_markdown()


def test_image_page_has_the_papers_number_and_the_verdict():
    rows = [made_up("ours", seed, score=84.0 + seed) for seed in (0, 1)]
    close = [*rows, *(made_up("SMOTE", seed, score=83.5 + seed) for seed in (0, 1))]
    text = image_page(close)
    assert "84.79" in text
    assert "84.50 ± 0.71" in text
    assert "not above SMOTE" in text
    assert "above every rival" in image_page([*rows, *(made_up("SMOTE", s, score=75.0) for s in (0, 1))])


def test_image_page_shows_parts_long_runs_and_a_look_inside():
    image = [[0, 255], [255, 0]]
    looks = {
        "sheet": [{"label": 9, "images": [image] * 14}],
        "plane": [[0.0, 1.0], [1.0, 0.0]],
        "plane_labels": [0, 9],
    }
    rows = [
        made_up("SMOTE"),
        made_up("ours"),
        made_up("ours", budget=500),
        made_up("ours, learned mixer", budget=500, score=79.0),
        made_up("ours", budget=9000, score=85.0, **looks),
    ]
    text = image_page(rows)
    assert "57.94" in text, "Table 4"
    assert "-1.00" in text, "a part less the whole at the same budget"
    assert "9,000" in text
    assert "oversampling-sheet-fashion-mnist" in text
    assert "oversampling-latent-fashion-mnist" in text


@pytest.mark.parametrize("method", ["ours", "boosting, weights and threshold"])
def test_table_page_has_every_method(method):
    spec = named_spec("oversampling-tabular")
    row = {"dataset": "isolet", "method": method, "seed": 0, "epochs": 20}
    frame = pd.DataFrame([row | {"acsa": 90.0, "macro_f1": 91.0, "g_mean": 92.0, "fit_cpu_seconds": 3.0}])
    text = Report("page", spec.page(frame, spec)).to_markdown()
    assert method in text
    assert ("95.69" in text) == (method == "ours")
