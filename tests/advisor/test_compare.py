"""The fair comparison: nothing leaks, the budget is kept, a killed run goes on where it was."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sklearn.datasets import make_classification

from equipoise.advisor._old_treatments import all_treatments
from equipoise.advisor.compare import compare
from equipoise.advisor.compare.decisions import (
    binary_losses,
    decide,
    prior_weights,
    threshold_of,
    threshold_weights,
    tune_weights,
)
from equipoise.advisor.compare.folds import make_folds

PLAIN, THRESHOLD, SMOTE, BOOSTING = (
    dataclasses.replace(all_treatments()[name], candidates=all_treatments()[name].candidates[2:3])
    for name in ("plain", "threshold", "smote", "boosting")
)  # one setting each: what is tested here is the comparing


@pytest.fixture(scope="module")
def data():
    return make_classification(
        400, n_features=8, n_informative=4, weights=[0.9], class_sep=1.2, random_state=0
    )


def test_threshold_weights_decide_like_the_threshold():
    p = np.linspace(0, 1, 101)
    proba = np.column_stack([1 - p, p])
    for t in (0.07, 0.5, 0.83):
        assert threshold_of(threshold_weights(t)) == pytest.approx(t)
        assert np.array_equal(decide(proba, threshold_weights(t)) == 1, p * (1 - t) >= (1 - p) * t)


def test_argmax_of_the_training_prior_is_recovered():
    trained, data = np.array([0.5, 0.5]), np.array([0.9, 0.1])
    assert threshold_of(prior_weights(trained, data)) == pytest.approx(0.1)


def test_binary_losses_agree_with_counting():
    rng = np.random.default_rng(0)
    p, y = rng.random(50).round(1), rng.integers(0, 2, 50)
    for cost in (None, (1.0, 7.0)):
        cuts, losses = binary_losses(p, y, cost)
        for cut, loss in zip(cuts, losses, strict=True):
            called = p >= cut
            missed, alarms = np.sum(~called & (y == 1)), np.sum(called & (y == 0))
            if cost is None:
                expected = 0.5 * (missed / y.sum() + alarms / (1 - y).sum())
            else:
                expected = (cost[0] * alarms + cost[1] * missed) / 50
            assert loss == pytest.approx(expected)


def test_many_classes_remove_the_prior():
    prior = np.array([0.8, 0.15, 0.05])
    rng = np.random.default_rng(0)
    y = rng.choice(3, 3000, p=prior)
    likelihood = np.exp(-0.5 * (rng.normal(y, 1.0)[:, None] - np.arange(3)) ** 2)
    proba = likelihood * prior
    proba /= proba.sum(axis=1, keepdims=True)
    weights = tune_weights(proba, y, prior)
    strength = -np.log(weights[2] / weights[0]) / np.log(prior[2] / prior[0])
    assert 0.7 < strength < 1.3  # the Bayes rule of balanced accuracy removes the prior once


def test_folds_are_stratified_and_disjoint():
    y = np.repeat([0, 1], [90, 10])
    folds = make_folds(y, 5, 2, 0)
    assert len(folds) == 10
    for fold in folds:
        assert y[fold.test].sum() == 2
        assert not set(fold.train) & set(fold.test)


def test_same_seed_same_scores_whatever_else_runs(data):
    X, y = data
    both = compare(X, y, treatments=[PLAIN, THRESHOLD], repeats=1, random_state=3)
    alone = compare(X, y, treatments=[THRESHOLD], repeats=1, random_state=3)
    of_both = both.scores[both.scores.treatment == "threshold"].drop(columns="seconds")
    assert of_both.reset_index(drop=True).equals(alone.scores.drop(columns="seconds"))


def test_labels_do_not_matter(data):
    X, y = data
    names = np.where(y == 1, "ill", "well")
    a = compare(X, y, treatments=[THRESHOLD], repeats=1, random_state=0)
    b = compare(X, names, treatments=[THRESHOLD], repeats=1, random_state=0)
    assert b.task.classes == ("well", "ill")
    assert a.mean("threshold", "average_precision") == b.mean("threshold", "average_precision")


def test_noise_has_no_skill(data):
    """Resampling before the split, or tuning on test rows, would show as skill on mere noise."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)), np.repeat([0, 1], [260, 40])
    result = compare(X, y, treatments=[THRESHOLD, SMOTE, BOOSTING], repeats=1, random_state=0)
    for name in result.treatments:
        assert abs(result.mean(name, "balanced_accuracy") - 0.5) < 0.12
        assert abs(result.mean(name, "roc_auc") - 0.5) < 0.12


