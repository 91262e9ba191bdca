"""The fresh draws of the losses study: the plan, what is chosen and the page, on made-up results."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from equipoise.studies.locate import study_module

_study = study_module("losses-fresh")
SPEC, TUNED, chosen, page = _study.SPEC, _study.TUNED, _study.chosen, _study.page


def results():
    """On validation data CE gains by longer training, NENum by r = 1; on the test part it is the other way."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(SPEC.cells())
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
    assert len(cells) == len(cells.drop_duplicates()) == 60 + 78
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
        "Fashion-MNIST-LT 100 : 1, its own number chosen", "Fashion-MNIST-LT 10 : 1, its own number chosen",
        "Fashion-MNIST-LT 100 : 1, its length chosen", "Fashion-MNIST-LT 10 : 1, its length chosen",
    ]  # fmt: skip
    said = sections[-1].blocks[1].text
    assert said.startswith("NENum is better than CB-CE, CB-focal, CE, focal by more than the spread")
    assert said.endswith("worse than none.")
    claim, table, *_ = sections[0].blocks
    assert claim.claim.startswith("Fashion-MNIST-LT 100 : 1")
    assert [row[1] for row in table.rows if row[0] == "NENum"] == ["r = 1"]
