"""The operating point in a browser against Python: every slider, every figure, and the command it copies."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
from scipy import stats

from browsing import EVIL, launched, visiting
from equipoise._core.priors import correct_prior
from equipoise.metrics import Decision, Wish, choose_decision
from equipoise.report import LiveOperatingPoint, Report, Section
from equipoise.report.operating import MOST_CUTS, ThresholdCounts, operating_figures

PRIOR = np.array([0.95, 0.05])
SHARES = np.array([0.6, 0.25, 0.1, 0.05])


def two_classes(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < PRIOR[1]).astype(int)
    z = rng.normal(size=n) + 1.8 * y
    p = 1 / (1 + np.exp(1.62 - 1.8 * z - np.log(PRIOR[1] / PRIOR[0])))
    return np.c_[1 - p, p], y


def four_classes(n=900, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(4, n, p=SHARES)
    centers = 1.5 * rng.normal(size=(4, 3))
    x = centers[y] + rng.normal(size=(n, 3))
    p = np.exp(-0.5 * ((x[:, None] - centers) ** 2).sum(axis=2)) * SHARES
    return p / p.sum(axis=1, keepdims=True), y


def written(tmp_path, block):
    return Report("Live", [Section("One", [block])]).write(tmp_path, kinds=("html",))["html"]


def block_of_two(**options):
    proba, truth = two_classes()
    rule = Decision(np.array([[0.0, 1.0], [20.0, 0.0]]), PRIOR)
    return LiveOperatingPoint(
        proba, truth, ["no", EVIL], PRIOR, rule, cost=(1, 20), model="my model", **options
    )


def test_markdown_has_a_cost_only_where_one_was_named_and_says_which_decision_it_shows():
    proba, truth = four_classes()
    rule = choose_decision(proba, truth, Wish(), data_prior=SHARES)
    many = LiveOperatingPoint(proba, truth, list("abcd"), SHARES, rule)
    told = [Report("Live", [Section("One", [block])]).to_markdown() for block in (block_of_two(), many)]
    assert ["| cost |" in text for text in told] == [True, False]
    assert ["against the rest (the decision itself weighs all classes" in text for text in told] == [
        False,
        True,
    ]


@pytest.fixture(scope="module")
def browser():
    with launched() as opened:
        yield opened


@pytest.fixture
def page(browser, tmp_path):
    with visiting(browser, written(tmp_path, block_of_two())) as opened:
        yield opened
        assert opened.said == []
        assert len(opened.asked) == 1
        assert opened.evaluate("window.broken") is None


def move(page, name, value):
    page.locator(f"[data-part={name}]").evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", str(value)
    )


def shown(page):
    """Every figure on the page: value, low and high."""
    script = "nodes => nodes.map(n => [n.dataset.figure, n.dataset.value, n.dataset.low, n.dataset.high])"
    rows = page.locator(".live-one [data-figure]").evaluate_all(script)
    return {name: tuple(map(float, ends)) if ends[0] else None for name, *ends in rows}


def command(page):
    words = shlex.split(page.locator("[data-part=command]").text_content())
    assert words[:3] == ["equipoise", "retune", "my model"]
    return dict(zip(words[3::2], words[4::2], strict=True))


def exact(k, n, confidence):
    tail = (1 - confidence) / 2
    low = stats.beta.ppf(tail, k, n - k + 1) if k else 0.0
    return low, stats.beta.ppf(1 - tail, k + 1, n - k) if k < n else 1.0


def expected(options, proba, truth, cost=(1, 20), effects=(1, 1)):
    """What the command's options do, by the functions that ``retune`` calls, and their intervals by scipy."""
    share = float(options.get("--prior", PRIOR[1]))
    prior = np.array([1 - share, share])
    if "--threshold" in options:
        rule = Decision.at_threshold(float(options["--threshold"]), prior)
    elif "--alerts" in options:
        wish = Wish.make(alerts=float(options["--alerts"]))
        rule = choose_decision(proba, truth, wish, data_prior=PRIOR, prior=prior)
    else:
        alarm, miss = (float(part.split("=")[1]) for part in options["--cost"].split(","))
        cost = (alarm, miss)
        wish = Wish.make(cost={"fp": alarm, "fn": miss})
        rule = choose_decision(proba, truth, wish, data_prior=PRIOR, prior=prior)
    called = rule.codes(correct_prior(proba, PRIOR, prior)) == 1
    k, n, m, size = called[truth == 1].sum(), (truth == 1).sum(), called[truth == 0].sum(), (truth == 0).sum()
    r, f = k / n, m / size

    def derived(r, f):
        alerts = share * r + (1 - share) * f
        return (
            alerts,
            share * r / alerts if alerts else 1,
            cost[0] * (1 - share) * f + cost[1] * share * (1 - r),
        )

    m, size, k, n = m / effects[0], size / effects[0], k / effects[1], n / effects[1]
    (rl, rh), (fl, fh) = exact(k, n, 0.95), exact(m, size, 0.95)
    (a, b), (c, d) = exact(k, n, 0.975), exact(m, size, 0.975)
    here, worst, best = derived(r, f), derived(a, d), derived(b, c)
    return {
        "recall": (r, rl, rh),
        "specificity": (1 - f, 1 - fh, 1 - fl),
        "precision": (here[1], worst[1], best[1]) if called.any() else None,
        "alerts": tuple(1e4 * v for v in (here[0], derived(a, c)[0], derived(b, d)[0])),
        "cost": (here[2], best[2], worst[2]),
        "found": tuple(1e4 * share * v for v in (r, rl, rh)),
        "missed": tuple(1e4 * share * (1 - v) for v in (r, rh, rl)),
        "false_alarms": tuple(1e4 * (1 - share) * v for v in (f, fl, fh)),
        "left_alone": tuple(1e4 * (1 - share) * (1 - v) for v in (f, fh, fl)),
    }


