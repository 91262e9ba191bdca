"""The fresh draws of the losses study: the plan, what is chosen and the page, on made-up results."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from equipoise.studies.locate import study_module

_study = study_module("losses-fresh")
SPEC, TUNED, chosen, page, further = _study.SPEC, _study.TUNED, _study.chosen, _study.page, _study.further


def results():
    """On validation data CE gains by longer training, NENum by r = 1; on the test part it is the other way."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(SPEC.cells())
    frame = frame[~further.is_further(frame)].copy()
    longer = frame["epochs"] == frame.groupby("ratio")["epochs"].transform("max")
    better = np.where(
        frame["method"] == "NENum", (frame["strength"] == 1) | (frame["draw"] < 30) & ~longer, longer
    )
    frame["validation_error"] = 30 - 5.0 * better + rng.normal(0, 0.1, len(frame))
    frame["test_error"] = 20 + 5.0 * better - 9 * (frame["method"] == "NENum")
    for name in ("test_acsa", "test_head_recall", "test_tail_recall"):
        frame[name] = 100 - frame["test_error"]
    return frame


def test_all_methods_have_the_same_number_of_runs_on_the_same_draws():
    cells = pd.DataFrame(SPEC.cells())
    assert len(cells) == len(cells.drop_duplicates())
    cells = cells[~further.is_further(cells)]
    assert len(cells) == 60 + 78
    runs = cells.groupby(["method", "ratio", "epochs", "strength"], dropna=False)["draw"].nunique()
    assert set(runs.drop("CE")) == {3}
    assert {len(values) for _, values in TUNED.values()} == {3}
    assert set(cells[cells["strength"].isna()]["draw"]) == {
        11,
        12,
        13,
        31,
        32,
        33,
    }  # CE has no number of its own


@pytest.mark.parametrize("ratio", [100, 10])
def test_choices_are_made_on_validation_data(ratio):
    at = results().query("ratio == @ratio")
    lengths = chosen(at[at["draw"] < 30], "epochs").groupby("method")["epochs"].unique()
    assert lengths["CE"].tolist() == [at["epochs"].max()]
    assert lengths["NENum"].tolist() == [at["epochs"].min()]
    strengths = chosen(at[at["draw"] > 30], "strength").groupby("method")["strength"].unique()
    assert strengths["NENum"].tolist() == [1.0]


def test_the_page_says_what_the_gains_say():
    sections = page(results(), SPEC)
    assert [section.title for section in sections] == [
        "What the paper says, and what is seen here",
        "Fashion-MNIST-LT 100 : 1, its own number chosen", "Fashion-MNIST-LT 10 : 1, its own number chosen",
        "Fashion-MNIST-LT 100 : 1, its length chosen", "Fashion-MNIST-LT 10 : 1, its length chosen",
    ]  # fmt: skip
    said = sections[-1].blocks[1].text
    assert said == "NENum is better than CB-CE, CB-focal, CE, focal."
    claim, claims = sections[0].blocks
    assert claim.claim.startswith("Fashion-MNIST-LT 100 : 1")
    found = {row[0]: row[1:] for row in claims.rows}
    tuned, longer = (
        found[f"NENum is better than CB-CE, 100 : 1, its {what} chosen"] for what in ("own number", "length")
    )
    assert tuned == ["+6.57", "+4.00 ± 0.00", 3, "agrees"]
    assert longer == ["+6.57", "+9.00 ± 0.00", 3, "agrees"]
    table, *_ = sections[1].blocks
    assert [row[1] for row in table.rows if row[0] == "NENum"] == ["r = 1"]


def test_the_further_questions_are_answered_on_draws_of_their_own():
    cells = pd.DataFrame(SPEC.cells())
    asked = further.is_further(cells)
    assert not set(cells[asked]["draw"]) & set(cells[~asked]["draw"])
    assert (cells[asked].groupby("draw")["method"].count() >= 4).all()
    cells["test_error"] = 20.0 + cells["draw"] % 10 + 3 * (cells["method"] == "NENum−")
    cells["test_error"] += (cells["tau1"].fillna(1) - 1).abs() + (cells["method"] == "Meta-ENum")
    noise, taus, standard = further.sections(cells)
    said = {row[0]: row[1:] for row in further.claims(cells[asked])}
    assert len(said) == 12
    assert said["NENum is better than NENum−, 10 : 1, 20 % wrong labels"] == [
        "–",
        "+3.00 ± 0.00",
        8,
        "agrees",
    ]
    assert said["Meta-ENum is better than CE, balanced"] == ["+1.62", "-1.00 ± 0.00", 3, "differs"]
    assert said["MetaSAug is worse than CE, balanced"] == ["-0.46", "+0.00 ± 0.00", 3, "cannot tell"]
    assert noise.blocks[0].text.endswith(
        "gains +3.00 ± 0.00 points over NENum−, which is Eq 28, without it (8 draws): agrees."
    )
    beside = {row[0]: row[2] for row in noise.blocks[1].rows}
    assert beside["NENum−"] == "+3.00 ± 0.00, worse"
    assert beside["NENum"] == "+0.00 ± 0.00, cannot tell"
    assert beside["CB-CE"] == ""
    above = {tuple(row[:2]): row[3] for row in taus.blocks[1].rows}
    assert len(above) == 9
    assert above["4", "1"] == "+3.00 ± 0.00"
    assert above["1", "4"] == "+0.00 ± 0.00"
    assert above["1", "1"] == ""
    assert [row[0] for row in standard.blocks[0].rows][-1] == "Meta-ENum"
    assert len(standard.blocks[0].rows) == 12


def test_wrong_labels_are_as_many_as_asked_and_never_right():
    y = np.arange(10).repeat(2000)
    found = _study._first_study.with_wrong_labels(y, 0.2, seed=3)
    assert abs((found != y).mean() - 0.2) < 0.01
    assert np.array_equal(found, _study._first_study.with_wrong_labels(y, 0.2, seed=3))
    shares = np.bincount((found - y)[found != y] % 10, minlength=10)[1:] / (found != y).sum()
    assert np.abs(shares - 1 / 9).max() < 0.02


def test_what_differs_is_what_the_cells_say():
    small, paper = (SPEC.differs(pd.DataFrame(SPEC.cells(size))) for size in ("small", "paper"))
    assert "with 1,000 images in the head class" in small
    assert "On 3 draws each method trains for the number of epochs" in small
    assert "on 200 validation images of each class (50 or 100 or 30 or 61 epochs)" in small
    assert "wrong labels on 8 draws" in small
    assert "balanced data with 250 images" in small
    assert "with 5,000 images in the head class" in paper
    assert "On 5 draws each method has the value of its own number" in paper
    assert "trains for the number" not in paper
    assert "wrong labels" not in paper
