"""The command end to end on a small table: report, predict and retune."""

from __future__ import annotations

import functools
import json
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import equipoise
from equipoise.advisor import Advisor
from equipoise.cli import main

EVIL = "<script>alert(1)</script>"


def table(n: int = 240, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.2
    frame = pd.DataFrame(
        {
            "case": [f"case {i}" for i in range(n)],
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


def report(folder, *more: str) -> int:
    """With a number of trials and all the time in the world: a busy machine leaves out no treatment."""
    command = ["report", str(folder / "data.csv"), "--target", "health", "--treatments", "lightgbm,logistic"]
    command += ["--jobs", "1", "--id", "case", "--out", str(folder / "out"), "--budget", "5m", *more]
    with mock.patch.object(equipoise.advisor, "Advisor", functools.partial(Advisor, trials=3)):
        return main(command)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    table().to_csv(folder / "data.csv", index=False)
    assert report(folder) == 0
    return folder


def test_the_report_is_whole(out):
    assert sorted(p.name for p in (out / "out").iterdir()) == [
        "model",
        "report.html",
        "report.json",
        "report.md",
    ]
    content = json.loads((out / "out" / "report.json").read_text())["data"]
    names = {row["name"].partition("#")[0] for row in content["leaderboard"]}
    assert {"lightgbm", "logistic", "always-positive", "never-positive"} <= names
    assert content["counts"].keys() == {"well", EVIL}
    page = (out / "out" / "report.html").read_text()
    assert EVIL not in page
    assert "&lt;script&gt;alert(1)" in page
    assert len(page) < 2_000_000
    assert "??" not in (out / "out" / "report.md").read_text()


def test_a_budget_shorter_than_the_start_leaves_a_report_that_says_so(tmp_path, capsys):
    table(200).to_csv(tmp_path / "small.csv", index=False)
    out = tmp_path / "out"
    given = [str(tmp_path / "small.csv"), "--target", "health", "--budget", "0.01s", "--jobs", "1"]
    assert main(["report", *given, "--out", str(out)]) == 0
    assert "s of " in capsys.readouterr().err  # piped, and yet a line says what is being done
    assert "The budget of 0.01 s left hardly any time for a search" in (out / "report.html").read_text()
    assert equipoise.load(out / "model").predict(table(5).drop(columns="health")).shape == (5,)


def test_predictions_carry_the_id(out, capsys):
    new = table(30, seed=1).drop(columns="health").sample(frac=1, random_state=0)
    new.to_csv(out / "new.csv", index=False)
    assert (
        main(["predict", str(out / "out" / "model"), str(out / "new.csv"), "--out", str(out / "p.csv")]) == 0
    )
    made = pd.read_csv(out / "p.csv")
    assert made["case"].tolist() == new["case"].tolist()
    model = equipoise.load(out / "out" / "model")
    np.testing.assert_allclose(
        made[f"probability of {EVIL}"], model.predict_proba(new)[:, list(model.classes_).index(EVIL)]
    )
    assert made["prediction"].tolist() == model.predict(new).tolist()


def test_a_dash_is_the_standard_output(out, capfdbinary, monkeypatch):
    monkeypatch.chdir(out)
    given = ["predict", str(out / "out" / "model"), str(out / "new.csv")]
    for more in ([], ["--out", "-"]):
        assert main([*given, *more]) == 0
        assert capfdbinary.readouterr().out.startswith(b"case,prediction,")
    assert not (out / "-").exists()


def test_predict_refuses_what_does_not_fit(out, capsys):
    table(5).drop(columns=["age", "health"]).to_csv(out / "short.csv", index=False)
    assert main(["predict", str(out / "out" / "model"), str(out / "short.csv")]) == 2
    assert "it lacks the column 'age'" in capsys.readouterr().err
    assert main(["predict", str(out / "out" / "model"), str(out / "data.csv"), "--id", "cases"]) == 2
    assert "there is no column 'cases'; there are 'case', 'age'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--treatments", "lightgmb"], "unknown 'lightgmb'"),
        (["--prior", "0.5,0.3,0.2"], "prior must be 2 shares, got 3"),
        (["--cost", "0,1,2;1,0,1;1,1,0"], "got (3, 3)"),
    ],
)
def test_what_cannot_be_followed_is_refused_before_time_is_spent(out, capsys, option, said, monkeypatch):
    monkeypatch.setattr("equipoise.advisor.writing.diagnose", mock.Mock(side_effect=AssertionError))
    assert report(out, *option) == 2
    assert said in capsys.readouterr().err