def agree(found, wanted):
    assert set(found) == set(wanted)
    for name, values in wanted.items():
        if values is None:
            assert found[name] is None
        else:
            scale = max(1.0, abs(values[0]))
            np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-6 * scale, err_msg=name)


def test_it_starts_at_the_decision_that_was_chosen(page):
    assert command(page) == {"--cost": "fp=1,fn=20"}
    agree(shown(page), expected(command(page), *two_classes()))


SLIDERS = {"threshold": "--threshold", "ratio": "--cost", "prior": "--prior", "alerts": "--alerts"}


@pytest.mark.parametrize(("slider", "option"), SLIDERS.items())
def test_each_slider_moves_every_figure_as_python_has_it(page, slider, option):
    proba, truth = two_classes()
    seen = []
    for share in (0.1, 0.35, 0.5, 0.62, 0.9):
        low, high = (
            float(page.locator(f"[data-part={slider}]").get_attribute(end)) for end in ("min", "max")
        )
        move(page, slider, low + share * (high - low))
        options = command(page)
        limited = (
            page.locator("[data-part=sentence]")
            .text_content()
            .endswith("The alert capacity sets the threshold.")
        )
        assert (option in options) or (slider == "alerts" and not limited)
        seen.append(shown(page))
        agree(seen[-1], expected(options, proba, truth))
    assert len({figures["alerts"] for figures in seen}) > 2


def test_sliders_together(page):
    proba, truth = two_classes()
    move(page, "prior", -5)
    move(page, "ratio", 2.2)
    options = command(page)
    assert set(options) == {"--cost", "--prior"}
    cost = tuple(float(part.split("=")[1]) for part in options["--cost"].split(","))
    agree(shown(page), expected(options, proba, truth))
    move(page, "alerts", 1.5)
    assert set(command(page)) == {"--alerts", "--prior"}
    agree(shown(page), expected(command(page), proba, truth, cost))
    move(page, "alerts", 4)
    move(page, "threshold", 9.2)
    assert set(command(page)) == {"--threshold", "--prior"}
    page.locator("[data-part=reset]").click()
    assert command(page) == {"--cost": "fp=1,fn=20"}


