"""Pages for everybody: axe-core finds nothing serious, by day and by night, wide and narrow; and hard input."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest

from browsing import EVIL, launched, visiting
from equipoise.metrics import Decision
from equipoise.report import (
    Code,
    Details,
    Facts,
    Figure,
    Gallery,
    Headline,
    Interval,
    Links,
    LiveOperatingPoint,
    Note,
    Ranking,
    Report,
    Row,
    Section,
    Table,
    Text,
    plain,
)

AXE = "4.14.0"
SHARES = np.array([0.7, 0.2, 0.1])
DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010100000000376ef9240000000a49444154789c63680000008200"
    "81a5b1f3f40000000049454e44ae426082"
)


def live(classes, n=60, seed=0, **options):
    rng = np.random.default_rng(seed)
    k = len(classes)
    shares = np.linspace(2, 1, k) / np.linspace(2, 1, k).sum()
    proba = rng.dirichlet(2 * shares * k, n)
    truth = np.array([rng.choice(k, p=row) for row in proba])
    return LiveOperatingPoint(
        proba, truth, classes, shares, Decision.by_weights(1 / shares, shares), **options
    )


def every_block(text: str) -> list:
    plot = {
        "data": [{"type": "heatmap", "z": [[0, 1], [1, 0]], "x": [plain(text), "b"]}],
        "layout": {"xaxis": {"title": {"text": plain(text)}}},
    }
    return [
        Headline(text, [(text, text), ("How sure", "A recall of 0.8.")]),
        Text(text),
        Note(text, "warning", text),
        Facts([(text, text, text)]),
        Table([text, "recall"], [[text, Interval(0.5, 0.4, 0.6)]] * 3, text, emphasis=[1]),
        Ranking([(text, Interval(0.2, -0.1, 0.4)), ("other", Interval(0.1, 0.0, 0.2))], text),
        Gallery([(DOT, text)], text),
        Links([(text, "other.html", text)]),
        Code(text),
        Row([Figure(plot, text, text, 200), Text(text)], width=200),
        Details(text, [Text(text)]),
    ]


@pytest.fixture(scope="module")
def browser():
    with launched() as opened:
        yield opened


@pytest.fixture(scope="module")
def axe() -> str:
    """The source of axe-core, fetched once by npm into a cache folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "equipoise-tests"
    archive = cache / f"axe-core-{AXE}.tgz"
    if not archive.exists():
        if shutil.which("npm") is None:
            pytest.skip("npm is not here to fetch axe-core: accessibility was not tested")
        cache.mkdir(parents=True, exist_ok=True)
        got = subprocess.run(
            ["npm", "pack", "--silent", f"axe-core@{AXE}"], cwd=cache, capture_output=True, timeout=120
        )
        if got.returncode:
            pytest.skip("npm could not fetch axe-core: accessibility was not tested")
    with tarfile.open(archive) as files:
        member = files.extractfile("package/axe.min.js")
        assert member is not None
        return io.TextIOWrapper(member, encoding="utf-8").read()


