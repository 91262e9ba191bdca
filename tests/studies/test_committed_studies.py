"""The committed results: every study has its store and its pages, the index names them all, no folder leaks."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from equipoise.studies import spec_names

FOLDER = Path(__file__).parents[2] / "studies"
INDEX = (FOLDER / "README.md").read_text()


def test_the_index_names_every_study_and_nothing_else():
    linked = set(re.findall(r"\]\(([a-z-]+)/\1\.md\)", INDEX))
    assert linked == set(spec_names())


def test_every_picture_is_on_a_page():
    shown = {page.parent: page.read_text() for page in FOLDER.glob("*/*.md")}
    pictures = list(FOLDER.glob("*/*.svg"))
    assert pictures
    assert [picture for picture in pictures if f"({picture.name})" not in shown[picture.parent]] == []


@pytest.mark.parametrize("name", spec_names())
def test_a_study_was_run_and_its_page_is_its_own(name):
    folder = FOLDER / name
    text = (folder / f"{name}.md").read_text()
    assert f"equipoise bench run {name}" in text
    parts = re.findall(r"^- \*\*(What was asked|What came out|How sure)\.\*\* ", text, re.M)
    assert parts == ["What was asked", "What came out", "How sure"]
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
        assert (folder / picture).is_file()
    assert (folder / f"{name}.html").is_file()
    with sqlite3.connect(f"file:{folder / 'results.sqlite'}?immutable=1", uri=True) as store:
        status = dict(store.execute("SELECT status, count(*) FROM cells WHERE study = ? GROUP BY 1", [name]))
        errors = [error for (error,) in store.execute("SELECT error FROM cells WHERE error IS NOT NULL")]
    assert status.get("done", 0) > 0
    assert f"Cells done: **{status['done']} of {sum(status.values())}**" in text
    assert not any(re.search(r'File "/', error) for error in errors)


def test_the_guides_say_of_the_clock_what_its_page_says():
    page = (FOLDER / "diffusion-clock" / "diffusion-clock.md").read_text()
    shrunk = dict(re.findall(r"Intervention, as the (theory|clock)[^\n]*it shrinks in (\d of \d) runs", page))
    assert shrunk == {"theory": "3 of 6", "clock": "5 of 6"}, "docs/explanation/diffusion.md says so"
    assert page.count("cannot tell.") == 2, "and that this settles neither"
