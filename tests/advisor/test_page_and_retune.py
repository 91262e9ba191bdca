"""One rule, one figure: what the page shows is what its command prints, and what ``predict`` then does."""

from __future__ import annotations

import re
import shlex
from copy import copy

import numpy as np
import pytest
from sklearn.datasets import make_classification

import equipoise
from browsing import launched, visiting
from equipoise.advisor import Advisor
from equipoise.advisor.page import _diagnosis, _grouped, _how_sure, build_report, confusion_figure
from equipoise.advisor.search import TOO_SHORT
from equipoise.advisor.verdict import Verdict
from equipoise.cli import main
from equipoise.diagnosis import Diagnosis, Finding
from equipoise.report import Text

WISHES = {
    "nothing": {}, "cost": {"cost": {"fp": 1, "fn": 12}}, "number of alerts": {"alerts": 40},
    "share of alerts": {"alerts": 0.05}, "recall": {"recall": 0.7}, "precision": {"precision": 0.3},
    "F1": {"beta": 1},
    "alerts elsewhere": {"alerts": 0.07, "prior": 0.2},
}  # fmt: skip
MOVES = {"threshold": (-4, -1.5, 0.3), "ratio": (0.2, 1.4), "prior": (-4, -1), "alerts": (1.5, 2.4, 3.1)}
FIGURES = ("recall", "specificity", "precision", "alerts", "cost")


@pytest.fixture(scope="module")
def rows():
    return make_classification(900, n_features=5, weights=[0.9], class_sep=0.8, flip_y=0.05, random_state=3)


@pytest.fixture(scope="module")
def fitted(rows):
    return Advisor(treatments=["logistic"], trials=0).fit(*rows)


@pytest.fixture(scope="module")
def browser():
    with launched() as opened:
        yield opened


def shown(page) -> dict[str, float]:
    script = "nodes => nodes.map(n => [n.dataset.figure, n.dataset.value])"
    found = page.locator(".live-one [data-figure]").evaluate_all(script)
    figures = {name: float(value) for name, value in found if value and name in FIGURES}
    return {**figures, "alerts": figures["alerts"] / 10_000}


def printed(said: str) -> dict[str, float]:
    found = re.findall(r"^  (\w[\w ]*?) +([\d.]+)  \(", said, flags=re.MULTILINE)
    return {name.replace(" ", "_"): float(value) for name, value in found}


def check(page, model, rows, capsys):
    """The page against the command that it offers: printed figures, saved figures, and predictions."""
    words = shlex.split(page.locator("[data-part=command]").text_content())
    assert words[0] == "equipoise"
    assert main(words[1:]) == 0
    said, page_figures = printed(capsys.readouterr().out), shown(page)
    tuned = equipoise.load(model.with_name(f"{model.name}-retuned"))
    for name in page_figures.keys() & said.keys():
        assert said[name] == pytest.approx(page_figures[name], abs=5.001e-4), name
        assert tuned.operating_point_.figures[name].value == pytest.approx(page_figures[name], abs=1e-6), name
    assert {"recall", "specificity", "alerts"} <= page_figures.keys() & said.keys()
    threshold = float(page.locator(".live-one").get_attribute("data-threshold"))
    proba = tuned.predict_proba(rows[0])[:, 1]
    clear = np.abs(proba - threshold) > 1e-9
    assert (tuned.predict(rows[0]) == (proba >= threshold))[clear].all()


def move(page, name, value):
    page.locator(f"[data-part={name}]").evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", str(value)
    )


@pytest.mark.parametrize("wish", WISHES)
def test_the_page_starts_with_what_the_model_does(browser, fitted, rows, tmp_path, capsys, wish):
    tuned = fitted.retuned(**WISHES[wish])
    model = tuned.save(tmp_path / "model")
    loaded = equipoise.load(model).operating_point_
    assert loaded.figures == tuned.operating_point_.figures
    path = build_report(tuned, fitted.table_, None, str(tmp_path)).write(tmp_path, kinds=("html",))["html"]
    with visiting(browser, path) as page:
        page.get_by_role("tab", name="Operating point").click()
        for name, value in shown(page).items():
            if name in loaded.figures:
                assert loaded.figures[name].value == pytest.approx(value, abs=1e-6), name
        check(page, model, rows, capsys)


def test_retune_calls_classes_by_their_labels(tmp_path, capsys):
    rng = np.random.default_rng(0)
    y = np.repeat(["ill", "so so", "well"], 40)
    X = rng.normal(size=(120, 2)) + np.c_[y == "ill", y == "well"]
    model = Advisor(treatments=["logistic"], trials=0).fit(X, y).save(tmp_path / "model")
    assert main(["retune", str(model), "--cost", "ill=9,so so=2,well=1"]) == 0
    said = capsys.readouterr().out
    assert all(f"recall of {label} " in said for label in ("ill", "so so", "well"))


def test_a_fit_with_a_wish_and_a_retuned_model_have_the_same_figures(fitted, rows):
    for wish in WISHES.values():
        own = Advisor(treatments=["logistic"], trials=0, **wish).fit(*rows)
        assert own.operating_point_.figures == fitted.retuned(**wish).operating_point_.figures


