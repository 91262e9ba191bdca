"""The wheel has all that the package has, and installs where nothing else is."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, **env: str) -> str:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, env={**clean, **env}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT)
    return next(out.glob("*.whl"))


def test_the_wheel_has_every_file(wheel):
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / "equipoise").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert wanted - packed == set()
    assert "equipoise/py.typed" in packed
    assert not any(name.startswith(("tests/", "docs/", "benchmarks/", "studies/")) for name in packed)


def test_the_wheel_holds_no_study_but_smoke(wheel):
    archive = zipfile.ZipFile(wheel)
    assert not any(name.endswith(".sqlite") for name in archive.namelist())
    defining = [
        name for name in archive.namelist()
        if name.endswith(".py") and re.search(rb"^SPEC = ", archive.read(name), re.M)
    ]  # fmt: skip
    assert defining == ["equipoise/studies/smoke.py"]


def test_the_wheel_installs_in_an_empty_environment(wheel, tmp_path):
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel)
    # The libraries it needs are lent by the environment of the tests; Equipoise itself comes from the wheel.
    lent = sysconfig.get_path("purelib")
    code = "import equipoise; print(equipoise.__version__, equipoise.__file__)"
    assert str(tmp_path / "env") in run(python, "-c", code, PYTHONPATH=lent)
    assert "report" in run(tmp_path / "env" / "bin" / "equipoise", "--help", PYTHONPATH=lent)
    code = (
        "import equipoise, importlib.resources as r;"
        "from equipoise.datasets import load_digits_imbalanced;"
        "assert len(load_digits_imbalanced().y) > 0;"
        "assert r.files('equipoise.report').joinpath('page/page.html').is_file();"
        "print(equipoise.__file__)"
    )
    assert str(tmp_path / "env") in run(python, "-c", code, PYTHONPATH=lent)


def test_the_package_page_has_no_link_that_leads_nowhere(wheel):
    archive = zipfile.ZipFile(wheel)
    page = archive.read(next(name for name in archive.namelist() if name.endswith("/METADATA"))).decode()
    assert "# Equipoise" in page
    assert re.findall(r"\]\((?!https?://|#)[^)]*\)", page) == []


def test_relative_links_become_absolute_where_the_address_is_known():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    pytest.importorskip("hatchling")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = "![a](docs/a.png) [b](b.md) [c](https://c.org)"
    assert module.package_page(text, None, "1.0") == " b [c](https://c.org)"
    known = module.package_page(text, "https://host.org/e/", "1.0")
    assert known == (
        "![a](https://host.org/e/raw/v1.0/docs/a.png) [b](https://host.org/e/blob/v1.0/b.md) [c](https://c.org)"
    )


@pytest.mark.slow
def test_the_source_archive_has_the_docs_and_the_tests(tmp_path):
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", tmp_path, ROOT)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    for folder in ("docs", "tests", "examples"):
        wanted = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.py")}
        assert {
            name for name in wanted - packed if not name.startswith(("docs/_build/", "docs/gallery/"))
        } == set()
    assert {"docs/index.md", "README.md", "CHANGELOG.md", "CITATION.cff", "SECURITY.md"} <= packed


def test_an_editable_install_needs_no_package_that_is_not_pinned(tmp_path, monkeypatch):
    """``make setup-verified`` installs what ``constraints-hashes.txt`` lists, and then this without a network."""
    pytest.importorskip("hatchling")
    monkeypatch.chdir(ROOT)
    code = "import sys; sys.modules['editables'] = None; import hatchling.build as b; b.build_editable(sys.argv[1])"
    run(sys.executable, "-c", code, tmp_path)
    assert list(tmp_path.glob("equipoise-*.whl"))
