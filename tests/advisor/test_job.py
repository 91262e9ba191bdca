"""The main job end to end on small data: report, model folder, predict and retune."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pandas as pd
import pytest

from equipoise.advisor._old_treatments import Task, all_treatments
from equipoise.advisor.compare.folds import fit_candidate
from equipoise.advisor.compare.verdict import difference, judge
from equipoise.advisor.job.model import load_model, without_samplers
from equipoise.advisor.job.operating import choose
from equipoise.advisor.job.wishes import parse_cost, parse_duration, parse_prior
from equipoise.cli import main

EVIL = "<script>alert(1)</script>"


def table(n: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.2
    frame = pd.DataFrame(
        {
            "age": rng.normal(40 + 15 * ill, 10),
            EVIL: rng.normal(ill, 1),
            "town": np.where(rng.random(n) < 0.5 + 0.3 * ill, "Ulm", "Bonn"),
            "street": [f"street {i}" for i in rng.integers(0, 40, n)],
            "seen": pd.date_range("2020-01-01", periods=n).astype(str),
            "health": np.where(ill, EVIL, "well"),
        }
    )
    frame.loc[::17, "age"] = np.nan
    return frame


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    table().to_csv(folder / "data.csv", index=False)
    command = [
        "report", str(folder / "data.csv"), "--target", "health", "--treatments", "plain,threshold",
        "--repeats", "1", "--jobs", "1", "--out", str(folder / "out"), "--budget", "10m",
    ]  # fmt: skip
    assert main(command) == 0
    return folder


def test_the_report_is_whole(out):
    names = sorted(p.name for p in (out / "out").iterdir())
    assert names == ["model", "report.html", "report.json", "report.md"]
    content = json.loads((out / "out" / "report.json").read_text())
    assert content["data"]["recommended"] in ("plain", "threshold")
    assert {d["treatment"] for d in content["data"]["summary"]} == {"plain", "threshold"}
    page = (out / "out" / "report.html").read_text()
    assert EVIL not in page
    assert "&lt;script&gt;alert(1)" in page


def test_the_model_folder_records_what_it_needs(out):
    saved = json.loads((out / "out" / "model" / "model.json").read_text())
    assert {"age", EVIL, "town", "street", "seen"} == {c["name"] for c in saved["columns"]}
    assert saved["classes"] == ["well", EVIL]
    assert 0 < saved["threshold"] < 1
    assert sum(saved["prior"]) == pytest.approx(1)
    assert len(saved["info"]["fingerprint"]) == 24
    assert {"equipoise", "numpy", "scikit-learn", "python"} <= set(saved["versions"])
    for path in (out / "out" / "model").iterdir():
        assert path.read_bytes()[:2] != b"\x80\x04"  # a pickle's first bytes
    with zipfile.ZipFile(out / "out" / "model" / "pipeline.skops") as archive:
        assert not any(name.endswith((".pkl", ".pickle")) for name in archive.namelist())


def test_predict_agrees_with_the_loaded_model(out, capsys):
    new = table(30, seed=1).drop(columns="health")
    new.assign(note="x").to_csv(out / "new.csv", index=False)
    assert (
        main(["predict", str(out / "out" / "model"), str(out / "new.csv"), "--out", str(out / "p.csv")]) == 0
    )
    assert "does not use: 'note'" in capsys.readouterr().err
    written = pd.read_csv(out / "p.csv")
    model = load_model(out / "out" / "model")
    assert written["prediction"].tolist() == model.predict(new).tolist()
    proba = written[[f"probability of {c}" for c in model.classes]].to_numpy()
    assert proba.sum(axis=1) == pytest.approx(1)
    assert proba == pytest.approx(model.predict_proba(new))


def test_predict_refuses_what_does_not_fit(out, capsys):
    new = table(5, seed=1)
    new.drop(columns=["age", "town"]).to_csv(out / "lacks.csv", index=False)
    assert main(["predict", str(out / "out" / "model"), str(out / "lacks.csv")]) == 2
    assert "it lacks the columns 'age', 'town'" in capsys.readouterr().err
    new.assign(age="old").to_csv(out / "text.csv", index=False)
    assert main(["predict", str(out / "out" / "model"), str(out / "text.csv")]) == 2
    assert "column 'age' must hold numbers, got 'old'" in capsys.readouterr().err


def test_retune_moves_the_threshold_and_nothing_else(out, capsys):
    before = load_model(out / "out" / "model")
    assert main(["retune", str(out / "out" / "model"), "--recall", "0.95", "--out", str(out / "m")]) == 0
    after = load_model(out / "m")
    called = after.held_out[:, 1] >= after.threshold - 1e-12
    assert called[after.truth == 1].mean() >= 0.95
    new = table(20, seed=2)
    assert after.predict_proba(new) == pytest.approx(before.predict_proba(new))
    assert main(["retune", str(out / "out" / "model"), "--prior", "0.01", "--out", str(out / "m")]) == 0
    rare = load_model(out / "m")
    assert rare.predict_proba(new)[:, 1].mean() < before.predict_proba(new)[:, 1].mean()
    assert main(["retune", str(out / "out" / "model")]) == 2
    assert "say what to tune to" in capsys.readouterr().err
    assert main(["retune", str(out / "out" / "model"), "--prior", "2"]) == 2
    assert main(["retune", str(out / "none"), "--recall", "0.5"]) == 2
    assert "is not a model folder" in capsys.readouterr().err


def test_a_damaged_model_is_named(out, tmp_path):
    import shutil

    copy = tmp_path / "model"
    shutil.copytree(out / "out" / "model", copy)
    (copy / "pipeline.skops").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(ValueError, match=r"pipeline\.skops is not readable"):
        load_model(copy)
    (copy / "model.json").write_text('{"format": 99}')
    with pytest.raises(ValueError, match="has format 99"):
        load_model(copy)


def test_an_unknown_type_is_refused(out, tmp_path):
    import shutil

    import skops.io
    from sklearn.preprocessing import FunctionTransformer

    copy = tmp_path / "model"
    shutil.copytree(out / "out" / "model", copy)
    import os

    skops.io.dump(FunctionTransformer(os.system), copy / "pipeline.skops")
    with pytest.raises(ValueError, match="not known to be safe"):
        load_model(copy)


@pytest.mark.parametrize("name", sorted(all_treatments()))
def test_every_treatment_survives_the_folder(name, tmp_path):
    from equipoise.advisor.job.model import _load_pipeline, _save_pipeline

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), np.repeat([0, 1], [60, 20])
    task = Task(X, y, ("no", "yes"))
    treatment = all_treatments()[name]
    fitted = fit_candidate(treatment, task, 0, np.arange(80), 0)
    saved = _save_pipeline(without_samplers(fitted), tmp_path)
    loaded = _load_pipeline(tmp_path, saved)
    assert np.allclose(loaded.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.assign(health="well"), "has only one class, 'well'"),
        (lambda f: f.assign(health=np.linspace(0, 1, len(f))), "as in a regression"),
        (lambda f: f.assign(health=["a", *["b"] * (len(f) - 1)]), r"too few rows of 'a' \(1\)"),
    ],
)
def test_bad_targets_end_in_a_sentence_and_write_nothing(tmp_path, capsys, change, message):
    import re

    change(table()).to_csv(tmp_path / "data.csv", index=False)
    out = tmp_path / "out"
    assert (
        main(["report", str(tmp_path / "data.csv"), "--target", "health", "--out", str(out), "--jobs", "1"])
        == 2
    )
    error = capsys.readouterr().err
    assert re.search(message, error), error
    assert "Traceback" not in error
    assert not out.exists()


def test_costs_need_two_answers(tmp_path, capsys):
    table().assign(health=np.arange(200) % 3).to_csv(tmp_path / "data.csv", index=False)
    command = ["report", str(tmp_path / "data.csv"), "--target", "health", "--cost", "fp=1,fn=5"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 2
    assert "name the one to find with --positive" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "5x", "-3m", "0s"])
def test_bad_durations(text):
    with pytest.raises(ValueError, match="budget must be a time"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["fp=1", "fp=1,fn=0", "fp=1,fn=2,x=3", "1,20"])
def test_bad_costs(text):
    with pytest.raises(ValueError, match="cost must look like"):
        parse_cost(text)


def test_bad_priors():
    assert parse_prior("0.2,0.3,0.5", 3) == [0.2, 0.3, 0.5]
    for text in ("x", "1.5", "0.2,0.2"):
        with pytest.raises(ValueError, match="prior must"):
            parse_prior(text, 2)


def test_the_cheapest_threshold_follows_bayes():
    """Calibrated probabilities: the threshold of least cost is fp/(fp + fn)."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 2, 20_000)
    y = (rng.random(20_000) < p).astype(int)
    prior = np.array([1 - y.mean(), y.mean()])
    proba = np.column_stack([1 - p, p])
    weights, _, _ = choose(proba, y, prior, cost=(1.0, 4.0))
    assert weights[0] == pytest.approx(0.2, abs=0.05)
    moved, used, _ = choose(proba, y, prior, cost=(1.0, 4.0), prior=np.array([0.99, 0.01]))
    assert moved[0] == pytest.approx(0.2, abs=0.08)  # of the corrected probabilities: the rule is the same
    assert used.tolist() == [0.99, 0.01]


