"""Studies are found by name, folder or file, and run in other processes too."""

from __future__ import annotations

import doctest
import shutil
from pathlib import Path

import pytest

from equipoise.cli import main
from equipoise.studies import Store, load_spec, named_spec, run_study, spec_names
from equipoise.studies.locate import studies_folder, study_module

SPEC = """
from equipoise.studies import Spec
from ..shared.numbers import double

def run_cell(x):
    from .neighbor import plus_one
    if x == 3:
        raise RuntimeError("three is refused")
    return {"y": plus_one(double(x))}

SPEC = Spec(name="my-study", title="Mine", run_cell=run_cell, grid={"x": [1, 2, 3]})
"""
PAGE = """
from equipoise.report import Section, Text

def page(results, spec):
    return [Section("Mine", [Text(f"The sum of {spec.name} is {results['y'].sum()}.")])]
"""


@pytest.fixture
def studies(tmp_path, monkeypatch):
    monkeypatch.delenv("EQUIPOISE_STUDIES")
    folder = tmp_path / "work" / "studies"
    for name in ("my-study", "shared"):
        (folder / name).mkdir(parents=True)
    (folder / "my-study" / "spec.py").write_text(SPEC)
    (folder / "my-study" / "page.py").write_text(PAGE)
    (folder / "my-study" / "neighbor.py").write_text("def plus_one(x): return x + 1")
    (folder / "shared" / "numbers.py").write_text("def double(x): return 2 * x")
    monkeypatch.chdir(folder.parent)
    return folder


@pytest.mark.parametrize("source", ["my-study", "studies/my-study", "studies/my-study/spec.py"])
def test_by_name_folder_or_file_and_the_results_stay_with_the_study(studies, source, capsys):
    assert main(["bench", "run", source, "--jobs", "2"]) == 1  # one cell fails
    with Store(studies / "my-study" / "results.sqlite", read_only=True) as store:
        assert store.frame("my-study")["y"].tolist() == [3, 5]
        error = list(store.records("my-study"))[2]["error"]
    assert "three is refused" in error
    assert 'File "my-study/spec.py"' in error  # no folder of this machine
    assert main(["bench", "report", source]) == 0
    assert "The sum of my-study is 8." in (studies / "my-study" / "my-study.md").read_text()


def test_the_nearest_folder_and_the_variable(studies, monkeypatch):
    deep = studies.parent / "a" / "b"
    (studies.parent / "a" / "studies").mkdir(parents=True)  # holds no study: passed over
    deep.mkdir()
    monkeypatch.chdir(deep)
    assert studies_folder() == studies
    assert spec_names() == ["my-study", "smoke"]
    monkeypatch.chdir("/")
    monkeypatch.setenv("EQUIPOISE_STUDIES", str(studies))
    assert named_spec("my-study").folder == studies / "my-study"
    monkeypatch.setenv("EQUIPOISE_STUDIES", str(studies / "none"))
    with pytest.raises(FileNotFoundError, match=r"EQUIPOISE_STUDIES must name a folder"):
        spec_names()


def test_a_worker_that_has_its_studies_elsewhere_finds_the_cell_by_name(studies, monkeypatch):
    cell = named_spec("my-study").run_cell
    elsewhere = studies.parent / "elsewhere"
    shutil.move(studies, elsewhere)
    monkeypatch.setenv("EQUIPOISE_STUDIES", str(elsewhere))
    assert cell(x=4) == {"y": 9}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def broken(:", r"spec.py cannot be loaded: SyntaxError"),
        (
            "import no_such_module",
            r"spec.py cannot be loaded: ModuleNotFoundError: .*no_such_module",
        ),
        ("SPEC = 3", r"must define SPEC = Spec\(name='my-study'"),
        (SPEC.replace('"my-study"', '"other"'), r"must define SPEC = Spec\(name='my-study'"),
    ],
)
def test_a_study_that_cannot_be_loaded_is_one_sentence(studies, text, says):
    (studies / "my-study" / "spec.py").write_text(text)
    with pytest.raises(ValueError, match=says):
        named_spec("my-study")


def test_paths_where_nothing_is(studies):
    for path in ("studies/none", "none/spec.py", "my-study/none.py"):
        with pytest.raises(FileNotFoundError, match=r"no such study"):
            load_spec(path)
    with pytest.raises(ValueError, match=r"no study is named 'none'; there are my-study, smoke"):
        load_spec("none")


def test_without_a_source_tree_there_is_smoke_and_its_store_is_here(tmp_path, monkeypatch):
    monkeypatch.delenv("EQUIPOISE_STUDIES")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("equipoise.studies.locate.__file__", str(tmp_path / "a" / "b" / "c" / "locate.py"))
    assert spec_names() == ["smoke"]
    assert named_spec("smoke").default_store() == Path("smoke.sqlite")
    assert named_spec("smoke").default_store("paper") == Path("smoke-paper.sqlite")


def test_a_study_in_a_file_runs_on_a_cluster(studies):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as cluster:
        counts = run_study(
            named_spec("my-study"), studies.parent / "s.sqlite", engine=cluster.scheduler_address
        )
    assert (counts.done, counts.failed) == (2, 1)


FILES = sorted((Path(__file__).parents[2] / "studies").glob("*/*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_examples_in_the_files_of_the_studies_are_right(path):
    assert doctest.testmod(study_module(path.parent.name, path.stem)).failed == 0
