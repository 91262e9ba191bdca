"""The clock study: its cells, a tiny run, what it reads off curves, and its page on made-up results."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from equipoise.report import Table
from equipoise.studies.grid import canonical_json, to_jsonable
from equipoise.studies.locate import study_module

study = study_module("diffusion-clock")
SPEC, fold = study.SPEC, study.fold
shown = study_module("diffusion-clock", "page")
intervention, page, prepared = shown.intervention, shown.page, shown.prepared
share_effect, verdict = shown.share_effect, shown.verdict


def table(sneaker, partner, steps=(100, 1000, 10_000)):
    rows = [
        {"step": step, "label": code, "n": 50, "fraction": fraction}
        for code, fractions in enumerate((sneaker, partner))
        for step, fraction in zip(steps, fractions, strict=True)
    ]
    return pd.DataFrame(rows)


def made_up(shift=1.0):
    """Gaps that grow with the variance and fall with the share, as in the paper; theory agrees."""
    rng = np.random.default_rng(0)
    rows = []
    spread = {
        "Bag": 0.6, "Coat": 0.38, "Sandal": 0.55, "Trouser": 0.2, "Shirt": 0.5, "Pullover": 0.45,
        "Ankle boot": 0.41, "T-shirt": 0.43, "Dress": 0.36, "Automobile": 0.52,
    }  # fmt: skip
    for cell in SPEC.cells():
        gap = shift * (3 * (spread[cell["partner"]] - 0.25) - (cell["share"] - 0.5)) + 0.02 * rng.normal()
        gap *= {"plain": 1.0, "equalized": 0.5, "measured": 0.1}[cell["method"]]
        scores = {f"log_gap{suffix}": gap for suffix in study.THRESHOLDS}
        bounds = {f"bound{suffix}": 0 for suffix in study.THRESHOLDS}
        rows.append(
            {
                **cell,
                **scores,
                **bounds,
                "step": [100, 1000],
                "fraction_sneaker": [0.0, 0.5],
                "fraction_partner": [None, 0.6],
                "time_sneaker": 1000.0,
                "time_partner": 1000 * np.exp(-gap),
                "variance_sneaker": 0.25,
                "variance_partner": spread[cell["partner"]],
                "norm_sneaker": 0.9,
                "norm_partner": 2 - spread[cell["partner"]] ** 2,
                "cosine": rng.uniform(0.5, 0.9),
                "predicted_log_gap": gap + 0.05 * rng.normal(),
                "drawn_share_partner": cell["share"],
                "assigner_accuracy": 1.0,
                "density": [0.5, 0.9],
                "coverage": [0.6, 0.8],
                "frechet": [4.0, 3.0],
            }
        )
    frame = pd.DataFrame(rows)
    image = fold(np.full((1, 1, 14, 14), 99), 2)[0].tolist()
    sample = {"label": 0, "ratio": 0.1, "sample": image, "nearest": [image, image]}
    frame["gallery"] = pd.Series([[sample]] + [None] * (len(frame) - 1), dtype=object)
    return frame


def notes(frame):
    runs = prepared(frame[(frame["images"] == 40) & (frame["data"] == "fashion-mnist")])
    return {
        block.title: block for block in [*verdict(runs), *intervention(runs)] if getattr(block, "title", "")
    }


def test_a_prefix_of_the_cells_is_useful():
    cells = pd.DataFrame(SPEC.cells())
    first = cells[:27]
    assert set(first["share"]) == {0.5}
    assert set(first["method"]) == {"plain"}
    assert first[["partner", "seed"]].drop_duplicates().shape[0] == 27
    assert set(cells["method"]) == set(study.METHODS)
    assert set(cells["data"]) == {"fashion-mnist", "cifar10-test"}


def test_times_gaps_and_bounds():
    found = study.curves(table([0, 0, 1], [0, 1, 1]))
    assert found["log_gap"] == pytest.approx(np.log(10))
    assert found["bound"] == 0
    late = study.curves(table([0, 0, 0], [0, 2 / 3, 1]))
    assert late["time_sneaker"] is None
    assert late["bound"] == 1
    assert late["log_gap"] == pytest.approx(np.log(10_000 / 10**2.5))
    assert study.curves(table([0, 0, 1], [0, 0, 0]))["bound"] == -1
    assert study.curves(table([0, 0, 0], [0, 0, 0]))["log_gap"] is None


def test_the_words_say_what_the_paper_found_if_that_is_in_the_data():
    said = notes(made_up())
    for name in (
        "Order",
        "Variance",
        "Share",
        "Prediction",
        "Intervention, as the theory prescribes for these images",
        "Intervention, as the clock of a plain run on other images prescribes",
    ):
        assert said[name].level == "good", name
    assert "9 of 9 pairs" in said["Order"].text


def test_the_words_say_so_if_it_is_not():
    frame = made_up(shift=-1.0)
    said = notes(frame)
    assert said["Order"].level == said["Variance"].level == said["Share"].level == "warning"
    assert said["Prediction"].level == "good", "theory was made to follow"
    assert (share_effect(prepared(frame)[frame["method"] == "plain"]) > 0).all()


def test_a_page_of_the_first_few_cells():
    titles = [section.title for section in page(made_up()[:3], SPEC)]
    assert "The intervention" not in titles
    assert "Samples and their neighbors (Figs 11–19)" in titles


def test_pairs_of_more_images_stand_apart():
    frame = made_up()
    sections = {section.title: section for section in page(frame, SPEC)}
    (table,) = (block for block in sections["More images"].blocks if isinstance(block, Table))
    assert [row[0] for row in table.rows] == ["Bag"]
    assert [row[-2] for row in sections["CIFAR-10 (Figs 21, right, and 22)"].blocks[2].rows] == ["Automobile"]
    (pairs,) = sections["The gap, pair by pair"].blocks
    assert all(row[2] == 3 for row in pairs.rows), "three seeds, none of them a larger pair"


def test_an_earlier_run_sets_the_shares():
    shares = study.evened(table([0, 0, 1], [0, 1, 1]), np.array([0.5, 0.5]))
    assert shares[0] / shares[1] == pytest.approx(10)
    late = study.evened(table([0, 0, 0], [0, 2 / 3, 1]), np.array([0.5, 0.5]))
    assert late[0] / late[1] == pytest.approx(10_000 / 10**2.5), "the last look stands for what did not cross"


def test_the_cost_is_read_before_the_first_copies():
    run = {
        "fraction_sneaker": [0.0, 0.1, 0.5],
        "fraction_partner": [None, 0.3, 0.2],
        "coverage": [0.1, 0.2, 0.3],
    }
    assert shown.quality_before_copying(run, "coverage") == 0.2
    run["fraction_partner"] = [0.4, 0.5, 0.6]
    assert shown.quality_before_copying(run, "coverage") == 0.1, "the first look, if all are too late"
    run["fraction_partner"] = run["fraction_sneaker"] = [0.0, 0.0, 0.0]
    assert shown.quality_before_copying(run, "coverage") == 0.3


def test_the_norm_alone_without_extreme_variances():
    frame = prepared(made_up())
    said = "".join(block.text for block in shown._norm_alone(frame[frame["data"] == "fashion-mnist"]))
    assert "least and greatest variance (Bag, Trouser)" in said
    assert "over 7 pairs" in said


def test_the_theory_draws_the_early_class_less():
    fashion_or_skip()
    X, codes = study.pair("Bag", 0.5, 40, 14, seed=0)
    assert study.prescribed(X, codes, 0)[1] < 0.5


def test_unknown_partner():
    with pytest.raises(ValueError, match="unknown partner Hat"):
        SPEC.cells("small", partners=["Hat"])


def fashion_or_skip():
    try:
        study_module("diffusion-clock", "images").source("fashion-mnist")
    except (OSError, ValueError) as problem:
        pytest.skip(f"needs Fashion-MNIST: {problem}")


@pytest.mark.slow
def test_a_tiny_cell_twice():
    fashion_or_skip()
    cell = SPEC.cells("tiny")[0]
    one, two = (to_jsonable(study.run_cell(**cell)) for _ in range(2))
    assert canonical_json(one, allow_nan=True) == canonical_json(two, allow_nan=True)
    assert one["step"][-1] == 40
    assert len(one["fraction_sneaker"]) == len(one["fraction_partner"]) == len(one["step"])
    assert one["variance_partner"] > one["variance_sneaker"]
    assert one["predicted_log_gap"] > 0
    assert {"label", "ratio", "sample", "nearest"} <= set(one["gallery"][0])
    for name in ("nearest_sneaker", "density", "coverage", "frechet"):
        assert len(one[name]) == len(one["step"]), "distances and quality over time"


def test_the_pair_is_the_same_images_at_every_share():
    fashion_or_skip()
    half, codes = study.pair("Bag", 0.5, 20, 14, seed=0)
    most, _ = study.pair("Bag", 0.75, 20, 14, seed=0)
    assert codes.tolist() == [0] * 10 + [1] * 10
    assert np.array_equal(half[:5], most[:5])
    other, _ = study.pair("Bag", 0.5, 20, 14, seed=1)
    assert not np.array_equal(half, other)
