"""The study of recipes: the same trials for every loss, what they choose, and the page, on made-up results."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd
import pytest
import torch

from equipoise.losses import get_loss
from equipoise.studies.locate import study_module

_study = study_module("losses-recipe")
choosing, training, _page = (
    importlib.import_module(f"{_study.__package__}.{name}") for name in ("choosing", "training", "page")
)
BETTER = {"KPS": 3.0, "LA": 2.0, "LDAM-DRW": 1.0, "VS": 0.9, "CE": 0.8}


def results():
    """AdamW gains 4 points, averaging half a point; mixing costs 1 with KPS and gains 1 else."""
    frame = pd.DataFrame(_study.SPEC.cells())
    adamw = frame["training"].isna()
    mixed = (frame["mixed"] > 0) * np.where(frame["method"] == "KPS", 1.0, -1.0)
    gain = frame["method"].map(BETTER).fillna(0) + 4 * adamw + 0.5 * frame["averaged"]
    frame["error"] = 30 - gain + mixed + 30 * (frame["dataset"] == "cifar10") + frame["draw"] % 7 / 10
    frame["head_recall"] = frame["tail_recall"] = 100 - frame["error"]
    return frame


@pytest.fixture
def chosen(monkeypatch):
    """The study with both rounds' choices filled in, as its runner does after each."""
    monkeypatch.setattr(_study, "TRAINING", choosing.chosen_training(choosing.tried(results())))
    choice = choosing.chosen_recipes(choosing.tried(results()))
    for module in (_study, _page):
        monkeypatch.setattr(module, "CHOSEN", choice)
    return choice


def test_every_loss_has_the_same_five_trials_and_the_best_are_judged_elsewhere(chosen):
    cells = pd.DataFrame(_study.SPEC.cells())
    assert len(cells) == len(cells.drop_duplicates()) <= 330
    trials, final = (cells[cells["judge"] == judge] for judge in ("validation", "test"))
    assert set(trials.groupby(["method", "dataset"]).size()) == {5}
    assert trials["method"].nunique() == len(_study.LOSSES)
    assert not set(trials["draw"]) & set(final["draw"])
    assert set(final.groupby(["method", "dataset"])["draw"].nunique()) == {8}
    assert set(final["dataset"]) - set(trials["dataset"]) == {"thirty-classes"}
    assert set(final["method"]) == set(BETTER)  # today's loss is among them


def test_the_trials_choose_what_has_the_least_error_on_both_sets(chosen):
    assert list(chosen)[:2] == ["KPS", "LA"]
    assert chosen["KPS"] == ("adamw", True, 0.0)
    assert chosen["LA"] == ("adamw", True, 0.2)
    frame = results()
    frame.loc[(frame["method"] == "KPS") & frame["training"].isna(), "error"] += 20
    assert choosing.chosen_training(choosing.tried(frame))["KPS"] == "sgd"
    only_one_set = frame[(frame["method"] != "LA") | (frame["dataset"] == "cifar10")]
    assert "LA" not in choosing.chosen_recipes(choosing.tried(only_one_set))


def test_the_page_says_what_won_and_shows_every_trial(chosen, monkeypatch):
    frame = results()
    sections = {section.title: section.blocks for section in _page.page(frame, _study.SPEC)}
    headline, claims = sections["What holds"]
    assert headline.claim.startswith(
        "KPS (AdamW, averaged) has the least mean error over 3 sets and 8 draws."
    )
    rows = {row[0]: row[1:] for row in claims.rows}
    assert rows["Averaged weights help (trials)"] == ["+0.50 ± 0.00", 68, "agrees"]
    assert rows["Mixed images help (trials)"][1] == 68
    best = "KPS (AdamW, averaged) is better than today's LDAM-DRW (SGD) on cifar10"
    assert rows[best] == ["+6.50 ± 0.00", 8, "agrees"]
    (table,) = sections["What the trials chose"]  # and no warning
    assert [row[-1] for row in table.rows] == ["yes"] * 5 + ["no"] * 12
    assert len(sections["The trials"][0].rows) == 17 * 5
    monkeypatch.setattr(_page, "CHOSEN", dict(reversed(chosen.items())))
    sections = {section.title: section.blocks for section in _page.page(frame, _study.SPEC)}
    assert sections["What the trials chose"][0].level == "warning"


@pytest.mark.parametrize("mixed", [0.0, 0.2])
@pytest.mark.parametrize("how", ["sgd", "adamw"])
@pytest.mark.parametrize("method", _study.LOSSES)
def test_every_loss_trains_with_either_head(method, how, mixed):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [60, 30, 10])
    X = rng.normal(size=(100, 1, 14, 14)) + y[:, None, None, None]
    settings = {**_study.LOSSES[method], "counts": np.bincount(y), "training": how}
    made = training.make_classifier(**settings, averaged=True, mixed=mixed, epochs=6, seed=0)
    fitted = made.fit(X, y)
    assert np.isfinite(fitted.history_["loss"]).all()
    normalizes = how == "adamw" or method in ("KPS", "LDAM-DRW")
    with torch.no_grad():
        small, large = (fitted.network_.head(s * torch.ones(1, 32)) for s in (1, 100))
    assert torch.allclose(small, large, rtol=1e-4) == normalizes
    if normalizes:
        scale = getattr(get_loss(settings["loss"], [2, 1, 1], **settings.get("loss_params", {})), "scale", 30)
        assert float(fitted.network_.head.scale) == scale


def test_the_unit_head_makes_its_logits_of_the_features_and_weights_that_a_loss_sees():
    torch.manual_seed(0)
    net = training.unit_convnet((1, 14, 14), 3, widths=(8, 16, 32))
    plain = training.cosine_convnet((1, 14, 14), 3, widths=(8, 16, 32))
    plain.load_state_dict(
        {name.replace("direction", "weight"): v for name, v in net.state_dict().items()}, False
    )
    images = torch.randn(4, 1, 14, 14)
    logits, features = training.logits_and_features(net, images)
    assert torch.allclose(features.norm(dim=1), torch.ones(4))
    assert torch.allclose(logits, features @ net.head.weight.T, atol=1e-5)
    assert torch.allclose(logits, plain(images), atol=1e-4)