def written(tmp_path, *sections) -> Path:
    return Report("A page", list(sections), subtitle="of all blocks", footer="end").write(tmp_path)["html"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_axe_finds_nothing_serious(browser, axe, tmp_path, width, scheme):
    path = written(
        tmp_path,
        Section("Blocks", every_block("Some text")),
        Section("Two", [live(["no", "yes"])]),
        Section("Three", [live(["a", "b", "c"])]),
    )
    with visiting(browser, path, width, color_scheme=scheme, bypass_csp=True) as page:
        page.evaluate(axe)
        for tab in range(3):
            page.locator("[role=tab]").nth(tab).click()
            page.wait_for_timeout(150)
            found = page.evaluate("axe.run().then(r => r.violations)")
            bad = [
                (
                    v["id"],
                    v["impact"],
                    [n["html"][:120] + " " + n["failureSummary"][:300] for n in v["nodes"]][:3],
                )
                for v in found
                if v["impact"] in ("serious", "critical")
            ]
            assert bad == []


@pytest.mark.parametrize("width", [1280, 360])
def test_hard_text_neither_runs_nor_breaks_the_page(browser, tmp_path, width):
    text = EVIL + "x" * 10_000
    path = written(
        tmp_path,
        Section(text, every_block(text)),
        Section("Two", [live(["no", text], model=EVIL)]),
        Section("Three", [live([text, EVIL, "c"])]),
    )
    with visiting(browser, path, width) as page:
        for tab in range(3):
            page.locator("[role=tab]").nth(tab).click()
            page.wait_for_timeout(150)
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert page.said == []
        assert len(page.asked) == 1
        assert page.evaluate("window.broken") is None
    assert path.stat().st_size < 2_000_000


def test_a_long_part_of_the_first_screen_is_folded(browser, tmp_path):
    text = "This was left out for lack of time. " * 30
    with visiting(
        browser, written(tmp_path, Section("One", [Headline("Claim", [("Not tried", text)])]))
    ) as page:
        box = page.locator(".headline dl > div").bounding_box()
        assert box["height"] < 300
        page.locator(".headline summary").click()
        assert page.locator(".headline dl > div").bounding_box()["height"] > box["height"]


def test_two_hundred_classes(browser, tmp_path):
    block = live([f"class {i}" for i in range(200)], n=4000)
    assert not block.has_matrix
    path = written(tmp_path, Section("One", [block]))
    assert path.stat().st_size < 2_000_000
    with visiting(browser, path) as page:
        page.get_by_label("One class against the rest").select_option("class 150")
        assert "class 150" in page.locator("[data-part=sentence]").text_content()
        assert page.said == []


def test_a_class_that_is_never_called(browser, tmp_path):
    proba = np.tile([0.6, 0.3, 0.1], (30, 1))
    truth = np.arange(30) % 3
    rule = Decision(1 - np.eye(3), SHARES)
    block = LiveOperatingPoint(proba, truth, ["a", "b", "c"], SHARES, rule)
    assert set(block.called.tolist()) == {0}
    with visiting(browser, written(tmp_path, Section("One", [block]))) as page:
        assert "raises 0 alerts" in page.locator("[data-part=sentence]").text_content()
        assert page.locator("[data-figure=precision]").text_content() == "–"
        assert page.said == []


def test_night_and_day_by_the_button(browser, tmp_path):
    path = written(tmp_path, Section("Blocks", every_block("text")))
    with visiting(browser, path, color_scheme="light") as page:
        page.wait_for_selector("#figure-0 .main-svg")
        color = "getComputedStyle(document.body).backgroundColor"
        ticks = "getComputedStyle(document.querySelector('#figure-0 .xtick text')).fill"
        day, ink = page.evaluate(color), page.evaluate(ticks)
        page.get_by_role("button", name="Dark colors").click()
        page.wait_for_timeout(200)
        assert page.evaluate(color) != day
        assert page.evaluate(ticks) != ink
        page.get_by_role("button", name="Light colors").click()
        assert page.evaluate(color) == day


def test_terms_are_explained_on_hover_and_focus(browser, tmp_path):
    path = written(tmp_path, Section("One", [Text("The recall is high, the recall is low.")]))
    with visiting(browser, path) as page:
        bubble = page.get_by_role("tooltip")
        assert page.locator("[data-term]").count() == 1
        page.locator("[data-term]").hover()
        assert "share that is found" in bubble.text_content()
        page.keyboard.press("Escape")
        assert not bubble.is_visible()
        page.locator("[data-term]").focus()
        assert bubble.is_visible()


def test_print_is_by_daylight_and_shows_every_section(browser, tmp_path):
    path = written(tmp_path, Section("Blocks", every_block("text")), Section("Two", [live(["no", "yes"])]))
    with visiting(browser, path, color_scheme="dark") as page:
        assert len(page.pdf()) > 10_000
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert all(page.locator("main > section").nth(i).is_visible() for i in range(2))
        assert not page.locator("fieldset").is_visible()


def test_a_wide_table_is_printed_whole(browser, tmp_path):
    names = ["treatment", *(f"figure number {i}" for i in range(6)), "seconds"]
    row = ["gradient boosting with random splits", *[Interval(0.9581, 0.9051, 1.0)] * 6, 17.25]
    path = written(
        tmp_path, Section("One", [Table(names, [row] * 3, formats=dict.fromkeys(names[1:], ".3f"))])
    )
    with visiting(browser, path, width=700) as page:  # A4 within its margins
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
