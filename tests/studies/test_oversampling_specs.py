"""The studies of oversampling: their cells, and pages that show the paper's number beside ours."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from equipoise.report import Report
from equipoise.studies import named_spec
from equipoise.studies.grid import canonical_json
from equipoise.studies.locate import study_module

MEASURES = study_module("oversampling-images", "page").MEASURES
_images = study_module("oversampling-images")
FIRST, METHODS, OURS, epochs_of = _images.FIRST, _images.METHODS, _images.OURS, _images.epochs_of


def test_every_method_gets_the_same_updates():
    spec = named_spec("oversampling-images")
    cells = pd.DataFrame(spec.cells())
    fair = cells[cells["updates"] > 900]
    assert (fair.groupby("dataset")["updates"].nunique() == 1).all()
    assert set(fair["dataset"]) == {"fashion-mnist", "mnist", "cifar10"}
    assert (fair.groupby("dataset")["seed"].nunique() == 3).all()
    assert (fair.groupby(["dataset", "seed"])["method"].nunique() == len(METHODS)).all()
    assert fair["dataset"].iloc[0] == "cifar10", "the paper's headline first"
    assert fair["seed"].iloc[: len(FIRST)].nunique() == 1, "a part of the run is a study of fewer seeds"
    assert set(cells.loc[cells["updates"] < 900, "method"]) == set(OURS)
    long = pd.DataFrame(spec.cells("small", long=9000))
    assert set(long.loc[long["updates"] > 2000, "method"]) == {"ours"}
    assert epochs_of(700, 9000) == 10
    assert epochs_of(1, 9000) == 1


def test_stored_cells_are_cells_of_the_study():
    store = Path(__file__).parents[2] / "studies/oversampling-images/results.sqlite"
    with sqlite3.connect(f"file:{store}?immutable=1", uri=True) as rows:
        stored = {canonical_json(json.loads(cell)) for (cell,) in rows.execute("SELECT settings FROM cells")}
    assert stored <= {canonical_json(cell) for cell in named_spec("oversampling-images").cells("small")}


def color_images(dataset, seed):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], [30, 12, 8])
    images = (rng.random((50, 3, 32, 32)) / 2 + y[:, None, None, None] / 4).astype(np.float32)
    return dict.fromkeys(("train", "balanced", "imbalanced"), (images, y))


@pytest.mark.parametrize("setting", ["updates", "budget"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_runs_on_color_images(method, setting, monkeypatch):
    monkeypatch.setattr(_images, "draw_parts", color_images)
    found = _images.run_cell("cifar10", method, seed=0, **{setting: 1})
    assert 0 <= found["balanced_acsa"] <= 100
    assert ("neighbor_plane" in found) == (method == "ours")
    natural = method in ("plain", "natural batches")
    assert found[f"imbalanced_macro_f1{'_data' if natural else '_even'}"] == found["imbalanced_macro_f1"] or (
        method == "one-stage GAMO"
    )


@pytest.mark.parametrize("method", METHODS)
def test_all_classifiers_average_their_weights_and_move_their_images(method, monkeypatch):
    """At equal updates; a fit must look different without either."""
    from equipoise.training import ExponentialAverage

    moved, averaged = [], []
    own_start = ExponentialAverage.on_start
    monkeypatch.setattr(_images, "augmentation", lambda _: Moves(moved))
    monkeypatch.setattr(
        ExponentialAverage, "on_start", lambda self, run: averaged.append(self.decay) or own_start(self, run)
    )
    parts = color_images("cifar10", 0)
    _images._at_equal_updates("cifar10", method, 0, 1, *parts["train"])
    assert averaged == [_images.AVERAGE]
    assert moved


class Moves:
    """Counts its calls, also where a fit took a copy of it."""

    def __init__(self, calls):
        self.calls = calls

    def __call__(self, images, generator):
        self.calls.append(len(images))
        return images

    def __deepcopy__(self, memo):
        return self


class Told:
    """Knows the scores of four rows, as from balanced training."""

    classes_ = np.array([0, 1])
    training_prior_ = np.array([0.5, 0.5])

    def predict_proba(self, X, prior):
        assert prior == "train"
        return X


def test_decisions_are_taken_under_three_priors():
    scores, y = np.array([[0.9, 0.1], [0.6, 0.4], [0.4, 0.6], [0.2, 0.8]]), np.array([0, 0, 0, 1])
    found = _images._measured(Told(), scores, y, np.array([0.75, 0.25]))
    assert found["acsa"] == found["acsa_even"] == pytest.approx(100 * (2 / 3 + 1) / 2)
    assert found["acsa_data"] == found["macro_f1_data"] == 100, "0.4 · 3 is above 0.6"


def test_gamos_batches_have_the_prior_that_is_said():
    X, y = color_images("cifar10", 0)["train"]
    gamo = _images._at_equal_updates("cifar10", "one-stage GAMO", 0, 1, X, y)
    made = np.array([0, 18, 22]) / 40
    assert gamo.training_prior_ == pytest.approx((np.array([30, 12, 8]) / 50 + made) / 2)


def made_up(method, seed=0, budget=700, score=80.0, **more):
    names = [f"{test}_{name}" for test in ("balanced", "imbalanced") for name in MEASURES]
    row = {
        "dataset": "fashion-mnist",
        "method": method,
        "seed": seed,
        "budget": budget,
        "fit_cpu_seconds": 50.0,
    }
    return row | dict.fromkeys(names, score) | more


def image_page(rows):
    spec = named_spec("oversampling-images")
    return Report("page", spec.page(pd.DataFrame(rows), spec)).to_markdown()


def test_image_page_has_the_papers_number_and_the_verdict():
    rows = [made_up("ours", seed, score=84.0 + seed) for seed in (0, 1)]
    close = [*rows, *(made_up("SMOTE", seed, score=83.5 + 2 * seed) for seed in (0, 1))]
    text = image_page(close)
    assert "84.79" in text
    assert "92.33" in text, "the paper's AUPRC stands beside ours"
    assert "67.94" in text, "Table 14: SMOTE on the imbalanced test set"
    assert "84.50 ± 0.71" in text
    assert "not above SMOTE" in text
    assert "above every rival" in image_page([*rows, *(made_up("SMOTE", s, score=75.0) for s in (0, 1))])


def lines_of(text):
    return {line.split("|")[2].strip(): line for line in text.splitlines() if line.count("|") == 6}


def test_image_page_opens_with_the_papers_claims():
    rows = [made_up("ours", seed, score=84.0 + seed / 10) for seed in (0, 1, 2)]
    rows += [made_up("GAMO", seed, score=80.0 - seed / 10) for seed in (0, 1, 2)]
    rows += [made_up("BAGAN", seed, score=86.0 + seed / 20) for seed in (0, 1, 2)]
    rows += [made_up("DGC", seed, score=84.0 + seed / 5) for seed in (0, 1)]
    text = image_page(rows)
    lines = lines_of(text)
    assert "+4.20 ± 0.50 | 3 | agrees" in lines["ACSA +1.50 over GAMO (balanced)"]
    assert "| differs |" in lines["ACSA +4.86 over BAGAN (balanced)"]
    assert "cannot tell" in lines["ACSA +2.45 over DGC (balanced)"]
    assert "84.10 ± 0.25 | 3 | differs" in lines["ACSA 84.79 (balanced)"]
    assert "differs" in lines["AUPRC-OVA 92.33 (balanced)"], "shown where ours is lower, too"
    assert "of 6 leads that the paper prints, 2 agree; 2 differ (BAGAN (balanced)" in text
    assert text.index("The paper's claims") < text.index("every method")
    alone = lines_of(image_page([row for row in rows if row["seed"] == 0]))
    assert all("cannot tell" in line for name, line in alone.items() if name.startswith("ACSA"))


def test_gamo_of_the_paper_is_the_classifier_that_plays_in_it():
    names = ("ours", "DeepSMOTE", "GAMO", "BAGAN", "DGC")
    rows = [made_up(name, seed, score=70.0 + seed) for name in names for seed in (0, 1)]
    rows += [made_up("one-stage GAMO", seed, score=60.0 + seed) for seed in (0, 1)]
    lines = lines_of(image_page(rows))
    assert "+10.00" in lines["ACSA +1.50 over one-stage GAMO (balanced)"]
    assert "ACSA +1.50 over GAMO (balanced)" not in lines, "the paper has one GAMO"
    page = study_module("oversampling-images", "page")
    found = page._own_acsa([("fashion-mnist", "", pd.DataFrame(rows))])
    assert (found["GAMO"] == 60.5).all()
    assert (found["DGC"] == 70.5).all()


def test_image_page_of_a_grid_that_is_half_done_says_no_more_than_it_has():
    rows = [made_up("ours", seed, score=84.0 + seed) for seed in (0, 1, 2)]
    rows += [made_up("GAMO", seed, score=70.0 + seed) for seed in (0, 1, 2)]
    assert "above every rival" in image_page(rows)
    text = image_page([*rows, made_up("SMOTE", 0, score=70.0)])
    assert "not above SMOTE by more than the interval" in text, "one seed has no interval"
    assert "84.79 (balanced) | 85.00 ± 2.48 | 3 | cannot tell" in text, "a wide interval agrees with nothing"
    even = [made_up("balanced batches", seed, score=84.5 + seed) for seed in (0, 1)]
    assert "Ours less balanced batches alone: -0.50 ± 0.00 points of ACSA (2 seeds)" in image_page(
        [*rows, *even]
    )


def test_own_significance_takes_the_seeds_that_all_methods_have():
    page = study_module("oversampling-images", "page")
    names = ("ours", "DeepSMOTE", "GAMO", "BAGAN", "DGC")
    rows = [made_up(name, 0, score=80.0) for name in names] + [made_up("ours", 1, score=99.0)]
    found = page._own_acsa([("fashion-mnist", "", pd.DataFrame(rows))])
    assert (found == 80.0).all(axis=None)
    assert found.shape == (2, 5)


def test_image_page_compares_within_one_setting():
    """Cells at equal updates and at equal cost stand apart; claims are those of the former."""
    rows = [made_up(method, seed, score=90.0) for method in ("ours", "GAMO") for seed in (0, 1)]
    for method, score in (("ours", 85.0), ("GAMO", 80.0)):
        cells = [made_up(method, seed, score=score + seed / 10 * (method == "ours")) for seed in (0, 1)]
        rows += [
            {**cell, "updates": 940, "budget": np.nan, "imbalanced_macro_f1_data": 77.0} for cell in cells
        ]
    rows = [
        {f"{t}_macro_f1{p}": np.nan for t in ("balanced", "imbalanced") for p in ("_even", "_data")} | r
        for r in rows
    ]
    text = image_page(rows)
    assert "+5.05" in lines_of(text)["ACSA +1.50 over GAMO (balanced)"]
    assert "fashion-mnist, 940 updates each: of 2 leads" in text
    assert "## fashion-mnist: every method, 940 updates each" in text
    assert "## fashion-mnist: every method, equal cost, 700 batches" in text


def test_image_page_of_a_store_with_one_cell():
    assert "Table 2" in image_page([made_up("ours")])
    assert "80.00" in image_page([made_up("GAMO")])


def test_parts_that_the_paper_calls_similar():
    whole = [made_up("ours", seed, 500, 80.0 + seed) for seed in (0, 1, 2)]
    near = [made_up("ours, t = 3", seed, 500, 80.3 + seed + seed / 10) for seed in (0, 1, 2)]
    far = [made_up("ours, t = 4", seed, 500, 75.0 + seed + seed / 10) for seed in (0, 1, 2)]
    rivals = [made_up("GAMO", seed, score=70.0) for seed in (0, 1, 2)]
    text = image_page([*whole, *near, *far, *rivals, made_up("ours", score=80.0)])
    lines = lines_of(text)
    assert "agrees" in lines["ours, t = 3: similar (Fig 3)"]
    assert "differs" in lines["ours, t = 4: similar (Fig 3)"]
    assert "oversampling-mixed-fashion-mnist.svg" in text


def test_image_page_shows_parts_long_runs_and_a_look_inside():
    plane = [[0.0, 1.0], [1.0, 0.0]]
    looks = {"plane": plane, "neighbor_plane": plane, "plane_labels": [0, 9]}
    rows = [
        made_up("SMOTE"),
        made_up("ours"),
        made_up("ours", budget=500),
        made_up("ours, learned mixer", budget=500, score=79.0),
        made_up("ours", budget=9000, score=85.0, **looks),
    ]
    text = image_page(rows)
    assert "57.94" in text, "Table 4"
    assert "-1.00" in text, "a part less the whole at the same budget"
    assert "9,000" in text
    assert "oversampling-latent-fashion-mnist" in text
    assert "principal components and t-SNE" in text


def test_table_page_opens_with_the_papers_claims():
    spec = named_spec("oversampling-tabular")
    score = {"ours": 90.0, "GAMO": 95.0, "DGC": 85.0}
    rows = [
        {"dataset": "isolet", "method": name, "seed": seed, "fit_cpu_seconds": 3.0}
        | dict.fromkeys(spec.metrics, value + seed / 10)
        for name, value in score.items()
        for seed in (0, 1)
    ]
    text = Report("page", spec.page(pd.DataFrame(rows), spec)).to_markdown()
    assert "ACSA +1.94 over GAMO | -5.00 ± 0.00 | 2 | differs" in text
    assert "ACSA +4.72 over DGC | +5.00 ± 0.00 | 2 | agrees" in text
    assert text.index("The paper's claims") < text.index("## isolet")


@pytest.mark.parametrize("method", ["ours", "boosting, weights and threshold"])
def test_table_page_has_every_method(method):
    spec = named_spec("oversampling-tabular")
    row = {"dataset": "isolet", "method": method, "seed": 0, "epochs": 20}
    frame = pd.DataFrame([row | {"acsa": 90.0, "macro_f1": 91.0, "g_mean": 92.0, "fit_cpu_seconds": 3.0}])
    text = Report("page", spec.page(frame, spec)).to_markdown()
    assert method in text
    assert ("95.69" in text) == (method == "ours")


def test_shaffer_from_the_printed_tables_is_not_what_is_printed():
    printed = study_module("oversampling-images", "printed")
    found = printed.shaffer(printed.printed_acsa())
    expected = {"DeepSMOTE": 5.9e-5, "GAMO": 4.9e-3, "DGC": 5.6e-5, "BAGAN": 5.9e-5}
    assert found.to_dict() == pytest.approx(expected, rel=0.02)
    assert all(found[name] > 100 * p for name, p in printed.TABLE_2.items())
    alone = printed.shaffer(printed.printed_acsa().xs(0, level=1))
    assert alone["GAMO"] == pytest.approx(0.108, abs=0.001), (
        "no difference shown on the seven sets of Table 1"
    )
    assert "5.9e-05" in image_page([made_up("ours"), made_up("SMOTE")])


def test_stored_g_means_of_tables_are_those_of_the_two_rates():
    """The two rates follow from ACSA and G-mean; macro F1 must follow from them and the test set's counts."""
    from sklearn.model_selection import train_test_split

    counts = {"optical_digits": (5066, 554), "isolet": (7197, 600), "webpage": (33799, 981)}
    store = Path(__file__).parents[2] / "studies/oversampling-tabular/results.sqlite"
    with sqlite3.connect(f"file:{store}?immutable=1", uri=True) as rows:
        cells = rows.execute("SELECT settings, result FROM cells WHERE status = 'done'").fetchall()
    assert len(cells) == 72
    for settings, result in ((json.loads(a), json.loads(b)) for a, b in cells):
        y = np.repeat([0, 1], counts[settings["dataset"]])
        test = train_test_split(y, test_size=0.25, stratify=y, random_state=settings["seed"])[1]
        a, g = result["acsa"] / 100, result["g_mean"] / 100
        assert g < a, "the mean of two rates that differ is above their geometric mean"
        apart = np.sqrt(a**2 - g**2)
        found = [_macro_f1(a + sign * apart, a - sign * apart, *np.bincount(test)) for sign in (1, -1)]
        assert min(abs(100 * f1 - result["macro_f1"]) for f1 in found) < 1e-6


