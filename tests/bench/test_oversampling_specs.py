"""The studies of oversampling: their cells, and pages that show the paper's number beside ours."""

from __future__ import annotations

import pandas as pd
import pytest

from equipoise.bench.spec import named_spec
from equipoise.bench.specs.oversampling_images import OURS, _epochs
from equipoise.report import Report


def test_every_method_gets_the_same_budget():
    cells = named_spec("oversampling-images").cells("seeds")
    assert len({cell["budget"] for cell in cells}) == 1
    assert {cell["seed"] for cell in cells} == {0, 1, 2}
    assert {cell["dataset"] for cell in cells} == {"fashion-mnist", "mnist"}
    ablation = named_spec("oversampling-images").cells("ablation")
    assert {cell["method"] for cell in ablation} == set(OURS)
    assert _epochs(700, 9000) == 10
    assert _epochs(1, 9000) == 1


def test_image_page_has_the_papers_number():
    spec = named_spec("oversampling-images")
    names = [
        f"{test}_{name}"
        for test in ("balanced", "imbalanced")
        for name in ("acsa", "macro_f1", "g_mean", "auprc")
    ]
    rows = [
        {"dataset": "fashion-mnist", "method": method, "seed": seed, "budget": 700, "fit_cpu_seconds": 50.0}
        | dict.fromkeys(names, 80.0 + seed)
        for method in ("ours", "SMOTE")
        for seed in (0, 1)
    ]
    text = Report("page", spec.page(pd.DataFrame(rows), spec)).to_markdown()
    assert "84.79" in text
    assert "80.50 ± 0.71" in text


@pytest.mark.parametrize("method", ["ours", "boosting, weights and threshold"])
def test_table_page_has_every_method(method):
    spec = named_spec("oversampling-tabular")
    row = {"dataset": "isolet", "method": method, "seed": 0, "epochs": 20}
    frame = pd.DataFrame([row | {"acsa": 90.0, "macro_f1": 91.0, "g_mean": 92.0, "fit_cpu_seconds": 3.0}])
    text = Report("page", spec.page(frame, spec)).to_markdown()
    assert method in text
    assert ("95.69" in text) == (method == "ours")