def test_after_each_move_the_command_does_what_is_shown(browser, fitted, rows, tmp_path, capsys):
    tuned = fitted.retuned(cost={"fp": 1, "fn": 12}, prior=0.07)
    model = tuned.save(tmp_path / "model")
    path = build_report(tuned, fitted.table_, None, str(tmp_path)).write(tmp_path, kinds=("html",))["html"]
    with visiting(browser, path) as page:
        page.get_by_role("tab", name="Operating point").click()
        for slider, places in MOVES.items():
            page.get_by_role("button", name="Back to the recommendation").click()
            for place in places:
                move(page, slider, place)
                check(page, model, rows, capsys)
        move(page, "prior", -2)  # a limit on alerts where they are more frequent
        check(page, model, rows, capsys)
        assert page.said == []


def test_with_three_classes_the_matrix_command_does_what_is_shown(browser, tmp_path):
    X, y = make_classification(
        600,
        n_features=5,
        n_informative=3,
        n_classes=3,
        weights=[0.75, 0.15],
        n_clusters_per_class=1,
        random_state=1,
    )
    advisor = Advisor(treatments=["logistic"], trials=0).fit(X, np.array(["fine", "worn", "broken"])[y])
    model = advisor.save(tmp_path / "model")
    path = build_report(advisor, advisor.table_, None, str(tmp_path)).write(tmp_path, kinds=("html",))["html"]
    with visiting(browser, path) as page:
        page.get_by_role("tab", name="Operating point").click()
        for moved in ({}, {"cost": ("0,1", "40")}, {"prior": ("2", "30")}):
            for kind, (cell, value) in moved.items():
                page.locator(f"[data-{kind}='{cell}']").fill(value)
                page.locator(f"[data-{kind}='{cell}']").press("Enter")
            words = shlex.split(page.locator("[data-part=matrix-command]").text_content())
            assert main(words[1:]) == 0
            figures = equipoise.load(model.with_name("model-retuned")).operating_point_.figures
            cost = float(page.locator("[data-part=matrix-cost]").get_attribute("data-value"))
            assert figures["cost"].value == pytest.approx(cost, abs=1e-6)
            counts = page.locator("[data-count]").evaluate_all(
                "nodes => nodes.map(n => Number(n.dataset.value))"
            )
            shown = np.reshape(counts, (3, 3))
            recalls = [figures[f"recall of class {c}"].value for c in range(3)]
            np.testing.assert_allclose(recalls, np.diag(shown) / shown.sum(axis=1), atol=1e-6)
        assert page.said == []


def test_a_number_of_alerts_is_that_number_of_the_held_out_rows(fitted):
    tuned = fitted.retuned(alerts=40)
    assert tuned.operating_point_.confusion[:, 1].sum() == 40
    share = fitted.retuned(alerts=40 / len(fitted.truth_))
    assert share.operating_point_.figures == tuned.operating_point_.figures


def test_a_threshold_stays_when_the_prior_moves(fitted):
    tuned = fitted.retuned(threshold=0.3).retuned(prior=0.02)
    assert tuned.decision_.threshold == 0.3
    assert tuned.operating_point_.wish == "the threshold that was set"
    assert "cost" in fitted.retuned(threshold=0.3, cost={"fp": 1, "fn": 9}).operating_point_.figures
    with pytest.raises(ValueError, match="one wish, got recall and threshold"):
        fitted.retuned(threshold=0.3, recall=0.9)


def test_a_simple_model_that_is_better_is_not_called_worse(fitted):
    def said(difference, low, high):
        judged = copy(fitted)
        judged.verdict_ = Verdict("logistic", "balanced_accuracy", "logistic", difference, low, high)
        return _how_sure(judged)

    assert "is worse by 0.010 (-0.034 to 0.054), which may be chance." in said(0.010, -0.034, 0.054)
    assert "is better by 0.010 (-0.034 to 0.054), which may be chance." in said(-0.010, -0.054, 0.034)
    assert said(0.0, 0.0, 0.0).endswith("is the same.")
    assert said(0.010, 0.001, 0.02).endswith("is worse by 0.010 (0.001 to 0.020).")


def test_what_was_not_tried_is_in_sentences(fitted):
    cut = copy(fitted)
    cut.left_out_ = {"the table has no dates": ["a model of time"], TOO_SHORT: ["a network"]}
    assert _grouped(cut) == ["A model of time: the table has no dates.", "For lack of time: a network."]


def test_what_was_measured_stands_below_the_theory(fitted):
    theory = Finding("training_ratio", "Which share?", "All rows.", "note", blocks=[Text("A figure.")])
    found = (theory, Finding("counts", "How rare?", "Rare.", "note"))
    blocks = _diagnosis(fitted, Diagnosis(found, ("Would more rows help?",))).blocks
    titles = [getattr(block, "title", None) for block in blocks]
    assert titles[:4] == ["Which share?", None, "What was measured", "How rare?"]


def test_the_smallest_of_very_many_classes_are_one_row_of_the_matrix():
    confusion = np.random.default_rng(0).integers(0, 9, (200, 200))
    figure = confusion_figure(confusion, [f"class {i}" for i in range(200)])
    heat = figure.payload()["data"][0]
    counts = np.array(heat["customdata"])
    assert counts.shape == (30, 30)
    assert counts.sum() == confusion.sum()
    first = int(confusion.sum(axis=1).argmax())
    assert heat["x"][0] == f"class {first}"
    assert counts[0, 0] == confusion[first, first]
    assert counts[0].sum() == confusion[first].sum()
    assert "171 classes with the fewest rows" in figure.caption
