"""The clock study: its cells, a tiny run, what it reads off curves, and its page on made-up results."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from equipoise.report import Report, Table
from equipoise.studies.grid import canonical_json, to_jsonable
from equipoise.studies.locate import study_module

study = study_module("diffusion-clock")
SPEC, fold = study.SPEC, study.fold
shown = study_module("diffusion-clock", "page")
intervention, page, prepared = shown.intervention, shown.page, shown.prepared
judged = study_module("diffusion-clock", "verdicts")
findings, share_effect = judged.findings, judged.share_effect


def table(sneaker, partner, steps=(100, 1000, 10_000)):
    rows = [
        {"step": step, "label": code, "n": 50, "fraction": fraction}
        for code, fractions in enumerate((sneaker, partner))
        for step, fraction in zip(steps, fractions, strict=True)
    ]
    return pd.DataFrame(rows)


SPREAD = {name: 0.35 + 0.07 * i for i, name in enumerate(study.PARTNERS["fashion-mnist"])} | {"Trouser": 0.2}


def made_up(shift=1.0):
    """Gaps that grow with the variance and fall with the share, as in the paper; theory agrees."""
    rng = np.random.default_rng(0)
    rows = []
    for cell in study.cells(cifar=("automobile", "truck")):
        spread = SPREAD.get(cell["partner"], 0.6)
        gap = shift * (3 * (spread - 0.25) - (cell["share"] - 0.5)) + 0.02 * rng.normal()
        gap *= {"plain": 1.0, "equalized": 0.5, "measured": 0.1}[cell["method"]]
        row = {
            **cell,
            "reference": study.REFERENCES[cell["dataset"]],
            "step": [100, 1000],
            "cosine": rng.uniform(0.5, 0.9),
            "predicted_log_gap": gap + 0.05 * rng.normal(),
            "drawn_share_partner": cell["share"],
            "assigner_accuracy": 1.0,
            "assigner_macro_f1": 0.99,
        }
        for suffix in study.THRESHOLDS:
            row |= {f"log_gap{suffix}": gap, f"bound{suffix}": 0}
        described = {
            "reference": (0.25, 0.9, 1000.0),
            "partner": (spread, 2 - spread**2, 1000 * np.exp(-gap)),
        }
        for role, (variance, norm, time) in described.items():
            row |= {
                f"variance_{role}": variance, f"own_variance_{role}": variance, f"norm_{role}": norm,
                f"time_{role}": time, f"fraction_{role}": [None, 0.6], f"nearest_{role}": [3.0, 1.0],
                f"second_{role}": [4.0, None], f"density_{role}": [0.1, 0.5 + 0.01 * rng.normal()],
                f"coverage_{role}": [0.1, 0.3 - 0.1 * (cell["method"] != "plain") + 0.01 * rng.normal()],
                f"frechet_{role}": [None, None],
            }  # fmt: skip
        rows.append(row)
    frame = pd.DataFrame(rows)
    image = fold(np.full((1, 1, 14, 14), 99), 2)[0].tolist()
    sample = {"label": 0, "ratio": 0.1, "sample": image, "nearest": [image, image]}
    frame["gallery"] = pd.Series([[sample]] + [None] * (len(frame) - 1), dtype=object)
    return frame


def found(frame):
    runs = prepared(frame)
    plain = runs[runs["method"] == "plain"]
    color = plain["dataset"] == "cifar10"
    return findings(plain[~color], plain[color])


def test_a_prefix_of_the_cells_is_useful():
    cells = pd.DataFrame(SPEC.cells())
    first = cells[:27]
    assert (first["share"] == 0.5).all()
    assert set(first["method"]) == {"plain"}
    assert (first.groupby("partner")["seed"].nunique() == 3).all()
    assert first["partner"].nunique() == 9
    assert (cells[27:81].groupby(["partner", "share"])["seed"].nunique() == 3).all()
    assert set(cells["method"]) == set(study.METHODS)
    assert (cells[93:].groupby("partner")["seed"].nunique() == 5).all()
    assert len(cells) == 138


def test_times_gaps_and_bounds():
    found = study.curves(table([0, 0, 1], [0, 1, 1]))
    assert found["log_gap"] == pytest.approx(np.log(10))
    assert found["bound"] == 0
    late = study.curves(table([0, 0, 0], [0, 2 / 3, 1]))
    assert late["time_reference"] is None
    assert late["bound"] == 1
    assert late["log_gap"] == pytest.approx(np.log(10_000 / 10**2.5))
    assert study.curves(table([0, 0, 1], [0, 0, 0]))["bound"] == -1
    assert study.curves(table([0, 0, 0], [0, 0, 0]))["log_gap"] is None


def test_the_verdicts_agree_if_the_data_do():
    for topic, finding in found(made_up()).items():
        assert finding.verdict == "agrees", (topic, finding)


def test_the_verdicts_differ_if_the_data_do():
    frame = made_up(shift=-1.0)
    said = found(frame)
    assert {topic for topic, finding in said.items() if finding.verdict == "differs"} == {
        "order", "variance", "share", "norm", "cifar",
    }  # fmt: skip
    assert said["prediction"].verdict == "agrees", "theory was made to follow"
    assert (share_effect(prepared(frame)[frame["method"] == "plain"]) > 0).all()


def test_nothing_is_said_of_gaps_that_scatter():
    frame = made_up()
    rng = np.random.default_rng(1)
    frame["log_gap"] = rng.normal(size=len(frame))
    assert found(frame)["order"].verdict == found(frame)["share"].verdict == "cannot tell"


@pytest.mark.parametrize(("pairs", "given"), [(4, False), (9, False), (9, True)])
def test_intervals_of_correlations_hold_the_truth(pairs, given):
    """In 95 % of draws, also for the few pairs of a grid that is not whole."""
    figures = study_module("diffusion-clock", "gap_figures")
    rng, truth, held = np.random.default_rng(0), 0.7, 0
    for _ in range(1500):
        x, third, noise = rng.normal(size=(3, pairs))
        y = truth * x + np.sqrt(1 - truth**2) * noise
        frame = pd.DataFrame(
            {"pair": range(pairs), "x": x + third * given, "third": third, "log_gap": y + third * given}
        )
        found = figures.partial_correlation(frame, "x", "third") if given else figures.correlation(frame, "x")
        held += found[1] <= truth <= found[2]
    assert 0.93 < held / 1500 < 0.97


def test_an_extreme_variance_is_left_out_of_the_norms():
    runs = prepared(made_up())
    kept, left_out = study_module("diffusion-clock", "gap_figures").moderate(runs[runs["share"] == 0.5])
    assert "Trouser" in left_out
    assert not set(kept["partner"]) & set(left_out)


def test_the_first_sentence_counts_verdicts_and_tells_what_was_not_run():
    frame = made_up()
    frame = frame[frame["dataset"] == "fashion-mnist"]
    assert found(frame)["cifar"].verdict == "not run"
    said = page(frame, SPEC)[0].blocks[0].claim
    assert "6 agree with these runs, 1 was not run." in said
    assert "partner first: T-shirt, Pullover" in said
    frame["assigner_macro_f1"] = 0.9
    assert "5 agree with these runs, 1 differs, 1 was not run." in page(frame, SPEC)[0].blocks[0].claim


def test_an_intervention_says_what_it_costs():
    frame = prepared(made_up())
    blocks = list(intervention(frame[frame["dataset"] == "fashion-mnist"]))
    cost = [block for block in blocks if isinstance(block, Table) and block.columns[0] == "samples'"]
    assert len(cost) == 2
    words = {(row[0], row[1]): row[-1] for row in cost[1].rows}
    assert words["coverage", "partner"] == "lower"
    assert words["density", "partner"] == "cannot tell"
    assert ("Fréchet distance", "partner") not in words, "never measured"
    measured = [block for block in blocks if getattr(block, "title", "").endswith("other images prescribes")]
    assert measured[0].level == "good"


@pytest.mark.parametrize("cells", [1, 3, 10, 27, 40, 81, 84, 139])
def test_a_page_of_the_first_few_cells(cells):
    sections = {section.title: section for section in page(made_up()[:cells], SPEC)}
    assert ("Interventions" in sections) == (cells > 81)
    assert ("CIFAR-10 (Figs 21 and 22)" in sections) == (cells > 138)
    assert "Samples and their neighbors (Figs 11 to 19)" in sections
    text = Report("Clock", list(sections.values())).to_markdown()
    assert "nan" not in text.lower()


def test_a_page_of_the_pairs_of_cifar_alone():
    frame = made_up()
    titles = [section.title for section in page(frame[frame["dataset"] == "cifar10"], SPEC)]
    assert titles == ["What came out", "CIFAR-10 (Figs 21 and 22)"]


def test_pairs_in_which_nothing_was_memorized_have_a_page():
    frame = made_up()
    color = frame["dataset"] == "cifar10"
    frame = frame.astype({name: object for name in frame if name.startswith(("log_gap", "time_"))})
    frame.loc[color, [name for name in frame if name.startswith(("log_gap", "time_"))]] = None
    assert found(frame)["cifar"].verdict == "cannot tell"
    text = Report("Clock", page(frame, SPEC)).to_markdown()
    assert "cannot tell: automobile" in text
    assert "nan" not in text.lower()


def test_an_earlier_run_sets_the_shares():
    shares = study.evened(table([0, 0, 1], [0, 1, 1]), np.array([0.5, 0.5]))
    assert shares[0] / shares[1] == pytest.approx(10)
    late = study.evened(table([0, 0, 0], [0, 2 / 3, 1]), np.array([0.5, 0.5]))
    assert late[0] / late[1] == pytest.approx(10_000 / 10**2.5), "the last look stands for what did not cross"


@pytest.mark.slow
def test_the_theory_draws_the_early_class_less():
    fashion_or_skip()
    assert study.prescribed("fashion-mnist", "Bag", 0.5, 14) < 0.5


def test_unknown_partner():
    with pytest.raises(ValueError, match="unknown partner Hat"):
        SPEC.cells("small", partners=["Hat"])


def fashion_or_skip():
    try:
        study._images("fashion-mnist", "train")
    except (OSError, ValueError) as problem:
        pytest.skip(f"needs Fashion-MNIST: {problem}")


@pytest.mark.slow
def test_a_tiny_cell_twice():
    fashion_or_skip()
    cell = SPEC.cells("tiny")[0]
    one, two = (to_jsonable(study.run_cell(**cell)) for _ in range(2))
    assert canonical_json(one, allow_nan=True) == canonical_json(two, allow_nan=True)
    assert one["step"][-1] == 40
    assert len(one["fraction_reference"]) == len(one["fraction_partner"]) == len(one["step"])
    assert one["variance_partner"] > one["variance_reference"]
    assert one["predicted_log_gap"] > 0
    assert {"label", "ratio", "sample", "nearest"} <= set(one["gallery"][0])
    for column in study.SEEN:
        assert len(one[f"{column}_reference"]) == len(one["step"]), "over time"


def test_the_pair_is_the_same_images_at_every_share():
    fashion_or_skip()
    half, codes = study.pair("fashion-mnist", "Bag", 0.5, 20, 14, seed=0)
    most, _ = study.pair("fashion-mnist", "Bag", 0.75, 20, 14, seed=0)
    assert codes.tolist() == [0] * 10 + [1] * 10
    assert np.array_equal(half[:5], most[:5])
    other, _ = study.pair("fashion-mnist", "Bag", 0.5, 20, 14, seed=1)
    assert not np.array_equal(half, other)