def test_the_posterior_agrees_with_baycomp():
    baycomp = pytest.importorskip("baycomp")
    rng = np.random.default_rng(0)
    a = rng.normal(0.8, 0.03, 10)
    b = a - rng.normal(0.01, 0.02, 10)
    *_, better, equal, worse = difference(a, b, 0.2)
    left, rope, right = baycomp.CorrelatedTTest(a, b, 0.01, runs=2).probs()
    assert (better, equal, worse) == pytest.approx((left, rope, right), abs=1e-6)


def scores(**means: float) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 0.03, 10)
    rows = []
    for name, mean in means.items():
        own = rng.normal(0, 0.002, 10)
        rows += [
            {"treatment": name, "fold": i, "balanced_accuracy": mean + noise[i] + own[i],
             "average_precision": mean + noise[i] + own[i]}
            for i in range(10)
        ]  # fmt: skip
    return pd.DataFrame(rows)


def test_the_simplest_as_good_is_recommended():
    metrics = ("balanced_accuracy", "average_precision")
    order = ["plain", "weights_threshold", "blend"]
    near = judge(scores(plain=0.6, weights_threshold=0.8, blend=0.803), order, 0.2, metrics)
    assert near.recommended == "weights_threshold"
    far = judge(scores(plain=0.6, weights_threshold=0.8, blend=0.9), order, 0.2, metrics)
    assert far.recommended == "blend"
    assert far.against("plain", "balanced_accuracy").better > 0.99
    alone = judge(scores(plain=0.6), ["plain"], 0.2, metrics)
    assert alone.recommended == "plain"


@pytest.mark.slow
def test_a_report_killed_with_9_goes_on_where_it_was(tmp_path):
    import os
    import signal
    import subprocess
    import sys
    import time

    table(300).to_csv(tmp_path / "data.csv", index=False)
    out = tmp_path / "out"
    command = [
        sys.executable, "-m", "equipoise", "report", str(tmp_path / "data.csv"), "--target", "health",
        "--out", str(out),
        "--treatments", "plain,threshold", "--repeats", "1", "--jobs", "1", "--budget", "20m",
    ]  # fmt: skip
    run = subprocess.Popen(command)
    while len(list(out.glob(".unfinished/*.npz"))) < 3:
        assert run.poll() is None
        time.sleep(0.1)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    kept = {path: path.stat().st_mtime_ns for path in out.glob(".unfinished/*.npz")}
    assert not (out / "report.html").exists()
    again = subprocess.Popen(command)
    while again.poll() is None:
        for path, written in kept.items():
            assert not path.exists() or path.stat().st_mtime_ns == written  # never computed again
        time.sleep(0.1)
    assert again.returncode == 0
    assert sorted(p.name for p in out.iterdir()) == ["model", "report.html", "report.json", "report.md"]