def test_retune_writes_beside_the_model_unless_told_otherwise(out, capsys):
    model = out / "out" / "model"
    before = equipoise.load(model).decision_.threshold
    assert main(["retune", str(model), "--cost", "fp=1,fn=30", "--prior", "0.3"]) == 0
    said = capsys.readouterr().out
    assert "cost" in said
    assert "a miss 30" in said
    assert equipoise.load(model).decision_.threshold == before
    tuned = equipoise.load(out / "out" / "model-retuned")
    assert tuned.decision_.threshold == pytest.approx(1 / 31)
    np.testing.assert_allclose(tuned.decision_.prior, [0.7, 0.3])
    assert main(["retune", str(model), "--recall", "90"]) == 2
    assert "write 0.9 for 90%" in capsys.readouterr().err
    assert main(["retune", str(model)]) == 2


def test_a_wish_that_cannot_be_met_still_leaves_a_report(tmp_path, capsys):
    table(120).to_csv(tmp_path / "data.csv", index=False)
    assert report(tmp_path, "--precision", "0.99") == 2
    assert "the most that can be is" in capsys.readouterr().err
    assert (tmp_path / "out" / "report.html").is_file()
    assert "The wish cannot be met" in (tmp_path / "out" / "report.md").read_text()
    equipoise.load(tmp_path / "out" / "model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.assign(health="well"), "only one class"),
        (lambda f: f.assign(health=np.linspace(0.0, 1, len(f)) + 0.001), "as in a regression"),
        (lambda f: f.drop(columns="health"), "no column 'health'"),
    ],
)
def test_bad_targets_end_in_a_sentence_and_write_nothing(tmp_path, capsys, change, message):
    change(table(60)).to_csv(tmp_path / "data.csv", index=False)
    assert report(tmp_path) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize("cost", ["fp=1", "1", "fp=1,fn=", "fp=1,fn=2,fx=3", "a,b"])
def test_bad_costs(tmp_path, capsys, cost):
    table(60).to_csv(tmp_path / "data.csv", index=False)
    assert report(tmp_path, "--cost", cost) == 2
    assert "cost" in capsys.readouterr().err


def test_costs_and_priors_of_the_command_follow_the_names(out, capsys):
    """A table in another order, names with a cost each, and numbers over the sorted classes are one decision."""
    model = equipoise.load(out / "out" / "model")
    low, high = model.classes_.tolist()
    assert {low, high} == {"well", EVIL}
    costs = {"well": 3.0, EVIL: 40.0}
    pd.DataFrame({"true": [high, low], low: [costs[high], 0], high: [0, costs[low]]}).to_csv(
        out / "costs.csv", index=False
    )
    ways = (
        f"well=3,{EVIL}=40", str(out / "costs.csv"), f"0,{costs[low]};{costs[high]},0", "fp=3,fn=40",
    )  # fmt: skip
    for way in ways:
        args = ["retune", str(out / "out" / "model"), "--cost", way, "--prior", f"{EVIL}=0.3"]
        assert main([*args, "--out", str(out / "named"), "--json"]) == 0
        made = json.loads(capsys.readouterr().out)
        assert made["threshold"] == pytest.approx(3 / 43)
        assert dict(zip(made["classes"], made["prior"], strict=True)) == pytest.approx(
            {"well": 0.7, EVIL: 0.3}
        )
    (out / "costs.csv").write_text(f"true,{low},{high}\n{low},0,1\n{low},1,0\n")
    assert main(["retune", str(out / "out" / "model"), "--cost", str(out / "costs.csv")]) == 2
    assert "one row for each true label" in capsys.readouterr().err


def test_predictions_and_a_new_decision_as_json(out, capsys):
    model = out / "out" / "model"
    table(12, seed=1).drop(columns="health").to_csv(out / "few.csv", index=False)
    assert main(["predict", str(model), str(out / "few.csv"), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)["predictions"]
    assert [row["case"] for row in made] == [f"case {i}" for i in range(12)]
    assert all(row["probability of well"] + row[f"probability of {EVIL}"] == pytest.approx(1) for row in made)
    assert main(["retune", str(model), "--cost", "fp=1,fn=30", "--out", str(out / "json"), "--json"]) == 0
    said = capsys.readouterr()
    tuned = json.loads(said.out)
    assert tuned["threshold"] == equipoise.load(out / "json").decision_.threshold
    assert tuned["figures"].keys() >= {"recall", "precision", "cost"}
    assert "Wrote" in said.err


def test_the_report_as_json_is_that_of_its_file(out, tmp_path, capsys):
    (tmp_path / "data.csv").write_bytes((out / "data.csv").read_bytes())
    assert report(tmp_path, "--json", "--quiet") == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    written = json.loads((tmp_path / "out" / "report.json").read_text())["data"]
    assert {key: found[key] for key in written} == written
    assert found["files"]["model"] == str(tmp_path / "out" / "model")
    assert said.err == ""
