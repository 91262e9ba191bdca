"""The fresh draws of the losses study: the plan, the choice of epochs and the page, on made-up results."""

from __future__ import annotations

import numpy as np
import pandas as pd

from equipoise.bench.specs.losses_fresh import SPEC, chosen, page


def results():
    """CE gains by longer training on validation data, NENum does not; on the test part it is the other way."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(SPEC.cells())
    longer = frame["epochs"] == frame.groupby("ratio")["epochs"].transform("max")
    better = np.where(frame["method"] == "NENum", ~longer, longer)
    frame["validation_error"] = 30 - 5.0 * better + rng.normal(0, 0.1, len(frame))
    frame["test_error"] = 20 + 5.0 * better - 3 * (frame["method"] == "NENum")
    for name in ("test_acsa", "test_head_recall", "test_tail_recall"):
        frame[name] = 100 - frame["test_error"]
    return frame


def test_all_methods_have_the_same_runs_on_the_same_draws():
    cells = pd.DataFrame(SPEC.cells())
    assert len(cells) == len(cells.drop_duplicates()) == 60
    assert (cells.groupby(["method", "ratio", "epochs"])["draw"].nunique() == 3).all()


def test_epochs_are_chosen_on_validation_data():
    frame = results()
    for _, at in frame.groupby("ratio"):
        picked = chosen(at).groupby("method")["epochs"].unique().map(lambda values: values.tolist())
        assert picked["CE"] == [at["epochs"].max()]
        assert picked["NENum"] == [at["epochs"].min()]


def test_the_page_says_what_the_gains_say():
    sections = page(results(), SPEC)
    assert [section.title for section in sections] == ["Fashion-MNIST-LT 100 : 1", "Fashion-MNIST-LT 10 : 1"]
    said = sections[0].blocks[1].text
    assert said == "NENum is better beyond the spread than CB-CE, CB-focal, CE, focal; worse than none."
