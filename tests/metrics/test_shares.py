"""Laws of shares: rows that belong together count as fewer, and promises hold for them too."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.metrics import (
    Decision,
    UnmetWish,
    Wish,
    choose_decision,
    design_effects,
    judge_decision,
)
from equipoise.metrics.shares import fold_effects

PRIOR = np.array([0.7, 0.3])


def patients(rng, n=60, visits=8, alike=0.9):
    """Scores of patients with several visits each, most of whose spread is between patients."""
    who = np.repeat(np.arange(n), visits)
    y = (np.arange(n) % 10 < 3).astype(np.int64)[who]
    z = np.sqrt(alike) * rng.normal(size=n)[who] + np.sqrt(1 - alike) * rng.normal(size=n * visits) + y
    p = 1 / (1 + np.exp(-z))
    return np.c_[1 - p, p], y, who


def recall_in_the_long_run(threshold):
    """The share of positives whose score, N(1, 1), lies at or above the threshold."""
    from scipy.stats import norm

    return norm.sf(np.log(threshold / (1 - threshold)) - 1)


def test_copies_count_once_and_single_rows_fully():
    rng = np.random.default_rng(0)
    y, calls = np.ones(200, dtype=int), rng.integers(0, 2, 200)
    assert design_effects(y, calls, np.arange(200), 2) == pytest.approx([1, 1])
    repeated = design_effects(np.repeat(y, 5), np.repeat(calls, 5), np.repeat(np.arange(200), 5), 2)
    assert repeated[1] == pytest.approx(5, rel=0.03)  # a little more: two hundred groups, not a thousand rows
    unrelated = design_effects(np.repeat(y, 5), rng.integers(0, 2, 1000), np.repeat(np.arange(200), 5), 2)
    assert unrelated[1] == pytest.approx(1, abs=0.2)


def test_rows_called_alike_count_as_groups_and_one_group_as_one_row():
    y = np.ones(24, dtype=int)
    assert design_effects(y, y, np.repeat(np.arange(8), 3), 2)[1] >= 3
    assert design_effects(y, y, np.zeros(24), 2)[1] == 24


def test_intervals_of_grouped_rows_cover_the_long_run():
    """Without the groups the same intervals are far too narrow."""
    rng, rule = np.random.default_rng(1), Decision.at_threshold(0.6, PRIOR)
    true, held, naive, tries = recall_in_the_long_run(0.6), 0, 0, 300
    for _ in range(tries):
        proba, y, who = patients(rng)
        low, high = judge_decision(rule, proba, y, groups=who).figures["recall"].long_run
        held += low <= true <= high
        low, high = judge_decision(rule, proba, y).figures["recall"].long_run
        naive += low <= true <= high
    assert held >= 0.93 * tries
    assert naive <= 0.7 * tries


def test_intervals_cover_a_model_that_was_none_of_those_judged():
    """Five models with recalls of their own were judged, and their mean is delivered."""
    rng, rule = np.random.default_rng(3), Decision.at_threshold(0.5, PRIOR)
    y, folds, held, naive, tries = np.ones(400, dtype=int), np.arange(400) % 5, 0, 0, 300
    for _ in range(tries):
        recalls = 0.7 + 0.1 * rng.normal(size=5)
        score = (rng.random(400) < recalls[folds]).astype(float)
        proba = np.column_stack([1 - score, score])
        for known in (None, folds):
            judged = judge_decision(rule, proba, y, data_prior=PRIOR, folds=known)
            low, high = judged.figures["recall"].long_run
            if known is None:
                naive += low <= 0.7 <= high
            else:
                held += low <= 0.7 <= high
    assert held >= 0.9 * tries
    assert naive <= 0.75 * tries


def test_folds_that_differ_by_luck_alone_seldom_count_for_less():
    rng = np.random.default_rng(4)
    y, folds = np.repeat([0, 1], 500), np.arange(1000) % 5
    effects = [fold_effects(y, (rng.random(1000) < 0.3).astype(int), folds, 2) for _ in range(200)]
    assert np.mean(effects) < 2
    assert np.median(effects) == 1.0


def test_the_luck_of_groups_is_not_taken_for_differences_between_folds():
    """Counted twice, it left ranges of 0 to 1 for a hundred patients with eight visits each."""
    rng, rule, effects, widths, held, tries = (
        np.random.default_rng(5),
        Decision.at_threshold(0.6, PRIOR),
        [],
        [],
        0,
        200,
    )
    for _ in range(tries):
        proba, y, who = patients(rng, n=100)
        folds, calls = who % 5, rule.codes(proba)
        effects.append(fold_effects(y, calls, folds, 2, design_effects(y, calls, who, 2)))
        figure = judge_decision(rule, proba, y, groups=who, folds=folds).figures["recall"]
        widths.append(figure.long_run[1] - figure.long_run[0])
        held += figure.long_run[0] <= recall_in_the_long_run(0.6) <= figure.long_run[1]
    assert np.mean(effects) < 2
    assert np.median(effects) == 1.0
    assert np.median(widths) < 0.5
    assert held >= 0.93 * tries


def test_fresh_batches_of_groups_lie_in_their_range():
    rng, rule, held, tries = np.random.default_rng(2), Decision.at_threshold(0.6, PRIOR), 0, 300
    for _ in range(tries):
        proba, y, who = patients(rng)
        figure = judge_decision(rule, proba, y, groups=who).figures["recall"]
        fresh, truth, _ = patients(rng, n=30)
        held += figure.low <= rule.codes(fresh)[truth == 1].mean() <= figure.high
    assert held >= 0.93 * tries


def test_a_recall_promised_to_groups_is_kept():
    rng, wish, kept, tries = np.random.default_rng(3), Wish.make(recall=0.6), 0, 200
    for _ in range(tries):
        proba, y, who = patients(rng)
        rule = choose_decision(proba, y, wish, data_prior=PRIOR, groups=who)
        kept += recall_in_the_long_run(rule.threshold) >= 0.6
    assert kept >= 0.93 * tries


def test_what_groups_cannot_promise_is_said():
    proba, y, who = patients(np.random.default_rng(4))
    choose_decision(proba, y, Wish.make(recall=0.95), data_prior=PRIOR)
    with pytest.raises(UnmetWish, match="144 held-out positives that are worth 18 for belonging together"):
        choose_decision(proba, y, Wish.make(recall=0.95), data_prior=PRIOR, groups=who)
    with pytest.raises(UnmetWish, match="precision"):
        choose_decision(proba, y, Wish.make(precision=0.9), data_prior=PRIOR, groups=who)
    choose_decision(proba, y, Wish.make(precision=0.25), data_prior=PRIOR, groups=who)


def test_costs_by_row_are_resampled_by_group():
    proba, y, who = patients(np.random.default_rng(5))
    costs = np.ones(len(y)), np.full(len(y), 5.0)
    rule = Decision.at_threshold(0.5, PRIOR, Wish.make(cost={"fp": "a", "fn": "b"}))
    apart = judge_decision(rule, proba, y, row_costs=costs).figures["cost"]
    together = judge_decision(rule, proba, y, row_costs=costs, groups=who).figures["cost"]
    assert together.value == apart.value
    assert together.high - together.low > 1.5 * (apart.high - apart.low)
