"""What is wrong is said in one sentence before anything runs, and nothing is lost."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from dataclasses import replace

import pytest

import study_cells
from equipoise.cli import main
from equipoise.cli.bench import _selection
from equipoise.studies import Spec, Store, StoreError, load_spec, run_study, spec_names
from equipoise.studies.engines import make_engine
from equipoise.studies.grid import expand, to_jsonable

SPEC = Spec(name="study", title="A study", run_cell=study_cells.draw, grid={"index": [0, 1]})
TOML = """
methods = ["plain", "smote"]
datasets = ["breast_cancer"]
metrics = ["balanced_accuracy"]
folds = 2
"""


def one_sentence(capsys) -> str:
    text = capsys.readouterr().err.strip()
    assert "\n" not in text
    assert text.startswith("equipoise bench: ")
    return text


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        ('"smote"', '"smoth"', r"must be one of .*'smote'.*got 'smoth'"),
        ('"breast_cancer"', '"breast"', r"must be one of .*'breast_cancer'.*got 'breast'"),
        ('"balanced_accuracy"', '"acuracy"', r"must be one of .*'balanced_accuracy'.*got 'acuracy'"),
        ('"breast_cancer"', '"ecoli"', r"ecoli.*EQUIPOISE_DATA"),
        ("folds = 2", "folds = 1", r"folds must be at least 2, got 1"),
        ("folds = 2", "fold = 2", r"unknown 'fold'; there are .*'folds'"),
        ("folds = 2", "learners = []", r"learners must be a list that is not empty"),
        ("folds = 2", 'learners = ["logit"]', r"learner must be one of .*'logistic'.*got 'logit'"),
        ("folds = 2", "seeds = 3", r"seeds must be a list that is not empty, got 3"),
        ("folds = 2", "[parameters]\nk = [1]", r"parameter must be one of .*'k_neighbors', got 'k'"),
        ("folds = 2", "[small]\nmetods = [1]", r"unknown 'metods'"),
        ("folds = 2", "folds = ", r"not readable TOML"),
        ('methods = ["plain", "smote"]', "", r"methods must be given"),
        ('datasets = ["breast_cancer"]', 'datasets = ["wine"]\nlearners = ["forest"]', None),
        (
            '"plain", "smote"]\ndatasets = ["breast_cancer"]',
            '"threshold"]\ndatasets = ["wine"]',
            r"'threshold' takes two classes, 'wine' has more",
        ),
    ],
)
def test_a_spec_that_names_what_is_not_there(tmp_path, monkeypatch, capsys, was, now, says):
    monkeypatch.setenv("EQUIPOISE_DATA", str(tmp_path / "nothing"))
    assert was in TOML
    (tmp_path / "my.toml").write_text(TOML.replace(was, now))
    if says is None:
        assert load_spec(tmp_path / "my.toml").cells()
        return
    assert main(["bench", "run", str(tmp_path / "my.toml"), "--store", str(tmp_path / "s.sqlite")]) == 2
    assert re.search(says, one_sentence(capsys))
    assert not (tmp_path / "s.sqlite").exists()


def test_an_unknown_study_is_answered_with_the_list(capsys):
    assert main(["bench", "run", "smokes"]) == 2
    assert re.search(r"no study is named 'smokes'; there are .*smoke", one_sentence(capsys))


def test_an_unknown_size_and_an_unknown_selection(tmp_path):
    with pytest.raises(ValueError, match=r"size must be one of 'small', 'paper', got 'big'"):
        run_study(SPEC, tmp_path / "s.sqlite", size="big")
    with pytest.raises(ValueError, match=r"no setting is named 'seed'; there are index"):
        run_study(SPEC, tmp_path / "s.sqlite", only={"seed": ["1"]})
    with pytest.raises(ValueError, match=r"index: unknown '7'; there are 0, 1"):
        run_study(SPEC, tmp_path / "s.sqlite", only={"index": ["7"]})
    with pytest.raises(ValueError, match=r"--only must be SETTING=VALUE"):
        _selection(["index"])
    assert _selection(['method="ours, t = 3",plain', "seed=0", "seed=1"]) == {
        "method": ["ours, t = 3", "plain"],
        "seed": ["0", "1"],
    }
    assert not list(tmp_path.iterdir())


def test_data_that_a_study_needs_is_looked_for_first(tmp_path, monkeypatch):
    monkeypatch.setenv("EQUIPOISE_DATA", str(tmp_path / "nothing"))
    for name, says in [
        ("mnist", "mnist was not found under"),
        ("ecoli", "data of ecoli is not under"),
        ("moon", "required data must be one of 'mnist'.*got 'moon'"),
    ]:
        for needed in ([name], lambda cells, name=name: [name] * len(cells)):
            with pytest.raises((ValueError, OSError), match=says):
                run_study(replace(SPEC, requires_data=needed), tmp_path / "s.sqlite", jobs=1)
    assert run_study(replace(SPEC, requires_data=["digits"]), tmp_path / "s.sqlite", jobs=1).done == 2


def test_the_list_names_every_study_even_without_data(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EQUIPOISE_DATA", str(tmp_path / "nothing"))
    assert main(["bench", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(f"{name} " in shown for name in spec_names())
    assert "smoke" in shown


def test_a_store_of_another_version_is_left_alone(tmp_path):
    path = tmp_path / "s.sqlite"
    Store(path).close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version=7")
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"has version 7 and this Equipoise reads version 1"):
        run_study(SPEC, path, jobs=1)
    assert path.read_bytes() == before


def test_a_database_of_somebody_else_is_left_alone(tmp_path):
    path = tmp_path / "s.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE accounts (id)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"no store of Equipoise"):
        run_study(SPEC, path, jobs=1)
    assert path.read_bytes() == before


def test_a_corrupt_store_is_one_sentence_and_left_as_it_is(tmp_path, capsys):
    path = tmp_path / "s.sqlite"
    run_study(SPEC, path, jobs=1)
    whole = path.read_bytes()
    capsys.readouterr()
    for damaged in (b"not a database at all" * 300, whole[: len(whole) // 2], whole[:100] + b"\xff" * 8000):
        path.write_bytes(damaged)
        assert main(["bench", "run", "smoke", "--store", str(path), "--jobs", "1", "--resume"]) == 2
        assert "cannot be used" in one_sentence(capsys)
        assert path.read_bytes() == damaged


def test_a_damaged_schema_that_is_no_text_is_one_sentence(tmp_path):
    path = tmp_path / "s.sqlite"
    run_study(SPEC, path, jobs=1)
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE cells", b"CREATE TABL\xfb cells"))
    with (
        pytest.raises(StoreError, match=r"s\.sqlite cannot be used: it is damaged"),
        Store(path, read_only=True),
    ):
        pass


def test_a_locked_store_is_one_sentence_and_nothing_is_lost(tmp_path):
    path = tmp_path / "s.sqlite"
    run_study(SPEC, path, jobs=1)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match=r"another program holds its lock"), Store(path, timeout=0.1):
            pass
        other.execute("ROLLBACK")
    with Store(path) as store:
        assert len(store.frame("study")) == 2


def test_a_folder_or_nothing_in_place_of_a_store(tmp_path):
    with pytest.raises(StoreError, match=r"is a folder"):
        Store(tmp_path)
    with pytest.raises(StoreError, match=r"there is no store at"):
        Store(tmp_path / "none.sqlite", read_only=True)


def test_engines_that_do_not_exist(tmp_path, capsys):
    with pytest.raises(ValueError, match=r"engine must be 'local' or the address .* got 'spark'"):
        make_engine("spark")
    with pytest.raises(ValueError, match=r"jobs must be at least 1, got 0"):
        make_engine("local", jobs=0)


def test_results_that_cannot_be_stored_fail_their_cell(tmp_path):
    for function, says in [
        (lambda index: {"index": 1}, "must not be named like settings"),
        (lambda index: {"model": object()}, "must be JSON-able"),
        (lambda index: [1], "must return a dict"),
    ]:
        path = tmp_path / f"{says[:12]}.sqlite"
        spec = Spec(name="study", title="A study", run_cell=function, grid={"index": [0]})
        assert run_study(spec, path, jobs=1).failed == 1
        with Store(path) as store:
            assert says in next(store.records("study"))["error"]


def test_settings_must_be_json_able():
    with pytest.raises(TypeError, match=r"must be JSON-able, got object"):
        to_jsonable({"a": object()})
    with pytest.raises(ValueError, match=r"axis 'seed' must not be empty"):
        expand({"seed": []})
    with pytest.raises(ValueError, match=r"name must be letters"):
        Spec(name="a/b", title="", run_cell=dict, grid={})
