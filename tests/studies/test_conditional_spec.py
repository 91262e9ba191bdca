"""The conditional study: its plan of trainings, a whole cell on small data, and the page."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from equipoise.studies.locate import study_module
from equipoise.training import Linear

conditional = study_module("conditional")
gains, page = (getattr(study_module("conditional", "page"), name) for name in ("gains", "page"))

SIZE = {"majority": 60, "epochs": 1, "width": 2}


def digits(dataset, beta, seed, majority):
    """Threes and eights of scikit-learn's digits in place of the study's images."""
    X, y = load_digits(return_X_y=True)
    keep = (y == 3) | (y == 8)
    X, y = X[keep].reshape(-1, 1, 8, 8).astype("float32"), (y[keep] == 8).astype(int)
    few = [*(y == 0).nonzero()[0][:majority], *(y == 1).nonzero()[0][:6]]
    return conditional._parts(X[few], y[few], X[200:280], y[200:280], X[280:], y[280:])


@pytest.mark.parametrize(("method", "asked", "told"), [
    ("vs", 1, 0), ("vs-lct", 20, 2), ("vs-lct-nofilm", 20, 2),
    ("vs-lct-gamma", 4, 1), ("vs-lct-tau", 5, 1), ("vs-sam-lct", 20, 2), ("focal", 1, 0), ("focal-lct", 16, 2),
])  # fmt: skip
def test_every_method_trains_sixteen_models(method, asked, told):
    plan = conditional.trainings(method)
    assert len(plan) == len({training.label() for training in plan}) == 16
    assert {len(training.asked) for training in plan} == {asked}
    assert {len(training.laws) for training in plan} == {told}
    assert all(len(training.laws) + len(training.fixed) == 2 for training in plan)
    for training in plan:
        for law in training.laws.values():
            assert Linear(*law).high > Linear(*law).low


def test_the_grid_asks_every_loss_of_every_set():
    cells = pd.DataFrame(conditional.cells())
    assert len(cells) == len(cells.drop_duplicates()) == 297
    settings = (
        cells[cells["epochs"] == 12]
        .groupby("method")[["dataset", "beta"]]
        .apply(lambda part: len(part.drop_duplicates()))
    )
    for loss in ("vs", "focal", "vs-sam"):
        assert settings[loss] == settings[f"{loss}-lct"] == 11
    assert cells.groupby("method")["seed"].nunique().eq(3).all()
    assert set(cells[cells["seed"] == 0].iloc[:24]["dataset"]) == set(conditional.IMAGES)


@pytest.mark.slow
def test_a_cell_and_the_page(monkeypatch):
    monkeypatch.setattr(conditional, "_load", digits)
    rows = []
    for method in ("vs", "vs-lct", "vs-lct-gamma"):
        setting = {"dataset": "cifar-truck/automobile", "method": method, "beta": 100, "seed": 0, **SIZE}
        found = conditional.run_cell(**setting)
        assert found["models"] == 16
        assert 0 <= found["brier"] <= 1
        assert set(found["scarce"]) == set(conditional.METRICS)
        rows.append({**setting, **found})
    plain, told, _ = rows
    assert len(plain["precisions"]) == 16
    assert len(told["precisions"]) == 1
    assert [len(row["auc_map"][0]) for row in rows] == [1, 20, 4]
    again = conditional.run_cell(**{key: plain[key] for key in ("dataset", "method", "beta", "seed", *SIZE)})
    assert {name: again[name] for name in conditional.METRICS} == {n: plain[n] for n in conditional.METRICS}
    longer = [{**row, "epochs": 5} for row in rows[:2]]
    assert any(
        section.title == "Longer training" for section in page(pd.DataFrame(rows + longer), conditional.SPEC)
    )
    results = pd.DataFrame(rows)
    sections = page(results, conditional.SPEC)
    assert [section.title for section in sections][:2] == ["In short", "The paper's claims"]
    assert len(sections[-1].blocks) == 4
    assert "Chosen at the training imbalance" in [section.title for section in sections]
    without = page(results.drop(columns="scarce"), conditional.SPEC)
    assert len(without) == len(sections) - 1, "cells from before the second choice still have a page"
    assert gains(results, "brier", "vs-lct", "vs").iloc[0] == pytest.approx(plain["brier"] - told["brier"])


def test_the_choice_at_the_training_imbalance_sees_few_positives():
    """A model that only the many positives tell from another is not found with the few."""
    y, y_valid = np.repeat([0, 1], [100, 1]), np.repeat([0, 1], [100, 100])
    few = conditional.at_training_imbalance(y, y_valid, seed=3)
    assert np.bincount(y_valid[few]).tolist() == [100, 1]
    right = np.linspace(0, 1, 200)
    wrong = np.where(np.isin(np.arange(200), few), right, 1 - right)
    answers = [(np.stack([1 - p, p], axis=-1)[None],) * 2 for p in (wrong, right)]
    parts = {"y_valid": y_valid, "y_test": y_valid}
    seen = [conditional._choose(answers, parts, rows)["auc"] for rows in (few, slice(None))]
    assert [model for (model, _), _ in seen] == [0, 1]
    assert seen[0][1] < seen[1][1] == 1


def test_the_papers_numbers_are_whole():
    tables = conditional.PAPER
    assert set(tables) == set(conditional.METRICS)
    assert sum(len(row) for table in tables.values() for row in table.values()) == 324
    assert tables["auc"]["VS + LCT"][1] == 0.930


def test_only_the_data_of_the_chosen_cells_is_asked_for():
    cells = [cell for cell in conditional.cells() if cell["dataset"] in conditional.TABLES]
    assert conditional.needs(cells) == sorted(conditional.TABLES)
    everything = conditional.needs(list(conditional.cells()))
    assert set(everything) == {"fashion-mnist", "pneumoniamnist", "cifar10", *conditional.TABLES}


@pytest.mark.parametrize("size", ["small", "paper"])
def test_every_size_has_validation_images_of_both_classes(monkeypatch, size):
    """Also where the training set asks for all images there are: validation images are set aside first."""
    from equipoise import datasets

    class Whole:
        X, y = np.zeros((12_000, 1, 1, 1), dtype=np.float32), np.repeat([1, 9], 6000)

    few = Whole()
    few.X, few.y = few.X[:10_000], np.repeat([1, 9], 5000)
    monkeypatch.setattr(datasets, "load_cifar10", lambda split: few)
    settings = next(cell for cell in conditional.SPEC.cells(size) if cell["dataset"].startswith("cifar"))
    parts = conditional._load(settings["dataset"], settings["beta"], 0, settings["majority"])
    assert np.bincount(parts["y_valid"]).tolist() == [500, 500]
    assert np.bincount(parts["y"])[0] == min(settings["majority"], 4500)


def test_a_cell_by_the_papers_recipe(monkeypatch):
    monkeypatch.setattr(conditional, "_load", digits)
    monkeypatch.setattr(conditional, "trainings", lambda method: _trainings(method)[:1])
    setting = {"dataset": "cifar-truck/automobile", "method": "vs-sam-lct", "beta": 100, "seed": 0}
    found = conditional.run_cell(**setting, **SIZE, recipe="paper")
    assert found["models"] == 1


_trainings = conditional.trainings
