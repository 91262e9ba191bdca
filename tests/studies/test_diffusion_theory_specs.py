"""The two theory studies of diffusion: their cells run, and their pages draw the figures and read the signs."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from equipoise.studies import Store, named_spec, run_study
from equipoise.studies.locate import study_module
from equipoise.studies.pages import study_report

_sign_changes = study_module("shared", "diffusion_theory_pages")._sign_changes


def page_of(tmp_path, spec):
    run_study(spec, tmp_path / "s.sqlite", jobs=1)
    with Store(tmp_path / "s.sqlite", read_only=True) as store:
        report = study_report(store, store.studies()[0], spec)
        return report.to_markdown(), store.frame(spec.name)


@pytest.mark.slow
def test_windows_narrow_and_widen_with_the_variance_ratio(tmp_path):
    spec = named_spec("diffusion-windows")
    few = {**spec.grid, "variance_ratio": [0.1, 1.0], "weight": [0.2, 0.8]}
    text, frame = page_of(tmp_path, replace(spec, grid=few))
    assert "diffusion-windows-fig2.svg" in text
    window = frame.set_index(["weight", "variance_ratio"])["generalization_window"]
    share = {b: window[b, 0.1] / window[b, 1.0] for b in (0.2, 0.8)}
    assert share[0.2] < share[0.8] < 1  # under-sampling the wider class contracts it more
    assert f"| 0.2 | {share[0.2]:.4g} | 0.1 |" in text


def test_classes_have_both_figures_and_the_wider_class_is_first(tmp_path):
    spec = named_spec("diffusion-classes")
    few = {**spec.grid, "weight": [0.5, 0.8], "seed": [0], "dimension": 6}
    text, frame = page_of(tmp_path, replace(spec, grid=few))
    assert "diffusion-classes-fig3.svg" in text
    assert "diffusion-classes-fig4.svg" in text
    wide = frame[frame["disparity"] == "variance 1:2"]
    assert (wide["memorization_gap"] < 0).all()
    assert all(
        len(errors) == 2 and errors[0][0] == pytest.approx(1, abs=0.01) for errors in wide["test_errors"]
    )


@pytest.mark.parametrize(
    ("mean", "spread", "said"),
    [
        ([-2, -1, 1], [0.1, 0.1, 0.1], "0.5–0.8"),
        ([-2, 0.5, -1], [0.1, 1.0, 0.1], "no"),  # within its spread: no sign
        ([-2, 0.5, 1], [0.1, 1.0, 0.1], "0.2–0.8"),
        ([-1, 1, -1], [float("nan")] * 3, "0.2–0.5, 0.5–0.8"),  # one draw has no spread
    ],
)
def test_signs_are_read_beyond_the_spread(mean, spread, said):
    weights = [0.2, 0.5, 0.8]
    assert _sign_changes(pd.Series(mean, weights), pd.Series(spread, weights)) == said