def test_keys_and_typed_numbers_move_it_too(page):
    slider = page.locator("[data-part=threshold]")
    before = shown(page)["alerts"]
    slider.focus()
    for _ in range(3):
        page.keyboard.press("PageUp")
    assert shown(page)["alerts"][0] < before[0]
    assert slider.get_attribute("aria-valuetext").startswith("probability ")
    box = page.get_by_label("Threshold", exact=True).first
    box.fill("0.25")
    box.press("Enter")
    assert command(page) == {"--threshold": "0.25"}
    agree(shown(page), expected({"--threshold": "0.25"}, *two_classes()))
    box.fill("7")
    box.press("Enter")
    assert command(page) == {"--threshold": "0.25"}  # 7 is no probability


def test_markers_move_on_all_three_curves(page):
    page.wait_for_selector("[data-part=costs] .main-svg")
    read = "name => document.querySelector('[data-part=' + name + ']').data.at(-1).x[0]"
    before = [page.evaluate(read, name) for name in ("pr", "roc", "costs")]
    move(page, "threshold", -1)
    page.wait_for_timeout(200)
    after = [page.evaluate(read, name) for name in ("pr", "roc", "costs")]
    assert all(a < b for a, b in zip(after[:2], before[:2], strict=True))
    assert after[2] > before[2]
    assert after[0] == pytest.approx(shown(page)["recall"][0], abs=1e-12)


def test_the_command_is_copied(browser, tmp_path):
    options = {"permissions": ["clipboard-read", "clipboard-write"]}
    with visiting(browser, written(tmp_path, block_of_two()), **options) as page:
        button = page.get_by_role("button", name="Copy command")
        button.click()
        page.get_by_role("button", name="Copied").wait_for()
        assert (
            page.evaluate("navigator.clipboard.readText()") == "equipoise retune 'my model' --cost fp=1,fn=20"
        )


def test_the_page_and_python_start_with_the_same_figures(page):
    block = block_of_two()
    agree(shown(page), {k: v and (v.value, v.low, v.high) for k, v in block.figures.items()})


def test_rows_that_belong_together_widen_the_intervals_of_the_page(browser, tmp_path):
    proba, truth = two_classes()
    groups = np.argsort(np.argsort(proba[:, 1])) // 5 + 10_000 * truth  # five rows with scores alike
    block = block_of_two(groups=groups)
    effects = block.curves[0].effects
    assert effects[0] > 3  # positives are too few to lie five to a group
    assert effects[1] > 1
    with visiting(browser, written(tmp_path, block)) as page:
        for step in (None, -4, -2):
            if step is not None:
                move(page, "threshold", step)
            agree(shown(page), expected(command(page), proba, truth, effects=effects))


def test_a_limit_on_alerts_and_another_prior_are_there_from_the_start(browser, tmp_path):
    proba, truth = two_classes()
    prior = np.array([0.98, 0.02])
    wish = Wish.make(alerts=0.01)
    rule = choose_decision(proba, truth, wish, data_prior=PRIOR, prior=prior)
    options = {"cost": (1, 20), "alerts": 0.01, "model": "my model"}
    block = LiveOperatingPoint(proba, truth, ["no", "yes"], PRIOR, rule, **options)
    assert block.capacity == 100
    with visiting(browser, written(tmp_path, block)) as page:
        assert set(command(page)) == {"--threshold"}  # retune keeps the prior that the model has
        agree(shown(page), expected({**command(page), "--prior": "0.02"}, proba, truth))
        agree(shown(page), expected({"--alerts": "0.01", "--prior": "0.02"}, proba, truth))
        move(page, "threshold", -6)
        assert command(page) == {"--alerts": "0.01"}
        agree(shown(page), expected({"--alerts": "0.01", "--prior": "0.02"}, proba, truth))
        move(page, "prior", np.log(0.05 / 0.95))
        assert command(page) == {"--alerts": "0.01", "--prior": "0.05"}


