"""A store from a stranger or a broken disk: one sentence that names the file, and nothing outside the folder."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest

import study_cells
from equipoise.cli import main
from equipoise.studies import Spec, Store, StoreError, run_study
from equipoise.studies.pages import write_pages

SPEC = Spec(name="study", title="A study", run_cell=study_cells.draw, grid={"index": [0, 1]})


@pytest.fixture
def path(tmp_path):
    run_study(SPEC, tmp_path / "in" / "s.sqlite", jobs=1)
    return tmp_path / "in" / "s.sqlite"


def craft(path, *statements):
    """Change a store as one would who leaves no checksums that tell."""
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        for statement in (*statements, "DELETE FROM checksums"):
            db.execute(statement)


@pytest.mark.parametrize("name", ["../../ESCAPED", "/tmp/ESCAPED", "..", "a/b", "", "a\nb"])
def test_a_study_name_cannot_leave_the_folder(tmp_path, path, name):
    craft(path, f"UPDATE studies SET name='{name}'", f"UPDATE cells SET study='{name}'")
    with pytest.raises(StoreError, match=r"name that is none"):
        write_pages(path, tmp_path / "a" / "b" / "out")
    assert not list(tmp_path.rglob("*ESCAPED*"))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE studies SET metrics='{'",
        "UPDATE studies SET metrics='3'",
        "UPDATE studies SET metrics='[3]'",
        "UPDATE studies SET title=x'ff00'",
        "UPDATE cells SET settings='[1]'",
        "UPDATE cells SET settings=''",
        "UPDATE cells SET settings='{}'",
        "UPDATE cells SET result='{\"mean\":'",
        "UPDATE cells SET result='[]'",
        "UPDATE cells SET result=NULL",
        "UPDATE cells SET result='" + "[" * 100_000 + "'",
        "UPDATE cells SET result=x'80ff'",
        "UPDATE cells SET result=CAST(x'80ff' AS TEXT)",
        "UPDATE cells SET warnings='{}'",
        "UPDATE cells SET seconds='long'",
        "UPDATE cells SET status='failed', error=NULL",
        "UPDATE environments SET versions='7'",
        "DROP TABLE environments",
        "ALTER TABLE cells DROP COLUMN result",
    ],
)
def test_crafted_rows_are_one_sentence_that_names_the_store(path, statement, capsys):
    craft(path, statement)
    assert main(["bench", "report", str(path)]) == 2
    text = capsys.readouterr().err.strip()
    assert text.startswith(f"equipoise bench: the store {path}")
    assert "\n" not in text


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("studies", "title", "'Another'"),
        ("cells", "result", "replace(result, '.', '0.')"),
        ("cells", "seconds", "seconds + 1"),
        ("cells", "warnings", "'[]'"),
        ("environments", "versions", "'{}'"),
    ],
)
def test_a_change_that_only_the_checksum_shows_is_named(path, table, column, value):
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE {table} SET {column}={value}")
    with pytest.raises(StoreError, match=r"damaged: (study|cell) .* must be what was saved"):
        write_pages(path, path.parent)


def test_a_store_without_checksums_is_read_and_gets_them_for_what_it_does_next(path):
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("DROP TABLE checksums")
    with Store(path, read_only=True) as store:
        before = store.frame("study")
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE cells SET status='pending' WHERE rowid=1")
    assert run_study(SPEC, path, jobs=1, resume=True).done == 2
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert (
            len(db.execute("SELECT * FROM checksums").fetchall()) == 2
        )  # the study and the cell of this run
    with Store(path, read_only=True) as store:
        assert store.frame("study")["mean"].tolist() == before["mean"].tolist()


def test_a_row_that_an_index_lacks_is_noticed(path):
    """As a flip in the list of a page's rows leaves it: every other row is whole and one is gone."""
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA writable_schema=ON")
        db.execute("DELETE FROM sqlite_master WHERE name='cells_by_status'")
    with pytest.raises(StoreError, match="damaged"):
        Store(path, read_only=True)


def test_a_cell_of_an_unknown_owner_waits_for_its_lease(path):
    craft(path, "UPDATE cells SET status='running', owner='x|y', lease=0")
    assert run_study(SPEC, path, jobs=1, resume=True).done == 2


def test_cells_tell_the_processor_and_the_page_its_noise_floor(path):
    with Store(path, read_only=True) as store:
        (versions,) = {tuple(record["versions"].items()) for record in store.records("study")}
    found = dict(versions)
    assert found["cpu"]
    assert found["numpy"]
    write_pages(path, path.parent)
    text = (path.parent / "study.md").read_text()
    assert f"The cells ran on {found['cpu']}. Noise floor: another CPU" in text


def test_a_study_without_a_single_number_has_a_page(path):
    craft(path, """UPDATE cells SET result='{"mean": NaN}'""")
    write_pages(path, path.parent)
    assert "nan" not in (path.parent / "study.md").read_text().lower()
