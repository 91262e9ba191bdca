"""The losses study: its plan, its choice of a learning rate and its page, on made-up results."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from equipoise.losses import get_loss
from equipoise.studies.locate import study_module

_study = study_module("losses-fashion-lt")
METHODS, SPEC, chosen, halve, page = _study.METHODS, _study.SPEC, _study.chosen, _study.halve, _study.page


def results():
    rng = np.random.default_rng(0)
    rows = []
    for cell in SPEC.cells():
        error = 25 + rng.normal() + (3 if cell["lr"] < 0.01 else 0)
        scores = {f"{part}_{name}": error for part in ("validation", "test") for name in ("error", "acsa")}
        recalls = {f"test_{part}_recall": 80.0 for part in ("head", "tail")}
        rows.append({**cell, **scores, **recalls, "train_error": 1.0})
    frame = pd.DataFrame(rows)
    seen = [
        {"epoch": epoch, "part": part, "mean": 0.5, "counts": list(range(28))}
        for epoch in (1, 50)
        for part in ("head", "tail")
    ]
    frame["weights"] = [json.dumps(seen) if m == "NENum" else None for m in frame["method"]]
    return frame


def test_every_method_has_the_same_runs():
    cells = pd.DataFrame(SPEC.cells())
    main = cells[(cells["ratio"] == 100) & (cells["epochs"] == 50) & (cells["lr"] == 0.015)]
    assert set(main["method"]) == set(METHODS)
    assert (main.groupby("method")["seed"].nunique() == 3).all()
    for settings in METHODS.values():
        get_loss(settings["loss"], class_counts=[9, 3, 1], **settings.get("loss_params", {}))


def test_the_rate_is_chosen_on_validation_data_for_all():
    frame = results()
    assert set(chosen(frame)["lr"]) == {0.015}
    frame["test_error"] *= np.where(frame["lr"] == 0.015, 10, 1)  # what the test says must not matter
    assert set(chosen(frame)["lr"]) == {0.015}


def test_page():
    sections = page(results(), SPEC)
    titles = [section.title for section in sections]
    parts = {
        f"Fashion-MNIST-LT {part}"
        for part in ("100 : 1, 50 epochs", "10 : 1, 30 epochs", "10 : 1, 60 epochs")
    }
    assert titles[0] == "What the paper says, and what is seen here"
    assert parts == set(titles[2:5])
    assert titles[-1] == "Sample weights (Fig 7)"


def test_unknown_method_and_halved_images():
    with pytest.raises(ValueError, match="unknown methods hinge"):
        SPEC.cells(methods=["hinge"])
    image = np.arange(16.0).reshape(1, 1, 4, 4)
    np.testing.assert_allclose(halve(image)[0, 0], [[2.5, 4.5], [10.5, 12.5]])


def test_what_differs_is_what_the_cells_say():
    small, paper, tiny = (SPEC.differs(pd.DataFrame(SPEC.cells(size))) for size in ("small", "paper", "tiny"))
    assert "1,000 samples in the head class" in small
    assert "50 epochs at 100 : 1, 30 or 60 epochs at 10 : 1" in small
    assert "The 60 epochs were added after the 30" in small
    assert "thirty classes (MNIST, Fashion-MNIST and CIFAR-10 in gray), 300 images" in small
    assert "6,000 samples in the head class" in paper
    assert "202 epochs at 100 : 1, 122 or 244 epochs at 10 : 1" in paper
    assert "were added" not in paper
    assert "100 samples in the head class" in tiny
    assert "thirty" not in tiny
