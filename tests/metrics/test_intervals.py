"""Bootstrap: the fast form against a plain loop, scipy's intervals, and coverage of the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from equipoise import metrics
from equipoise.metrics import METRICS, bootstrap_difference, bootstrap_interval
from equipoise.metrics.intervals import bootstrap, resample_weights


def sample(n_classes=2, n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, n, p=np.arange(n_classes, 0, -1) / np.arange(n_classes + 1).sum())
    logits = rng.normal(size=(n, n_classes)) + 1.2 * np.eye(n_classes)[y]
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return y, proba


def arguments(name, n_classes):
    y, proba = sample(n_classes)
    keywords = {"cost_matrix": 1 - np.eye(n_classes)} if name == "expected_cost" else {}
    metric = metrics.get_metric(name, **keywords)
    values, more = metric.arguments(y, proba)
    return metric, y, values, more


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", sorted(METRICS))
def test_every_metric_has_the_interval_that_a_plain_loop_gives(name, n_classes):
    if n_classes > 2 and not METRICS[name].multiclass:
        pytest.skip("takes two classes")
    metric, y, values, more = arguments(name, n_classes)
    fast = bootstrap_interval(metric, y, values, n_resamples=40, random_state=3, **more)
    slow = bootstrap_interval(lambda a, b: metric(a, b, **more), y, values, n_resamples=40, random_state=3)
    assert fast.low <= fast.high
    for field in ("estimate", "low", "high", "standard_error"):
        assert getattr(fast, field) == pytest.approx(getattr(slow, field), abs=1e-10)


def test_resamples_keep_the_strata():
    strata = [np.array([0, 3]), np.array([1, 2, 4])]
    weights = resample_weights(strata, 500, np.random.default_rng(0))
    assert (weights[:, strata[0]].sum(axis=1) == 2).all()
    assert (weights[:, strata[1]].sum(axis=1) == 3).all()
    np.testing.assert_allclose(weights.mean(axis=0), 1, atol=0.15)


@pytest.mark.parametrize("method", ["percentile", "basic", "bca"])
def test_agreement_with_scipy_on_two_strata(method):
    rng = np.random.default_rng(5)
    a, b = rng.exponential(size=40), rng.exponential(size=70)
    both = np.concatenate([a, b])

    def ratio_of_weights(weights):
        return (weights[:, :40] @ both[:40] / 40) / (weights[:, 40:] @ both[40:] / 70)

    ours = bootstrap(
        ratio_of_weights,
        [np.arange(40), np.arange(40, 110)],
        method=method,
        n_resamples=30_000,
        random_state=1,
    )
    theirs = stats.bootstrap(
        (a, b),
        lambda x, y, axis: x.mean(axis) / y.mean(axis),
        method=method,
        n_resamples=30_000,
        rng=np.random.default_rng(2),
    )
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.02)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.02)
    assert ours.standard_error == pytest.approx(theirs.standard_error, rel=0.03)


def test_grouped_jackknife_has_the_acceleration_of_the_full_one(monkeypatch):
    from equipoise.metrics import intervals

    x = np.random.default_rng(0).exponential(size=4000)
    parts = [np.arange(4000)]

    def mean(weights):
        return weights @ x / weights.sum(-1)

    grouped = intervals._acceleration(mean, parts, np.random.default_rng(1))
    expected = ((x - x.mean()) ** 3).sum() / 6 / (((x - x.mean()) ** 2).sum()) ** 1.5
    monkeypatch.setattr(intervals, "_GROUPS", 4000)
    assert intervals._acceleration(mean, parts, np.random.default_rng(1)) == pytest.approx(expected, rel=0.01)
    assert grouped == pytest.approx(expected, abs=0.01)


def test_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    truth = stats.norm.cdf(1 / np.sqrt(2))  # AUC of N(1, 1) against N(0, 1)
    y = np.repeat([0, 1], [80, 40])
    inside = [
        truth in bootstrap_interval("auc", y, rng.normal(size=120) + y, n_resamples=300, random_state=seed)
        for seed in range(150)
    ]
    assert 0.88 <= np.mean(inside) <= 0.99


def test_same_seed_same_interval_and_more_samples_narrower():
    y, proba = sample(n=100)
    one = bootstrap_interval("auc", y, proba[:, 1], random_state=7)
    assert one == bootstrap_interval("auc", y, proba[:, 1], random_state=7)
    assert one != bootstrap_interval("auc", y, proba[:, 1], random_state=8)
    y, proba = sample(n=4000)
    many = bootstrap_interval("auc", y, proba[:, 1], random_state=7, n_resamples=200)
    assert many.high - many.low < (one.high - one.low) / 3


def test_a_model_does_not_differ_from_itself_and_a_better_one_does():
    y, proba = sample(n=400)
    same = bootstrap_difference("brier", y, proba, proba, random_state=0)
    assert same.low == same.high == 0
    worse = np.random.default_rng(1).random(400)
    assert bootstrap_difference("auc", y, proba[:, 1], worse, random_state=0, method="bca").low > 0


def test_table_of_intervals_holds_the_estimates():
    y, proba = sample(3)
    table = metrics.interval_table(y, proba, ["auc", "g_mean", "brier"], n_resamples=50, random_state=0)
    for name, row in table.iterrows():
        assert row["estimate"] == pytest.approx(METRICS[name].evaluate(y, proba))
        assert row["low"] <= row["estimate"] <= row["high"]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"confidence": 1.0}, r"confidence must lie in \(0, 1\), got 1"),
        ({"method": "t"}, r"method must be one of .* got 't'"),
        ({"n_resamples": 1}, "n_resamples must be at least 2, got 1"),
    ],
)
def test_bad_options_are_named(keywords, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_interval("auc", [0, 1], [0, 1], **keywords)


def test_a_vanished_class_is_said():
    with pytest.raises(ValueError, match=r"undefined in \d+ of 100 resamples .* use stratified=True"):
        bootstrap_interval(
            "auc", [0, 0, 0, 1], [0, 1, 2, 3], stratified=False, n_resamples=100, random_state=0
        )
    with pytest.raises(TypeError, match="metric must be a name, a Metric or a function, got int"):
        bootstrap_interval(3, [0, 1], [0, 1])