def test_one_class_against_the_rest_and_the_cost_matrix(browser, tmp_path):
    proba, truth = four_classes()
    rule = Decision.by_weights(1 / SHARES, SHARES)
    block = LiveOperatingPoint(proba, truth, ["a", "b", EVIL, "d"], SHARES, rule)
    with visiting(browser, written(tmp_path, block)) as page:
        page.get_by_label("One class against the rest").select_option("b")
        move(page, "threshold", -1.5)
        t = float(page.locator(".live-one").get_attribute("data-threshold"))
        called = proba[:, 1] >= t
        assert shown(page)["recall"][0] == pytest.approx(called[truth == 1].mean(), abs=1e-9)
        assert shown(page)["specificity"][0] == pytest.approx(1 - called[truth != 1].mean(), abs=1e-9)
        check_matrix(page, proba, truth, block.costs, SHARES)
        costs = block.costs.copy()
        costs[3, 0], costs[1, 2] = 500, 0.5
        page.locator("[data-cost='3,0']").fill("500")
        page.locator("[data-cost='1,2']").fill("0.5")
        check_matrix(page, proba, truth, costs, SHARES)
        words = shlex.split(page.locator("[data-part=matrix-command]").text_content())
        assert [[float(cell) for cell in row.split(",")] for row in words[4].split(";")] == costs.tolist()
        for code, share in enumerate((20, 20, 20, 40)):
            page.locator(f"[data-prior='{code}']").fill(str(share))
            page.locator(f"[data-prior='{code}']").press("Enter")
        words = shlex.split(page.locator("[data-part=matrix-command]").text_content())
        assert words[-2] == "--prior"
        prior = np.array([float(share) for share in words[-1].split(",")])
        assert abs(prior.sum() - 1) < 1e-9
        check_matrix(page, proba, truth, costs, prior)
        page.locator("[data-cost='3,0']").fill("-1")
        assert page.locator("[data-cost='3,0']").get_attribute("aria-invalid") == "true"
        assert page.said == []
        assert page.evaluate("window.broken") is None


def check_matrix(page, proba, truth, costs, prior):
    called = Decision(costs, prior).codes(correct_prior(proba, SHARES, prior))
    counts = np.bincount(4 * truth + called, minlength=16).reshape(4, 4)
    rates = counts / counts.sum(axis=1, keepdims=True)
    found = page.locator("[data-count]").evaluate_all("nodes => nodes.map(n => Number(n.dataset.value))")
    np.testing.assert_allclose(np.reshape(found, (4, 4)), 1e4 * prior[:, None] * rates, atol=1e-6)
    cost = page.locator("[data-part=matrix-cost]")
    wanted = float((prior[:, None] * rates * costs).sum())
    assert float(cost.get_attribute("data-value")) == pytest.approx(wanted, abs=1e-6)
    assert float(cost.get_attribute("data-low")) < wanted < float(cost.get_attribute("data-high"))


def test_a_million_rows_are_thinned_and_every_step_is_exact(browser, tmp_path):
    proba, truth = two_classes(1_000_000)
    rule = Decision(np.array([[0.0, 1.0], [20.0, 0.0]]), PRIOR)
    block = LiveOperatingPoint(proba, truth, ["no", "yes"], PRIOR, rule, cost=(1, 20))
    path = written(tmp_path, block)
    assert path.stat().st_size < 2_000_000
    assert "the counts are those of all rows" in path.read_text()
    with visiting(browser, path) as page:
        for place in (-6, -3, -1, 1):
            move(page, "threshold", place)
            t = float(page.locator(".live-one").get_attribute("data-threshold"))
            assert t == pytest.approx(1 / (1 + np.exp(-place)), rel=0.02)
            agree(shown(page), expected({"--threshold": str(t)}, proba, truth))


