"""The built site in a browser, from files: quiet, asking for nothing, fit for a phone, with a search that finds."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from browsing import launched, visiting

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "_build" / "html"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built: make docs"),
]


@pytest.fixture(scope="module")
def browser():
    with launched() as opened:
        yield opened


def pages() -> list[Path]:
    """Every page but those of single names, of which each tenth is taken."""
    found = [page for page in sorted(SITE.rglob("*.html")) if "_static" not in page.parts]
    single = [page for page in found if page.parent.name == "generated"]
    return [page for page in found if page.parent.name != "generated"] + single[::10]


def test_internal_links_lead_somewhere():
    spec = importlib.util.spec_from_file_location("check_links", ROOT / "docs" / "check_links.py")
    checker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checker)
    assert list(checker.dead_links(SITE)) == []


def test_pages_are_quiet_ask_for_nothing_and_fit_a_phone(browser):
    with visiting(browser, SITE / "index.html", width=360) as opened:
        for page in pages():
            opened.said.clear()
            opened.asked.clear()
            opened.goto(page.as_uri())
            said = [line for line in opened.said if not line.startswith("[PST]")]  # the theme tells its mode
            assert said == [], page.name
            assert [url for url in opened.asked if not url.startswith(("file:", "data:"))] == [], page.name
            wide = opened.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            assert wide <= 0, f"{page.relative_to(SITE)} is {wide} pixels too wide"


def test_the_search_works_from_a_file(browser):
    with visiting(browser, SITE / "search.html") as opened:
        opened.goto((SITE / "search.html").as_uri() + "?q=memorized")
        opened.wait_for_selector("#search-results li", timeout=60_000)
        assert opened.locator("#search-results li").count() > 3
