"""The study of losses learned on a meta set: its cells, its page, and a cell that runs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from equipoise.report import Table
from equipoise.studies import named_spec
from equipoise.studies.locate import study_module
from equipoise.studies.store import Store

meta_fashion_lt = study_module("meta-fashion-lt")


def test_the_trials_come_first_and_share_no_images_with_the_rest():
    spec = named_spec("meta-fashion-lt")
    cells = pd.DataFrame(spec.cells("small"))
    judges = cells["judge"].tolist()
    assert judges == sorted(judges, reverse=True), "validation before test"
    trials, final = (cells[cells["judge"] == judge] for judge in ("validation", "test"))
    assert not set(trials["seed"]) & set(final["seed"])
    assert (trials.groupby("method")["strength"].nunique() == 3).all()
    assert set(final["dataset"]) == {"fashion-mnist", "cifar10", "thirty-classes"}
    balanced = final[final["ratio"] == 1]
    assert set(balanced["method"]) == set(meta_fashion_lt.BALANCED)
    with pytest.raises(ValueError, match="unknown methods MAML"):
        spec.cells("small", methods=["MAML"])


def results(**errors):
    return [
        {"method": method, "dataset": "fashion-mnist", "ratio": 100, "seed": seed, "judge": "test",
         "strength": None, "error": error + 0.1 * seed, "head_recall": 90.0, "tail_recall": 50.0,
         "train_error": 1.0, "cell_seconds": 1.0}
        for method, error in errors.items()
        for seed in (0, 1)
    ]  # fmt: skip


def test_the_page_says_who_is_better_and_what_was_chosen():
    trials = [
        row | {"judge": "validation", "strength": strength, "error": error}
        for strength, error in ((0.5, 12.0), (1.0, 11.0), (2.0, 13.0))
        for row in results(NENum=0.0)
    ]
    rows = results(**{"CE": 30.0, "Meta-ENum": 20.0, "Meta-ENum −h": 19.0})
    first, final, chosen = meta_fashion_lt.page(pd.DataFrame([*rows, *trials]), meta_fashion_lt.SPEC)
    headline, claims = first.blocks
    assert headline.claim == (
        "On one long-tailed set, Meta-ENum is better than CE; it is worse than Meta-ENum −h."
    )
    assert claims.rows == [
        ["Meta-ENum is better than Meta-ENum −h, long-tailed", "+0.73", "-1.00 ± 0.00", 2, "differs"]
    ]
    _, verdict = (block for block in final.blocks if isinstance(block, Table))
    assert {row[0]: row[-1] for row in verdict.rows} == {"CE": "better", "Meta-ENum −h": "worse"}
    (table,) = chosen.blocks
    assert table.rows == [["NENum", "r", "0.5: 12.00, 1: 11.00, 2: 13.00", "1"]]


def test_many_classes_stand_beside_cifar100():
    rows = [row | {"dataset": "thirty-classes"} for row in results(**{"CB-CE": 70.0, "Meta-ENum": 60.0})]
    first, section = meta_fashion_lt.page(pd.DataFrame(rows), meta_fashion_lt.SPEC)
    assert first.blocks[-1].rows[0][1:] == ["+9.15", "+10.00 ± 0.00", 2, "agrees"]
    table = next(block for block in section.blocks if isinstance(block, Table))
    assert [row[-1] for row in table.rows] == [61.23, 52.08]
    assert "CIFAR100-LT" in table.caption
    assert "Tables 2, 9 and 11" in table.caption
    cells = [{"dataset": "thirty-classes"}, {"dataset": "cifar100"}]
    assert meta_fashion_lt.needs(cells) == ["cifar10", "cifar100", "fashion-mnist", "mnist"]


def test_thirty_classes_take_turns_between_three_sets():
    try:
        images = meta_fashion_lt.load_images("thirty-classes", 100, 300, 14, 0, "test")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    counts = np.bincount(images.y)
    assert (len(counts), counts[0], counts[-1]) == (30, 300, 3)
    assert images.X.shape[1:] == (1, 14, 14)
    dark = [images.X_judged[images.y_judged % 3 == place].mean() for place in range(3)]
    assert dark[0] < dark[1] < dark[2]  # digits, clothes, photographs


def test_what_was_chosen_is_what_the_committed_trials_say(tmp_path):
    committed = Path(__file__).parents[2] / "studies" / "meta-fashion-lt" / "results.sqlite"
    with Store(shutil.copy(committed, tmp_path)) as opened:  # opening a store may write to it
        done = opened.frame("meta-fashion-lt")
    assert meta_fashion_lt.choose(done[done["judge"] == "validation"]) == meta_fashion_lt.CHOSEN


def test_a_cell_runs_twice_to_the_same_numbers():
    (cell, *_) = [c for c in meta_fashion_lt.SPEC.cells("tiny") if c["method"] == "Meta-ENum"]
    try:
        meta_fashion_lt.load_images("fashion-mnist", 10, 60, 14, 0, "test")
    except FileNotFoundError:
        pytest.skip("Fashion-MNIST is not on this machine")
    first = meta_fashion_lt.run_cell(**cell)
    assert first == meta_fashion_lt.run_cell(**cell)
    assert 0 < first["error"] < 90


def test_validation_images_are_set_aside_where_training_uses_a_class_up():
    """At the paper's size the head class has no image left over: ten of each class go first."""
    long_tail = sys.modules[meta_fashion_lt.load_images.__module__]
    y = np.repeat(np.arange(4), 200)
    rows, held = long_tail.draw_apart(
        y, ratio=20, head=200, seed=0, rng=np.random.default_rng(1), per_class=10
    )
    assert np.bincount(y[held]).tolist() == [10] * 4
    assert not set(rows) & set(held)
    counts = np.bincount(y[rows])
    assert counts[0] == 190
    assert counts[0] / counts[-1] == pytest.approx(20, rel=0.1)
    rows, held = long_tail.draw_apart(
        y, ratio=20, head=100, seed=0, rng=np.random.default_rng(1), per_class=10
    )
    assert held is None
    assert np.bincount(y[rows])[0] == 100


def test_the_papers_size_uses_the_papers_numbers_and_says_what_differs():
    cells = pd.DataFrame(meta_fashion_lt.SPEC.cells("paper"))
    assert set(cells["judge"]) == {"test"}
    assert set(cells.query("method == 'Meta-ENum'")["strength"]) == {0.67}
    told = meta_fashion_lt.SPEC.differs(cells)
    assert "A resnet32, 240 epochs" in told
    assert "cifar100 at 32×32 pixels with 500 images" in told
    assert "the papers' own" in told
    assert "A convnet, 40 epochs" in meta_fashion_lt.SPEC.differs(pd.DataFrame(meta_fashion_lt.SPEC.cells()))
