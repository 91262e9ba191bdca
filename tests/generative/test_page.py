"""The page of diffusion runs on planted looks: gaps, references, escaping, and a real browser."""

from __future__ import annotations

import functools
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from equipoise.datasets import LabeledImages
from equipoise.generative import run_summary, theory_advice, training_runs
from equipoise.generative.folder import RunFolder
from equipoise.generative.memorization import nearest_two
from equipoise.generative.monitor import Look
from equipoise.generative.page import build_report, write_report
from equipoise.generative.run_comparison import gap_points
from equipoise.generative.run_summary import summarize_run

EVIL = "<img src=x onerror='window.broken=1'>"
STEPS = [10, 100, 1000, 10000]
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(autouse=True)
def quick_theory(monkeypatch):
    monkeypatch.setattr(run_summary, "predict", functools.partial(_quickly, theory_advice.predict))


def _quickly(predict, *args, **options):
    return predict(*args, **{**options, "n_bootstrap": 0, "dimension": 16})


def planted(path, spreads, fractions, counts=None, **settings):
    """A run whose classes have given pixel spreads and memorized fractions at the four steps."""
    rng = np.random.default_rng(0)
    names = sorted(spreads)
    counts = counts or dict.fromkeys(names, 12)
    codes = np.repeat(np.arange(len(names)), [counts[name] for name in names])
    spread = np.array([spreads[name] for name in names])[codes]
    images = (rng.normal(size=(len(codes), 1, 6, 6)) * spread[:, None, None, None]).astype(np.float32)
    data = LabeledImages(images, codes, tuple(names), path.name)
    chosen = {**training_runs._settings({"preset": "tiny", "held_out_fraction": 0.0}), **settings}
    record = {
        "settings": chosen,
        "data": training_runs._description(data),
        "reading": {},
        "prescription": None,
    }
    folder = RunFolder.create(path, record, data)
    seen = SimpleNamespace(scale_=1.0, mean_=np.zeros((1, 6, 6)))
    for at, step in enumerate(STEPS):
        drawn = torch.from_numpy(images + rng.normal(scale=0.01, size=images.shape).astype(np.float32))
        table = pd.DataFrame(
            {
                "label": range(len(names)),
                "n": 100,
                "fraction": [fractions[name][at] for name in names],
                "low": [max(fractions[name][at] - 0.1, 0) for name in names],
                "high": [min(fractions[name][at] + 0.1, 1) for name in names],
                "held_out_error": [1.0, 0.5, 0.4, 0.6][at],
                "nearest": 1.0 - 0.2 * at,
                "second": 1.0,
            }
        )
        found = nearest_two(drawn.numpy(), images)
        how = {"n_samples": 200, "stride": 50, "second": "any", "accuracy": 0.99}
        folder.keep(step, Look(drawn, codes, found, table), seen, how)
    return folder


EARLY, LATE, NEVER = [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]


def pair(path, partner, spread, curve, **more):
    return planted(path, {"calm": 0.3, partner: spread}, {"calm": LATE, partner: curve}, **more)


def test_the_clock_of_a_run_sets_the_shares_of_the_next(tmp_path):
    folder = pair(tmp_path / "a", "wild", 1.0, EARLY)
    shares = training_runs._evened(folder, folder.images())
    assert shares.tolist() == pytest.approx([10 / 11, 1 / 11]), "calm is memorized ten times later"
    unequal = pair(tmp_path / "b", "wild", 1.0, EARLY, class_shares=[0.8, 0.2])
    assert training_runs._evened(unequal, unequal.images())[0] == pytest.approx(40 / 41)
    never = planted(tmp_path / "c", {"calm": 0.3, "wild": 1.0}, {"calm": NEVER, "wild": EARLY})
    with pytest.raises(ValueError, match="calm was not memorized, so there is no time to even out"):
        training_runs._evened(never, never.images())
    with pytest.raises(ValueError, match="has the classes calm, wild; these images have brisk, calm"):
        training_runs._evened(folder, pair(tmp_path / "d", "brisk", 0.5, LATE).images())