def _macro_f1(tpr, tnr, negatives, positives):
    wrong = negatives * (1 - tnr) + positives * (1 - tpr)
    hits = np.array([positives * tpr, negatives * tnr])
    return (2 * hits / (2 * hits + wrong)).mean()


def _parts(acsa, seeds=(0, 1, 2)):
    cells = pd.DataFrame(named_spec("oversampling-parts").cells("small", seed=list(seeds)))
    cells["acsa"] = [acsa(cell) for cell in cells.to_dict("records")]
    return cells.assign(macro_f1=1.0, auprc=1.0, within_between=1.08, fit_cpu_seconds=1.0)


def test_parts_page_says_what_does_the_work():
    spec = named_spec("oversampling-parts")
    noise = {0: 0.0, 1: 0.3, 2: -0.3}

    def acsa(cell):
        gain = 10 + noise[cell["seed"]] if cell["batches"] == "balanced" else 0
        return 40 + gain + noise[cell["seed"]] * (cell["mixes"] == "uniform") - 2 * (cell["decoder"] == "sum")

    text = Report("page", spec.page(_parts(acsa), spec)).to_markdown()
    lines = {
        line.split("|")[1].strip(): line
        for line in text.splitlines()
        if line.startswith("|") and " less " in line
    }
    assert "+10.00" in lines["batches: balanced less natural"]
    assert "helps" in lines["batches: balanced less natural"]
    assert "cannot tell" in lines["mixes: uniform less none"]
    assert "harms" in lines["decoder: sum less none"]
    assert (
        "oversampling +19.00 (Table 4) | mixes, in natural batches | +0.00 ± 0.75 | 3 | cannot tell" in text
    )
    assert "mixes and balanced batches | +10.00 ± 1.49 | 3 | agrees" in text
    assert text.index("The paper's claims") < text.index("what does the work")
    alone = Report("page", spec.page(_parts(acsa, seeds=(0,)), spec)).to_markdown()
    assert "helps" not in alone, "one seed has no interval"


