"""Every block of Python in the README and in the guides runs as printed, and so do the README's commands.

A block that needs a reader's own files stands behind ``<!--- skip: next -->``.
"""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.myst import PythonCodeBlockParser, SkipParser

ROOT = Path(__file__).parents[2]
SLOW = {
    "anomaly",
    "conditional",
    "meta",
    "oversampling",
    "advisor",
    "diffusion",
}  # pages of ten seconds and more
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
BUILT = {"_build", "gallery", "generated", "results"}


def guides() -> list[Path]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in pages if not BUILT & set(page.relative_to(ROOT).parts)]


def _marked(page: Path) -> object:
    marks = [pytest.mark.slow] if page.stem in SLOW else []
    return pytest.param(page, marks=marks, id=page.relative_to(ROOT).as_posix())


@pytest.mark.parametrize(
    "page", [_marked(page) for page in guides() if "```python" in page.read_text("utf-8")]
)
@pytest.mark.filterwarnings("default")  # a guide may show something that warns
def test_blocks_of_python_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    quick = tmp_path / page.name  # with less time for each search
    quick.write_text(re.sub(r'budget="\d+[sm]"', 'budget="4s"', page.read_text("utf-8")), "utf-8")
    document = Sybil([PythonCodeBlockParser(doctest_optionflags=FLAGS), SkipParser()]).parse(quick)
    blocks = list(document.examples())
    assert blocks
    for block in blocks:
        block.evaluate()


def commands(page: Path, language: str) -> list[str]:
    """The lines of the blocks in that language, without what is only a comment."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    lines = [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/start/ten-minutes.md"])
def test_commands_run_one_after_the_other(page, tmp_path):
    """With a short budget, on the file that the guide makes, and ``equipoise`` being the one under test."""
    maker = re.search(
        r"```python\n(.*?)```", (ROOT / "docs/start/ten-minutes.md").read_text("utf-8"), re.DOTALL
    )[1]
    subprocess.run([sys.executable, "-c", maker], cwd=tmp_path, check=True, capture_output=True)
    lines = [line for line in commands(ROOT / page, "shell") if line.startswith("equipoise")]
    assert len(lines) >= 3
    for line in lines:
        words = [sys.executable, "-m", *shlex.split(re.sub(r"--budget \S+", "--budget 12s", line))]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}\n{done.stderr}"


@pytest.mark.parametrize("page", guides(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files(page):
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\((?!https?:|#|/)([^)#\s]+)", text):
        assert (page.parent / link).exists(), f"{page.name} leads to {link}, which is not there"


@pytest.mark.parametrize("page", guides(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_programs_that_a_page_names_are_there(page):
    named = re.findall(
        r"\b(?:benchmarks|docs|examples|studies|tests|tools)/[\w./-]+\.(?:py|sh)\b", page.read_text("utf-8")
    )
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_commands_that_prove_an_error_select_tests():
    text = (ROOT / "docs/explanation/errors.md").read_text("utf-8")
    found = re.findall(r"`pytest (\S+) -k \"?([\w ]+)\"?`", text)
    assert len(found) > 5
    for path, words in found:
        names = re.findall(r"def (test_\w+)", (ROOT / path).read_text("utf-8"))
        for word in words.split(" or "):
            assert any(word in name for name in names), f"{path} has no test with {word!r} in its name"


def test_what_a_guide_takes_from_another_page_is_there():
    pattern = r"```\{include\} (\S+)\n:start-after: (.+)\n:end-before: (.+)\n"
    found = [(page, *match) for page in guides() for match in re.findall(pattern, page.read_text("utf-8"))]
    assert found
    for page, source, after, before in found:
        taken = (page.parent / source).read_text("utf-8").split(after.strip('"'))[1].split(before.strip('"'))
        assert len(taken) == 2, f"{source} has no {before} after {after!r}"
        assert taken[0].strip(), f"{page.name} takes nothing from {source}"