def test_gaps_are_measured_from_the_class_that_varies_least_in_all_runs(tmp_path):
    runs = [
        summarize_run(pair(tmp_path / "a", "wild", 1.0, EARLY)),
        summarize_run(pair(tmp_path / "b", "brisk", 0.5, LATE)),
        summarize_run(pair(tmp_path / "c", "wild", 1.0, EARLY, counts={"calm": 18, "wild": 6})),
    ]
    points = gap_points(runs)
    assert [p.reference for p in points] == ["calm"] * 3
    assert [p.partner for p in points] == ["wild", "brisk", "wild"]
    late, early = 1000 * 10 ** (1 / 3), 100 * 10 ** (1 / 3)
    assert points[0].gap == pytest.approx(late - early)
    assert points[1].gap == pytest.approx(0)
    assert points[0].variance > points[1].variance
    assert points[2].share == pytest.approx(0.25)
    turned = gap_points(runs[:1], "wild")
    assert turned[0].gap == pytest.approx(-points[0].gap)
    assert (turned[0].low, turned[0].high) == (-points[0].high, -points[0].low)
    with pytest.raises(ValueError, match="has no class 'wild'; it has 'brisk', 'calm'"):
        gap_points(runs, "wild")


def test_a_gap_that_the_run_did_not_see_the_end_of_is_at_least_so_long(tmp_path):
    folder = planted(tmp_path / "a", {"calm": 0.3, "wild": 1.0}, {"calm": NEVER, "wild": EARLY})
    (point,) = gap_points([summarize_run(folder)])
    assert point.censored
    assert point.gap == pytest.approx(10000 - 100 * 10 ** (1 / 3))
    none = planted(tmp_path / "b", {"calm": 0.3, "wild": 1.0}, {"calm": NEVER, "wild": NEVER})
    assert gap_points([summarize_run(none)]) == []
    page = build_report([summarize_run(folder), summarize_run(none)]).to_markdown()
    assert "at least 9,785" in page
    assert "neither is memorized within the run" in page


def test_the_shares_drawn_count_and_not_those_of_the_data(tmp_path):
    folder = pair(tmp_path / "a", "wild", 1.0, EARLY, class_shares=[0.8, 0.2])
    (point,) = gap_points([summarize_run(folder)])
    assert point.share == pytest.approx(0.2)


def test_one_class_alone_has_a_page_without_theory(tmp_path):
    folder = planted(tmp_path / "a", {"only": 1.0}, {"only": EARLY})
    page = build_report([summarize_run(folder)]).to_markdown()
    assert "'only' is memorized first" in page
    assert "an order needs two classes" in page


def test_the_theory_says_which_class_it_expects_first(tmp_path):
    one = summarize_run(pair(tmp_path / "a", "wild", 1.0, EARLY))
    assert one.predicted.order == ("wild", "calm")
    page = build_report([one]).to_markdown()
    assert "The measured order is the one that the theory expects" in page
    other = summarize_run(planted(tmp_path / "b", {"calm": 0.3, "wild": 1.0}, {"calm": EARLY, "wild": LATE}))
    assert "The measured order is not the one that the theory expects" in build_report([other]).to_markdown()


def look_at_page(browser, path, width):
    page = browser.new_page(viewport={"width": width, "height": 844})
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.goto(f"file://{path}")
    page.wait_for_selector(".canvas .main-svg")
    assert len(page.query_selector_all("section:not([hidden]) .canvas .main-svg")) >= 2
    page.evaluate("document.querySelectorAll('[role=tab]')[1].click()")
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.wait_for_function("document.querySelectorAll('section:not([hidden]) img').length >= 4")
    shown = page.evaluate(
        "[...document.querySelectorAll('section:not([hidden]) img')].map(i => i.naturalWidth)"
    )
    assert min(shown) > 100
    assert page.evaluate("window.broken") is None
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert errors == []


def test_the_page_in_a_browser(tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if BROWSER is None:
        pytest.skip("no chromium on this machine: the page was not tested in a browser")
    runs = [
        pair(tmp_path / name, EVIL, spread, curve)
        for name, spread, curve in (("a", 1.0, EARLY), ("b", 0.8, EARLY), ("c", 0.5, LATE))
    ]
    write_report(runs, tmp_path / "page.html")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=BROWSER, args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        for width in (1280, 390):
            look_at_page(browser, tmp_path / "page.html", width)
        browser.close()