def test_a_killed_run_resumes(data, tmp_path, monkeypatch):
    import equipoise.advisor.compare.schedule as schedule

    X, y = data
    settings = {"treatments": [PLAIN, THRESHOLD], "repeats": 1, "random_state": 0}
    whole = compare(X, y, **settings)
    ran = []
    real = schedule.run_cell

    def dying(task, treatment, fold, seed):
        if len(ran) == 5:
            raise KeyboardInterrupt
        ran.append((treatment.name, fold.number))
        return real(task, treatment, fold, seed)

    monkeypatch.setattr(schedule, "run_cell", dying)
    with pytest.raises(KeyboardInterrupt):
        compare(X, y, resume=tmp_path, **settings)
    again = []
    monkeypatch.setattr(schedule, "run_cell", lambda *a: again.append(1) or real(*a))
    resumed = compare(X, y, resume=tmp_path, **settings)
    assert len(again) == 10 - 5
    assert resumed.scores.drop(columns="seconds").equals(whole.scores.drop(columns="seconds"))


def test_a_budget_is_kept_and_what_was_left_out_is_said(data):
    import time

    X, y = data
    started = time.monotonic()
    result = compare(X, y, treatments=[PLAIN, THRESHOLD], repeats=200, budget=6, random_state=0)
    assert time.monotonic() - started < 12
    assert len(result.folds) < 1000
    assert any("budget ended" in note for note in result.notes)
    assert result.scores.groupby("treatment").size().nunique() == 1  # all saw the same folds


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y: compare(X, np.zeros(len(y))), "at least two classes, got only"),
        (lambda X, y: compare(X, y[:-1]), "X and y must have the same length, got 400 and 399"),
        (lambda X, y: compare(X, y, positive=7), "positive must be one of the labels"),
        (lambda X, y: compare(X, y, treatments=["magic"]), "unknown 'magic'; there are 'plain'"),
        (lambda X, y: compare(X, np.r_[1, np.zeros(len(y) - 1)]), "class 1.0 has 1 rows; nested"),
    ],
)
def test_bad_input_is_named(data, call, message):
    with pytest.raises(ValueError, match=message):
        call(*data)


def test_a_tight_budget_tunes_everybody_less_and_keeps_the_baselines(monkeypatch):
    import equipoise.advisor.compare.planning as planning

    treatments = [t for t in all_treatments().values() if t.name in ("plain", "smote", "boosting", "blend")]
    seconds = {"plain": 0.1, "smote": 0.1, "boosting": 0.8, "blend": 5.0}
    monkeypatch.setattr(planning, "_time_fits", lambda *a: (seconds, []))

    def plan(left):
        return planning.make_plan(None, treatments, None, 0, minimum=5, n_jobs=1, left=lambda: left)

    rich, tight, poor = plan(1000), plan(60), plan(30)
    assert [t.name for t in rich.treatments] == ["plain", "smote", "boosting", "blend"]
    for made, settings in ((rich, 4), (tight, 2), (poor, 1)):
        assert made.settings == settings
        assert {len(t.candidates) for t in made.treatments} == {settings}
        assert {"plain", "smote", "boosting"} <= {t.name for t in made.treatments}
    assert any("Blend" in note and "left out" in note for note in poor.notes)
    assert any("over 1 instead of 4 settings" in note for note in poor.notes)


def test_a_treatment_that_fails_is_left_out_and_named(data):
    def broken(task, seed):
        raise ValueError("no luck")

    X, y = data
    bad = dataclasses.replace(THRESHOLD, name="bad", label="Bad", build=broken)
    result = compare(X, y, treatments=[PLAIN, bad], repeats=1, random_state=0)
    assert list(result.treatments) == ["plain"]
    assert any("Bad was left out: it failed (ValueError: no luck)" in note for note in result.notes)


def test_a_budget_that_ends_early_keeps_all_treatments_on_fewer_folds(data, monkeypatch):
    import equipoise.advisor.compare.schedule as schedule

    X, y = data
    real = schedule._run_fold

    def slow(kept, fold, *rest):
        finished, failed = real(kept, fold, *rest)
        return ({} if fold.number == 3 else finished), failed

    monkeypatch.setattr(schedule, "_run_fold", slow)
    result = compare(X, y, treatments=[PLAIN, THRESHOLD], repeats=1, budget=500, random_state=0)
    assert sorted(result.treatments) == ["plain", "threshold"]
    assert len(result.folds) == 3
    assert any("after 3 of 5 folds" in note for note in result.notes)
