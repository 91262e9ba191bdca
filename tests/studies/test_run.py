"""A run: every cell once, in the store, whatever happens on the way."""

from __future__ import annotations

import json
import re

import pytest

import study_cells
from equipoise.cli import main
from equipoise.studies import Spec, Store, StoreError, named_spec, run_study


def study(function, n=6, **more):
    return Spec(name="study", title="A study", run_cell=function, grid={"index": list(range(n)), **more})


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_cell_is_stored_with_what_was_measured(tmp_path, jobs):
    counts = run_study(study(study_cells.draw, seed=[0, 1]), tmp_path / "s.sqlite", jobs=jobs)
    assert (counts.done, counts.failed, counts.left) == (12, 0, 0)
    with Store(tmp_path / "s.sqlite", read_only=True) as store:
        records = list(store.records("study"))
        frame = store.frame("study")
    assert [record["settings"]["index"] for record in records] == [i for i in range(6) for _ in (0, 1)]
    assert all(record["seconds"] >= 0 and record["peak_memory_mb"] > 1 for record in records)
    assert all("numpy" in record["versions"] for record in records)
    assert frame["mean"].tolist() == [study_cells.draw(i, s)["mean"] for i in range(6) for s in (0, 1)]
    assert len(frame["curve"][0]) == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.sqlite"]  # no WAL left behind


def test_a_failure_is_recorded_and_the_rest_goes_on(tmp_path):
    counts = run_study(study(study_cells.odd_fails), tmp_path / "s.sqlite", jobs=1)
    assert (counts.done, counts.failed) == (3, 3)
    with Store(tmp_path / "s.sqlite") as store:
        failed = [record for record in store.records("study") if record["status"] == "failed"]
    assert all("RuntimeError" in record["error"] and "odd_fails" in record["error"] for record in failed)
    assert all('File "study_cells.py"' in record["error"] for record in failed)  # no folders of this machine


def test_a_lost_worker_costs_only_the_cell_that_killed_it(tmp_path):
    counts = run_study(study(study_cells.third_dies, n=8), tmp_path / "s.sqlite", jobs=2)
    assert (counts.done, counts.failed) == (7, 1)
    with Store(tmp_path / "s.sqlite") as store:
        (failed,) = store.frame("study", status="failed")["index"]
        assert failed == 3


def test_a_store_with_results_wants_resume(tmp_path):
    spec = study(study_cells.draw)
    run_study(spec, tmp_path / "s.sqlite", jobs=1)
    with pytest.raises(StoreError, match=r"holds 6 of 6 cells.*--resume"):
        run_study(spec, tmp_path / "s.sqlite", jobs=1)
    assert run_study(spec, tmp_path / "s.sqlite", jobs=1, resume=True).done == 6


def test_only_the_chosen_cells_are_checked(tmp_path):
    def check(cells):
        if any(cell["index"] == 1 for cell in cells):
            raise ValueError("the data of cell 1 is not here")

    spec = Spec(name="study", title="A study", run_cell=study_cells.draw, grid={"index": [0, 1]}, check=check)
    with pytest.raises(ValueError, match=r"data of cell 1"):
        run_study(spec, tmp_path / "s.sqlite", jobs=1)
    assert run_study(spec, tmp_path / "s.sqlite", jobs=1, only={"index": ["0"]}).done == 1


def test_a_dry_run_tells_the_cells_and_the_time_and_runs_nothing(tmp_path, capsys):
    path = tmp_path / "smoke.sqlite"
    command = ["bench", "run", "smoke", "--size", "tiny", "--store", str(path), "--only", "fold=0"]
    assert main([*command, "--dry-run"]) == 0
    assert "cells to run, an unknown time" in capsys.readouterr().out
    assert not path.exists()
    assert main([*command, "--only", "method=plain", "--jobs", "1"]) == 0
    before = path.read_bytes()
    capsys.readouterr()
    assert main([*command, "--only", "method=plain,smote", "--dry-run"]) == 0
    first, last = capsys.readouterr().out.strip().splitlines()
    assert '"method":"smote"' in first
    assert re.fullmatch(r"smoke: 1 cells to run, about \d+:\d\d:\d\d, one after another", last)
    assert path.read_bytes() == before


def test_the_conditional_study_asks_only_for_the_data_of_its_cells():
    spec = named_spec("conditional")
    assert spec.requires_data(spec.cells(only={"dataset": ["ecoli"]})) == ["ecoli"]
    assert {"cifar10", "pneumoniamnist", "fashion-mnist"} < set(spec.requires_data(spec.cells()))


@pytest.mark.parametrize("study", ["oversampling-parts", "oversampling-images"])
def test_a_setting_can_have_another_value_than_the_studys_own(study, capsys):
    """Whether the study crosses axes or plans its cells one by one."""
    command = ["bench", "run", study, "--dry-run", "--set", "dataset=svhn", "--set", "seed=7"]
    assert main(command) == 0
    *cells, _ = capsys.readouterr().out.splitlines()
    settings = [json.loads(cell) for cell in cells]
    assert {(cell["dataset"], cell["seed"]) for cell in settings} == {("svhn", 7)}
    assert len(set(cells)) == len(cells), "each once"
    assert main([*command, "--set", "colour=red"]) == 2
    assert "no setting is named 'colour'; there are" in capsys.readouterr().err


def test_data_that_is_not_there_names_the_file_to_bring(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EQUIPOISE_DATA", str(tmp_path))
    store = str(tmp_path / "s.sqlite")
    assert main(["bench", "run", "oversampling-parts", "--store", store, "--set", "dataset=svhn"]) == 2
    assert "looked for test_32x32.mat" in capsys.readouterr().err