def test_made_images_are_judged_and_shown(monkeypatch):
    samples = study_module("oversampling-samples")
    monkeypatch.setattr(samples, "draw_parts", color_images)
    monkeypatch.setattr(samples, "all_images", lambda *_: color_images("", 1)["train"])
    monkeypatch.setattr(samples, "COMPARED", 4)
    monkeypatch.setattr(samples, "NEIGHBORS", 2)
    samples._judge.cache_clear()
    cells = [{"dataset": "cifar10", "method": method, "seed": 0, "budget": 1} for method in samples.METHODS]
    results = pd.DataFrame([cell | samples.run_cell(**cell) for cell in cells])
    samples._judge.cache_clear()
    assert all(len(found) == 2 for found in results["feature_frechet"]), "one value a minority class"
    spec = named_spec("oversampling-samples")
    text = Report("page", spec.page(results, spec)).to_markdown()
    assert "coverage: ours less DeepSMOTE" in text
    assert "2.04" in text, "the paper's density"
    assert "oversampling-samples-cifar10" in text
    more = pd.concat([results, results[results["method"] != "GAMO"].assign(seed=1)])
    half = Report("page", spec.page(more, spec)).to_markdown()
    assert "coverage: ours less GAMO" in half, "seeds that only ours has are left out"
    ours, rival = [[0.6, 0.2], [0.7, 0.3]], [[0.5, 0.0], [0.5, 0.2]]  # apart by 0.15 in both draws
    runs = [("ours", 0, ours[0]), ("ours", 1, ours[1]), ("BAGAN", 0, rival[0]), ("BAGAN", 1, rival[1])]
    drawn = [
        results.iloc[[0]].assign(method=name, seed=seed, feature_coverage=[has]) for name, seed, has in runs
    ]
    told = Report("page", spec.page(pd.concat(drawn), spec)).to_markdown()
    assert "coverage: ours less BAGAN | +0.308 | +0.15 ± 0.00 | agrees" in told, (
        "pairs are seeds, not classes"
    )
    equal = results.assign(feature_coverage=[[0.5, 0.5]] * len(results))
    assert "cannot tell" in Report("page", spec.page(equal, spec)).to_markdown(), "no difference, no verdict"