def test_many_rows_of_many_classes_keep_the_counts_of_the_start():
    proba, truth = four_classes(40_000)
    block = LiveOperatingPoint(proba, truth, list("abcd"), SHARES, Decision.by_weights(1 / SHARES, SHARES))
    packed = block.payload()["matrix"]
    assert len(packed["truth"]) < 8000
    cells = 4 * truth + block.called
    kept = np.bincount(cells[block.kept_rows], weights=packed["weight"], minlength=16)
    np.testing.assert_allclose(kept, np.bincount(cells, minlength=16), rtol=1e-6)


@pytest.mark.parametrize("threshold", [0.0123456, 0.0613, 0.7])
def test_a_thinned_page_starts_with_the_figures_of_all_rows(threshold):
    proba, truth = two_classes(60_000)
    used = np.array([0.9, 0.1])
    block = LiveOperatingPoint(
        proba, truth, ["no", "yes"], PRIOR, Decision.at_threshold(threshold, used), cost=(1, 20)
    )
    assert block.is_thinned
    whole = ThresholdCounts.from_scores(proba[:, 1], truth == 1, truth.size)
    assert whole.is_whole
    assert block.figures == operating_figures(whole, whole.cut(block.start_score(1)), 0.1, (1, 20))
    called = Decision.at_threshold(threshold, used).codes(correct_prior(proba, PRIOR, used)) == 1
    assert block.figures["recall"].value == called[truth == 1].mean()


def test_thinned_counts_are_those_of_all_rows():
    rng = np.random.default_rng(0)
    score, yes = rng.random(50_000), rng.random(50_000) < 0.1
    counts = ThresholdCounts.from_scores(score, yes, MOST_CUTS)
    assert not counts.is_whole
    assert counts.thresholds.size < 1.3 * MOST_CUTS
    for i in (0, 5, 700, counts.thresholds.size - 1):
        assert counts.hits[i + 1] == (yes & (score >= counts.thresholds[i])).sum()
        assert counts.alarms[i + 1] == (~yes & (score >= counts.thresholds[i])).sum()


def test_intervals_cover():
    """Precision, alerts and cost hold with at least 95 %, whatever the prior."""
    rng = np.random.default_rng(0)
    truth = {"recall": 0.7, "false": 0.1}
    prior, cost, inside = 0.02, (1.0, 30.0), dict.fromkeys(("precision", "alerts", "cost"), 0)
    right, wrong = prior * truth["recall"], (1 - prior) * truth["false"]
    wanted = {"precision": right / (right + wrong), "alerts": 1e4 * (right + wrong),
              "cost": cost[0] * wrong + cost[1] * (prior - right)}  # fmt: skip
    for _ in range(400):
        hits, alarms = rng.binomial(60, truth["recall"]), rng.binomial(600, truth["false"])
        counts = ThresholdCounts(np.array([0.5, 0.1]), np.array([0, hits, 60]), np.array([0, alarms, 600]))
        figures = operating_figures(counts, 1, prior, cost)
        for name, value in wanted.items():
            inside[name] += figures[name].low <= value <= figures[name].high
    assert min(inside.values()) >= 0.95 * 400


@pytest.mark.parametrize("truth", [[0, 0, 0], [1, 1, 1]])
def test_one_class_in_the_held_out_rows(browser, tmp_path, truth):
    rule = Decision.at_threshold(0.5, PRIOR)
    block = LiveOperatingPoint([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]], truth, ["no", "yes"], PRIOR, rule)
    with visiting(browser, written(tmp_path, block)) as page:
        assert "nothing can be told" in page.locator("[data-part=sentence]").text_content()
        assert page.said == []


def test_bad_input_is_named():
    rule = Decision.at_threshold(0.5, PRIOR)
    with pytest.raises(ValueError, match="proba must name each of the 3 classes"):
        LiveOperatingPoint([[0.9, 0.1]], [0], ["a", "b", "c"], PRIOR, rule)
    with pytest.raises(ValueError, match="cost must be a pair for two classes"):
        LiveOperatingPoint([[0.9, 0.1]], [0], ["a", "b"], PRIOR, rule, cost=np.eye(3))
