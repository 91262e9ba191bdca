"""Reasons are found where they were planted, and not where there are none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from equipoise.advisor import Advisor
from equipoise.advisor.page import build_report
from equipoise.advisor.reasons import bad_slices, find_reasons
from equipoise.datasets import DataTable


def table(seed=0, n=1200, reversed_site=False):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "nothing": rng.normal(size=n),
            "signal": rng.normal(size=n),
            "weak": rng.normal(size=n),
            "site": rng.choice(list("ABCD"), n),
        }
    )
    sign = np.where((frame["site"] == "B") & reversed_site, -1, 1)
    chance = 1 / (1 + np.exp(-(2.5 * sign * frame["signal"] + 0.7 * frame["weak"] - 2.5)))
    return frame, (rng.random(n) < chance).astype(int)


def fitted(X, y, *treatments, **options):
    return Advisor(treatments=list(treatments) or ["logistic"], trials=0, **options).fit(X, y)


@pytest.fixture(scope="module")
def found():
    return find_reasons(fitted(*table(), "logistic", "lightgbm"), seconds=30)


def test_a_planted_column_is_first_and_a_noise_column_reaches_zero(found):
    names = [item.column for item in found.importance]
    assert names[:2] == ["signal", "weak"]
    by_name = {item.column: item for item in found.importance}
    assert by_name["signal"].low > by_name["weak"].high
    assert by_name["nothing"].low < 0 < by_name["nothing"].high
    assert not found.skipped


def test_the_effect_of_the_planted_column_rises(found):
    effect = next(e for e in found.effects if e.column == "signal")
    assert effect.grid == sorted(effect.grid)
    assert effect.probability[-1] - effect.probability[0] > 0.3
    assert "nothing" not in [e.column for e in found.effects]


def test_the_worst_errors_are_errors_and_their_reasons_would_help(found):
    X, y = table()
    assert found.errors
    for error in found.errors:
        assert error.truth == y[error.row] != error.called
        assert error.reasons is not None
        for reason in error.reasons:
            assert reason.value == X[reason.column][error.row]
            assert reason.lowers > 0
    missed = [e for e in found.errors if e.truth == 1]
    assert missed[0].reasons[0].column == "signal"


def test_a_planted_bad_slice_is_found():
    slices = bad_slices(fitted(*table(reversed_site=True)), [], seed=0)
    assert ("site", "B") in slices[0].where
    assert all(s.loss > s.expected for s in slices)


def test_no_slice_is_named_on_clean_data_in_most_draws():
    named = [bool(bad_slices(fitted(*table(seed, 600)), [], seed=0)) for seed in range(1, 9)]
    assert sum(named) <= 2  # 0.4 are expected of 8


def test_reasons_are_the_same_for_the_same_seed_and_judge_rows_by_models_that_did_not_see_them():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), np.arange(300) % 2  # nothing to learn: only seen rows could be known
    advisor = fitted(X, y, "lightgbm")
    a, b = (find_reasons(advisor, seconds=60) for _ in range(2))
    assert a.importance == b.importance
    assert all(item.low < 0.01 for item in a.importance)


def test_without_time_reasons_are_left_out_with_a_sentence():
    X, y = table(n=300)
    advisor = fitted(X, y)
    reasons = find_reasons(advisor, seconds=1e-6)
    assert not reasons.importance
    assert any("for lack of time" in sentence for sentence in reasons.skipped)
    page = build_report(advisor, advisor.table_, None, reasons=reasons).to_html()
    assert "for lack of time" in page
    assert "no single column explains it" not in page


def test_judged_on_the_future_the_models_of_the_past_are_asked():
    X, y = table(n=400)
    advisor = Advisor(treatments=["logistic"], trials=0).fit(X, y, time=np.arange(400))
    assert find_reasons(advisor, seconds=30).importance[0].column == "signal"


def test_misjudged_pictures_are_shown():
    rng = np.random.default_rng(0)
    X, y = rng.random((120, 16)), np.arange(120) % 3 == 0
    rows = DataTable.from_arrays(X, y.astype(int))
    from dataclasses import replace

    pictures = replace(rows, image_shape=(4, 4, 1))
    advisor = Advisor(treatments=["logistic"], trials=0).fit_table(pictures)
    reasons = find_reasons(advisor, seconds=10)
    report = build_report(advisor, pictures, None, reasons=reasons)
    gallery = next(
        b for s in report.sections if s.title == "Reasons" for b in s.blocks if b.kind == "gallery"
    )
    assert len(gallery.items) == len(reasons.errors) > 0


# What a page must stand: see the list of bad input.


def written(X, y, **options):
    advisor = fitted(X, y, **options)
    report = build_report(advisor, advisor.table_, None, reasons=find_reasons(advisor, seconds=5))
    return report.to_html(), report.to_markdown()


def test_a_class_that_is_never_predicted_leaves_a_page():
    X, y = table(n=200)
    page, text = written(X[["nothing"]], y, cost={"fp": 1000, "fn": 1})
    assert "Reasons" in page
    assert "It raised no alert on rows that were not trained on" in text
    assert "a probability of 99.9% or more" in text
    assert "precision | 1.000" not in text


def test_one_column_leaves_a_page():
    X, y = table(n=200)
    page, text = written(X[["signal"]], y)
    assert "signal" in page
    assert "No cost was named" in text
    assert "?." not in text
    assert "nan" not in text.split()


@pytest.mark.slow
def test_two_hundred_classes_leave_a_page():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(200), 4)
    X = np.column_stack([y + rng.normal(0, 0.3, len(y)), rng.normal(size=len(y))])
    page, _ = written(X, np.array([f"kind {c}" for c in y]))
    assert len(page) < 2_000_000


def test_labels_that_begin_alike_stay_apart_in_the_figures():
    from equipoise.advisor.page import confusion_figure

    alike = ["the same beginning of a label, first", "the same beginning of a label, second"]
    heat = confusion_figure(np.array([[5, 1], [2, 3]]), alike).payload()["data"][0]
    assert len(set(heat["x"])) == 2


def test_a_label_of_ten_thousand_letters_leaves_a_page():
    X, y = table(n=200)
    page, _ = written(X, np.where(y == 1, "<b>" + "x" * 10_000, "no"))
    assert "<b>xxx" not in page
    assert page.count("x" * 10_000) == 0


def test_the_table_of_figures_calls_a_class_by_its_label():
    from equipoise.advisor.page import _figure_name

    assert _figure_name("recall of class 1", ["ripe", "rotten"]) == "recall of “rotten”"
    assert _figure_name("macro_f1", ["ripe", "rotten"]) == "macro F1"
