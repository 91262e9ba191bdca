"""The page in a real browser: it opens offline, tabs and hovers work, and nothing smuggled in runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from browsing import EVIL, launched, visiting
from equipoise.report import (
    Details,
    Facts,
    Figure,
    Interval,
    Note,
    Report,
    Row,
    Section,
    Table,
    Text,
    bar,
    new_figure,
    plain,
    scatter,
)

WIDTHS = {"desktop": (1280, 900), "phone": (360, 740)}


def make_report() -> Report:
    x = np.linspace(0, 1, 20)
    label = plain(EVIL, 200)
    line = scatter(x=x, y=x**2, name=label, hovertemplate=label + " %{x:.2f}<extra></extra>")
    bars = bar(x=[label, "b"], y=[1, 2])
    table = Table(
        [EVIL, "score"], [[EVIL, Interval(0.5, 0.4, 0.6)]] * 3, emphasis=[1], formats={"score": ".2f"}
    )
    first = Section("First", [Text(EVIL), Note(EVIL, "warning", EVIL), Facts([(EVIL, EVIL, EVIL)]), table])
    plots = [Figure(new_figure(line, x="x", y="y"), EVIL, EVIL), Figure(new_figure(bars), "bars", "bars")]
    wide = Table([f"column {i}" for i in range(30)], [list(range(30))])
    second = Section("Second", [Row(plots), Details("more", [Figure(new_figure(line), "folded")]), wide])
    return Report(EVIL, [first, second, Section("Third", [Text("end")])], subtitle=EVIL, footer=EVIL)


@pytest.fixture(scope="module")
def browser():
    with launched() as opened:
        yield opened


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    return make_report().write(tmp_path_factory.mktemp("page"))["html"]


@pytest.fixture(params=list(WIDTHS))
def page(request, browser, path):
    with visiting(browser, path, *WIDTHS[request.param]) as opened:
        yield opened


def test_it_opens_silently_and_asks_nobody(page, path):
    page.locator("[role=tab]").nth(1).click()
    page.wait_for_selector("#figure-0 .main-svg")
    assert page.said == []
    assert page.asked == [path.as_uri()]


def test_tabs_show_one_section_each(page):
    sections = page.locator("main > section")
    for i in range(3):
        page.locator("[role=tab]").nth(i).click()
        assert [sections.nth(k).is_visible() for k in range(3)] == [k == i for k in range(3)]
    page.keyboard.press("ArrowRight")
    assert sections.nth(0).is_visible()


def test_hovering_tells_values_as_text(page):
    page.locator("[role=tab]").nth(1).click()
    plot = page.locator("#figure-0 .nsewdrag").first
    plot.wait_for()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.7)
    page.wait_for_selector("#figure-0 .hoverlayer .hovertext")
    assert "<script>" in page.locator("#figure-0 .hoverlayer").text_content()


def test_nothing_smuggled_in_runs(page):
    for tab in range(3):
        page.locator("[role=tab]").nth(tab).click()
    page.wait_for_selector("h1")
    assert page.evaluate("window.broken") is None
    assert page.locator("main img[src=x]").count() == 0
    assert EVIL in page.locator("h1").text_content()


def test_nothing_hangs_over_the_edge(page):
    for tab in range(3):
        page.locator("[role=tab]").nth(tab).click()
        page.wait_for_timeout(200)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_folded_plots_are_drawn_when_opened(page):
    page.locator("[role=tab]").nth(1).click()
    page.locator("summary").click()
    page.wait_for_selector("#figure-2 .main-svg")


def test_print_shows_everything(page):
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    sections = page.locator("main > section")
    assert all(sections.nth(i).is_visible() for i in range(3))
    assert not page.locator("nav").is_visible()
    page.wait_for_selector("#figure-1 .main-svg")
