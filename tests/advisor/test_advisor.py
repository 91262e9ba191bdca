"""The advisor: a classifier that keeps its budget, its word and its promises."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.inspection import permutation_importance
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import check_classifier_data_not_an_array, check_estimator

import equipoise
from equipoise.advisor import Advisor, compare, load
from equipoise.advisor.bags import Bag, FoldModel
from equipoise.advisor.page import build_report
from equipoise.advisor.splits import make_folds
from equipoise.advisor.treatments import Context, advised_treatments
from equipoise.metrics import UnmetWish, Wish, binomial_interval, choose_decision, expected_cost

FAST = {"treatments": ["lightgbm", "logistic"], "trials": 0, "budget": 600}


@pytest.fixture(scope="module")
def data():
    return make_classification(
        600, n_features=8, n_informative=4, weights=[0.9], class_sep=1.2, random_state=0
    )


@pytest.fixture(scope="module")
def fitted(data):
    return Advisor(cost={"fp": 1, "fn": 20}, **FAST).fit(*data)


@pytest.mark.slow
def test_it_is_a_scikit_learn_classifier():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(Advisor(treatments=["logistic"], trials=0, budget=600))


def test_what_only_turns_into_an_array_is_read_as_one():
    """One of scikit-learn's checks, which take minutes all together."""
    check_classifier_data_not_an_array("Advisor", Advisor(treatments=["logistic"], trials=0, budget=600))


def test_the_same_seed_gives_the_same_bits(data):
    X, y = data
    settings = {**FAST, "trials": 2, "treatments": ["lightgbm"]}
    first, second = (Advisor(random_state=3, **settings).fit(X, y).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("n_jobs", [-1, None, -2, np.int64(2)])
def test_threads_are_counted_as_in_scikit_learn(data, n_jobs, monkeypatch):
    """The same bits, and on as many threads as joblib would take."""
    from equipoise.advisor import engines

    asked = []
    monkeypatch.setattr(
        engines, "_on_threads", lambda n, plain=engines._on_threads: (asked.append(n), plain(n))[1]
    )
    wanted = joblib.effective_n_jobs(n_jobs)
    settings = {**FAST, "treatments": ["lightgbm"]}
    found = Advisor(n_jobs=n_jobs, **settings).fit(*data).predict_proba(data[0])
    np.testing.assert_array_equal(found, Advisor(**settings).fit(*data).predict_proba(data[0]))
    assert asked == ([wanted] if wanted > 1 else [])


def test_judged_is_delivered(data):
    """The cost on fresh rows lies in the interval that was shown, and the rule is that of the calibrated cost."""
    X, y = make_classification(
        6000, n_features=8, n_informative=4, weights=[0.9], class_sep=1.2, random_state=5
    )
    advisor = Advisor(cost={"fp": 1, "fn": 20}, **FAST).fit(X[:2000], y[:2000])
    figure = advisor.operating_point_.figures["cost"]
    assert (
        figure.low
        <= expected_cost(y[2000:], advisor.predict(X[2000:]), cost_matrix=[[0, 1], [20, 0]])
        <= figure.high
    )
    assert advisor.operating_point_.threshold == pytest.approx(1 / 21)
    proba = advisor.predict_proba(X[2000:])[:, 1]
    np.testing.assert_array_equal(advisor.predict(X[2000:]), (proba >= 1 / 21).astype(int))
    assert abs(proba.mean() - y[2000:].mean()) < 0.02


class Sure:
    """Answers every row alike."""

    classes_ = np.array([0, 1])

    def __init__(self, positive):
        self.positive = positive

    def predict_proba(self, X):
        return np.tile([1 - self.positive, self.positive], (len(X), 1))


def test_a_bag_answers_with_the_mean_probability_of_its_models():
    """What is delivered is on average what was judged, of rows with one held-out model or with one a repeat."""
    prior, treatment, X = np.array([0.9, 0.1]), advised_treatments(["logistic"])[0], np.zeros((2, 3))

    def bag(*positive):
        models = [FoldModel(Sure(p), "linear", prior, prior) for p in positive]
        return Bag("a", treatment, {}, models, models[0].log_proba(X), 0.0)

    both = bag(0.05, 0.4).joined(bag(0.3, 0.01)).joined(bag(0.1, 0.2))
    assert np.exp(bag(0.05, 0.4).log_proba({"linear": X}))[:, 1] == pytest.approx([0.225, 0.225])
    assert np.exp(both.log_proba({"linear": X}))[:, 1] == pytest.approx([1.06 / 6] * 2)
    assert np.exp(both.held_out)[:, 1] == pytest.approx([0.15, 0.15])


def test_with_many_classes_the_best_constant_call_stands_in_the_table():
    rng = np.random.default_rng(0)
    y = rng.choice(["ill", "so so", "well"], 200, p=[0.2, 0.3, 0.5])
    X = rng.normal(size=(200, 2)) + np.c_[y == "ill", y == "well"]
    cost = {"ill": {"so so": 1, "well": 90}, "so so": {"ill": 1, "well": 5}, "well": {"ill": 1, "so so": 1}}
    advisor = Advisor(cost=cost, treatments=["logistic"], trials=0).fit(X, y)
    last = advisor.leaderboard_.loc["always-same"]
    assert last["treatment"] == "always call “so so”"
    assert last["cost"] == pytest.approx(np.mean(y != "so so"))
    told = build_report(advisor, advisor.table_, None).to_markdown()
    assert f"A case costs {advisor.operating_point_.figures['cost'].value:.3g} on average" in told
    assert f"to always call “so so” costs {last['cost']:.3g}" in told
    plain = Advisor(treatments=["logistic"], trials=0).fit(X, y).leaderboard_
    assert plain["treatment"]["always-same"] == "always call “well”"


def test_cost_beats_both_constant_answers(fitted):
    board = fitted.leaderboard_
    assert (
        board.loc[fitted.verdict_.recommended, "cost"]
        < board.loc[["always-positive", "never-positive"], "cost"].min()
    )


def test_the_summary_and_the_leaderboard_show_the_same_number(fitted):
    shown = fitted.leaderboard_.loc[fitted.verdict_.recommended]
    for name in ("cost", "balanced_accuracy"):
        assert fitted.operating_point_.figures[name].value == pytest.approx(shown[name])


@pytest.mark.parametrize("seconds", [0.05, 4.0])
def test_a_budget_is_kept_and_never_fatal(data, seconds):
    started = time.process_time()  # beside others a budget buys less work, not more
    advisor = Advisor(budget=seconds, treatments=["lightgbm", "logistic", "kernel"], n_jobs=1).fit(*data)
    assert time.process_time() - started < 1.5 * seconds + 4
    assert np.isfinite(advisor.predict_proba(data[0])).all()


def test_what_was_not_tried_is_said(data):
    notes = " ".join(Advisor(budget=0.05, treatments=["lightgbm", "extra-trees"]).fit(*data).notes_)
    assert "Not tried: extremely randomized trees, because the budget is too short." in notes


def test_a_scikit_learn_classifier_and_text_columns_are_fine(data):
    X, y = data
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(8)])
    frame["town"] = np.where(y == 1, "Ulm", "Bonn")
    board = compare(frame, np.where(y == 1, "ill", "well"), treatments=["lightgbm", GaussianNB()])
    assert {"lightgbm", "GaussianNB"} <= set(board.index)
    assert board.loc["lightgbm", "balanced_accuracy"] > 0.99  # the text says it all


def test_a_failing_treatment_does_not_lose_the_others(data):
    class Broken(GaussianNB):
        def fit(self, X, y):
            raise RuntimeError("no such luck")

    advisor = Advisor(**{**FAST, "treatments": ["lightgbm", Broken()]}).fit(*data)
    assert "Not tried: Broken, because it failed: no such luck." in advisor.notes_
    assert "lightgbm" in advisor.leaderboard_.index


def test_groups_and_unnamed_near_copies_stay_together():
    """Near-copies of patients with random labels: truth is chance, whether or not the groups are named."""
    rng = np.random.default_rng(0)
    patients, label = rng.normal(size=(120, 6)), rng.random(120) < 0.3
    X = np.repeat(patients, 6, axis=0) + 0.01 * rng.normal(size=(720, 6))
    y, who = np.repeat(label, 6).astype(int), np.repeat(np.arange(120), 6)
    each = np.arange(720)
    apart = compare(X, y, treatments=["lightgbm"], groups=each).loc["lightgbm", "balanced_accuracy"]
    together = compare(X, y, treatments=["lightgbm"], groups=who).loc["lightgbm", "balanced_accuracy"]
    unnamed = Advisor(**{**FAST, "treatments": ["lightgbm"]}).fit(X, y)
    assert apart > 0.9
    assert together < 0.65
    assert unnamed.leaderboard_.loc["lightgbm", "balanced_accuracy"] < 0.65
    assert any(
        "near-copies of one another" in note and "one side of every split" in note for note in unnamed.notes_
    )


def test_ranges_of_rows_that_belong_together_are_those_of_fewer_rows(tmp_path):
    """Forty patients with ten visits each promise less than four hundred patients."""
    rng = np.random.default_rng(3)
    risk = rng.normal(size=40)
    who, y = np.repeat(np.arange(40), 10), np.repeat((risk + rng.normal(size=40) > 0.8).astype(int), 10)
    X = np.c_[risk[who] + 0.5 * rng.normal(size=400), rng.normal(size=400)]
    advisor = Advisor(**{**FAST, "treatments": ["logistic"]}).fit(X, y, groups=who)
    figure = advisor.operating_point_.figures["recall"]
    rows, exact = int((y == 1).sum()), np.subtract(*figure.long_run[::-1])
    alone = binomial_interval(round(figure.value * rows), rows)
    assert exact > 1.8 * (alone[1] - alone[0])
    again = load(advisor.save(tmp_path / "model"))
    assert again.operating_point_.figures["recall"] == figure
    wish = {"recall": 0.5, "confidence": 0.8}
    assert (
        again.retuned(**wish).operating_point_.threshold == advisor.retuned(**wish).operating_point_.threshold
    )


def test_time_is_judged_on_the_future():
    """What held in the past and turned since is not trusted."""
    rng = np.random.default_rng(1)
    X, when = rng.normal(size=(900, 3)), np.arange(900)
    y = ((X[:, 0] * np.where(when < 450, 1, -1) + 0.3 * rng.normal(size=900)) > 0.8).astype(int)
    shuffled = compare(X, y, treatments=["logistic"]).loc["logistic", "average_precision"]
    forward = Advisor(**{**FAST, "treatments": ["logistic"]}).fit(X, y, time=when)
    assert forward.leaderboard_.loc["logistic", "average_precision"] < shuffled
    assert len(forward.bags_[0].models) == 1  # fitted again to all rows
    assert np.isfinite(forward.predict_proba(X)).all()


def _few_of(rare, n=120, classes=2):
    y = np.arange(n) % (classes - 1)
    y[rare] = classes - 1
    return np.random.default_rng(0).normal(size=(n, 4)), y


@pytest.mark.parametrize(
    ("rare", "keys", "said"),
    [
        ([50], {}, "The class “1” has only one row: a model"),
        (range(40, 50), {"groups": np.arange(120) // 10}, "The class “1” has rows in only one group"),
        ([50, 51], {"time": np.arange(120) // 4}, "The class “1” has rows at only one time"),
        (range(100, 120), {"time": np.arange(120)}, "leaves no past in which every class occurs"),
        (
            range(0, 120, 2),
            {"time": np.arange(120), "groups": np.arange(120) % 3},
            "name no groups beside the time",
        ),
    ],
)
def test_a_class_that_cannot_be_learned_and_judged_ends_in_a_sentence(rare, keys, said):
    X, y = _few_of(rare)
    with pytest.raises(ValueError, match=said):
        Advisor(**FAST).fit(X, y, **keys)


@pytest.mark.parametrize(
    ("rare", "keys", "said"),
    [
        ([50], {}, "The class “2” has only one row"),
        (range(40, 50), {"groups": np.arange(120) // 10}, "The class “2” has rows in only one group"),
        ([115], {"time": np.arange(120)}, "The class “2” has only one row"),
        (range(20), {"time": np.arange(120)}, "The class “2” has no row late enough"),
    ],
)
def test_one_of_many_classes_that_cannot_be_judged_is_said(rare, keys, said):
    X, y = _few_of(rare, classes=3)
    X[:, 0] += 6 * (y == 1)
    advisor = Advisor(**FAST).fit(X, y, **keys)
    assert any(note.startswith(said) for note in advisor.notes_)
    first_page = build_report(advisor, advisor.table_, None).to_markdown().split("## Operating point")[0]
    assert said in first_page
    shown = advisor.leaderboard_.loc[advisor.verdict_.recommended, "balanced_accuracy"]
    assert advisor.operating_point_.figures["balanced_accuracy"].value == pytest.approx(shown)
    assert advisor.operating_point_.figures["recall of class 1"].value > 0.8
    assert np.isfinite(advisor.predict_proba(X)).all()


def test_folds_learn_every_class_and_keep_groups_on_one_side():
    rng = np.random.default_rng(0)
    for seed in range(30):
        groups = rng.integers(0, 12, 200)
        y = (rng.random(12) < 0.2)[groups].astype(int)
        y[groups % 5 == 2] = 1  # at least two groups have it, early and late
        time = groups // 3 + 0.5 * rng.random(200)
        for folds in (
            make_folds(y, 5, seed, groups=groups),
            make_folds(y, 3, seed, groups=groups, time=time),
        ):
            assert set(np.concatenate([y[fold.test] for fold in folds])) == {0, 1}
            for fold in folds:
                assert set(y[fold.train]) == {0, 1}
                assert not set(groups[fold.train]) & set(groups[fold.test])


def test_every_treatment_can_be_judged_on_the_future():
    """The last fit, to all rows, has none to validate on."""
    rng = np.random.default_rng(2)
    X, days = rng.normal(size=(300, 3)), pd.date_range("2024-01-01", periods=300).astype(str)
    y = (X[:, 0] + rng.normal(size=300) > 1.2).astype(int)
    for treatment in advised_treatments():
        if treatment.applies(Context(seed=0)):
            continue  # it is not installed
        advisor = Advisor(treatments=[treatment.name], trials=0, budget=3600).fit(X, y, time=days)
        assert np.isfinite(advisor.predict_proba(X)).all(), treatment.name


def test_many_classes_and_labels_of_any_type():
    X, codes = make_classification(500, n_classes=3, n_informative=5, weights=[0.7, 0.2, 0.1], random_state=1)
    y = np.array(["c", "a", "b"])[codes]
    advisor = Advisor(**FAST).fit(X, y)
    assert advisor.classes_.tolist() == ["a", "b", "c"]
    proba = advisor.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert np.mean(advisor.classes_[proba.argmax(axis=1)] == y) > 0.8
    costs = np.array([[0, 1, 1], [50, 0, 50], [1, 1, 0]])  # over the sorted classes: never miss a "b"
    careful = Advisor(cost=costs, **FAST).fit(X, y)
    assert np.mean(careful.predict(X)[y == "b"] == "b") >= np.mean(advisor.predict(X)[y == "b"] == "b")
    np.testing.assert_array_equal(
        careful.predict(X), careful.classes_[(careful.predict_proba(X) @ costs).argmin(axis=1)]
    )


@pytest.mark.parametrize("rare", ["a", 9, False, "10"])
def test_costs_and_priors_follow_the_names_when_the_rare_class_is_sorted_first(data, rare, tmp_path):
    """Bayes' answer from the probabilities, whether the costs come as a table, a frame or by name."""
    X, codes = data
    common = {"a": "b", 9: 10, False: True, "10": "9"}[rare]
    y = np.array([common, rare])[codes]
    low, high = np.unique(y).tolist()
    costs = {rare: 20.0, common: 3.0}
    table = np.array([[0, costs[low]], [costs[high], 0]])
    frame = pd.DataFrame(table, [low, high], [low, high]).iloc[::-1]
    first = Advisor(cost=costs, **{**FAST, "treatments": ["logistic"]}).fit(X, y)
    proba = first.predict_proba(X)
    wanted = first.classes_[np.argmin(proba @ table, axis=1)]
    np.testing.assert_array_equal(first.predict(X), wanted)
    assert first.operating_point_.threshold == pytest.approx(3 / 23)
    paid = np.where(first.predict(X) == y, 0, np.where(y == rare, 20, 3)).mean()
    assert first.operating_point_.figures["cost"].value == pytest.approx(paid, rel=0.5)
    loaded = load(Advisor(**{**first.get_params(), "cost": frame}).fit(X, y).save(tmp_path / "model"))
    assert loaded.get_params()["cost"][str(rare)][str(common)] == 20
    plain = Advisor(**{**FAST, "treatments": ["logistic"]}).fit(X, y)
    for form in (table, frame, costs, {"fp": 3, "fn": 20}):
        np.testing.assert_array_equal(plain.retuned(cost=form).predict(X), wanted)
    np.testing.assert_array_equal(loaded.predict(X), wanted)
    odds = proba[:, list(first.classes_).index(rare)] / proba[:, list(first.classes_).index(common)]
    shares = [0.25, 0.75] if rare == low else [0.75, 0.25]
    for prior in (shares, {rare: 0.25, common: 0.75}, pd.Series({common: 0.75, rare: 0.25}), 0.25):
        moved = plain.retuned(prior=prior).predict_proba(X)
        now = moved[:, list(first.classes_).index(rare)] / moved[:, list(first.classes_).index(common)]
        np.testing.assert_allclose(now, odds * (0.25 / 0.75) / (codes.mean() / (1 - codes.mean())), rtol=1e-6)


def test_a_gain_for_what_is_right_is_kept_in_a_saved_model(data, tmp_path):
    X, y = data
    costs = [[0, 1], [20, -5]]
    model = Advisor(cost=costs, **{**FAST, "treatments": ["logistic"]}).fit(X, y)
    loaded = load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(X), (loaded.predict_proba(X) @ costs).argmin(axis=1))
    with pytest.raises(ValueError, match="charge errors more"):
        model.retuned(cost=[[1, 0], [0, 1]])


@pytest.mark.parametrize("dtype", ["string", "category", "boolean", "Int64", object])
def test_labels_of_any_dtype_come_back_as_they_are_and_gaps_are_said(data, dtype):
    X, codes = data
    plain = {"boolean": codes == 0, "Int64": codes, object: codes}.get(dtype, np.where(codes == 1, "a", "b"))
    y = pd.Series(plain, dtype=dtype)
    model = Advisor(**{**FAST, "treatments": ["logistic"]}).fit(pd.DataFrame(X), y)
    assert model.classes_.dtype == np.asarray(plain).dtype
    assert np.mean(model.predict(pd.DataFrame(X)) == plain) > 0.6
    y = y.copy()
    y[3] = None
    with pytest.raises(ValueError, match="y must have a label in every row, got 1 missing"):
        model.fit(X, y)


def test_durations_are_numbers_and_columns_may_have_any_names(data, tmp_path):
    X, y = data
    frame = pd.DataFrame(X[:, :2], columns=pd.MultiIndex.from_product([["x"], ["a", "b"]]))
    frame[("x", "wait")] = pd.to_timedelta(3600 * (1 + y), "s")
    frame.iloc[3, 2] = pd.NaT
    model = Advisor(**{**FAST, "treatments": ["lightgbm"]}).fit(frame, y)
    assert [column.kind for column in model.schema_.columns] == ["number"] * 3
    assert model.score(frame.iloc[:, ::-1], y) > 0.99  # the wait says it all
    loaded = load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="a loaded model has no table to report on"):
        loaded.report(tmp_path / "out")
    with pytest.raises(ValueError, match="must hold a date or a number in every row, got nan in row 1"):
        model.fit(frame, y, time=np.r_[np.nan, np.arange(1, len(y))])


def test_costs_by_row(data):
    X, y = data
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(8)])
    frame["amount"] = np.random.default_rng(0).exponential(100, len(y))
    advisor = Advisor(cost={"fp": 5, "fn": "amount"}, **FAST).fit(frame, y)
    proba = advisor.predict_proba(frame)[:, 1]
    expected = proba * frame["amount"].to_numpy() >= (1 - proba) * 5
    np.testing.assert_array_equal(advisor.predict(frame), expected.astype(int))
    assert advisor.operating_point_.threshold is None  # each row has its own
    paid = advisor.operating_point_.figures["cost"].value
    assert paid < frame["amount"][y == 1].sum() / len(y)  # better than never
    with pytest.raises(ValueError, match="'amount'"):
        advisor.predict(frame.drop(columns="amount").assign(amount=np.nan))


def test_costs_by_row_stay_with_their_rows_in_samples_groups_and_the_future(data, monkeypatch):
    """What the decision is said to cost is what the leaderboard says, also where rows are a sample."""
    X, y = make_classification(3000, n_features=6, weights=[0.95], class_sep=0.5, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["amount"] = np.random.default_rng(0).exponential(100, len(y)).round(2)
    settings = {**FAST, "treatments": ["logistic"], "cost": {"fp": 5, "fn": "amount"}}
    whole = Advisor(**settings).fit(frame, y)
    when = np.arange(len(y))
    found = [
        whole,
        Advisor(**settings).fit(frame, y, time=when),
        Advisor(**settings).fit(frame, y, groups=when // 5),
    ]
    for name in ("MOST_COMPARED", "_LEAST_COMPARED"):
        monkeypatch.setattr(f"equipoise.advisor._advisor.{name}", 1000)
    monkeypatch.setattr("equipoise.advisor._advisor._COMPARED_A_SECOND", 0)
    found.append(Advisor(**settings).fit(frame, y))
    for advisor in found:
        paid = advisor.operating_point_.figures["cost"].value
        assert paid == pytest.approx(advisor.leaderboard_.loc["logistic", "cost"])
        kept = advisor.compared_.row_values["amount"][advisor.judged_]
        np.testing.assert_array_equal(advisor.row_costs_[1], kept)
        never = np.average(np.where(advisor.truth_ == 1, kept, 0), weights=_stands_for(advisor, y))
        assert advisor.leaderboard_.loc["never-positive", "cost"] == pytest.approx(never)
    assert len(found[-1].truth_) == 1000
    figure = whole.operating_point_.figures["cost"]
    assert figure.low < found[-1].operating_point_.figures["cost"].value < figure.high
    written = frame.assign(amount=[f"{value:.2f}".replace(".", ",") for value in frame["amount"]])
    again = Advisor(**settings).fit(written, y)
    np.testing.assert_array_equal(again.predict(written), found[-1].predict(frame))


def _stands_for(advisor, y):
    """How many of all rows each held-out row stands for."""
    return (np.bincount(y) / np.bincount(advisor.truth_))[advisor.truth_]


def test_treatments_are_compared_at_the_prior_of_use(data):
    X, y = data
    advisor = Advisor(**{**FAST, "cost": {"fp": 1, "fn": 3}, "prior": 0.4}).fit(X, y)
    shown = advisor.leaderboard_.loc[advisor.verdict_.recommended, "cost"]
    assert advisor.operating_point_.figures["cost"].value == pytest.approx(shown)
    assert advisor.leaderboard_.loc["never-positive", "cost"] == pytest.approx(3 * 0.4)
    assert advisor.leaderboard_.loc["always-positive", "cost"] == pytest.approx(0.6)


def test_a_wish_that_cannot_be_met_says_what_can(data):
    X, y = data
    few = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:12]])
    with pytest.warns(UserWarning, match="cannot be promised from 12 held-out positives"):
        advisor = Advisor(precision=0.99, **FAST).fit(X[few], y[few])
    assert "The wish cannot be met" in advisor.notes_[0]
    assert advisor.operating_point_.wish == "the best balanced accuracy"


def test_a_wish_is_met_if_one_treatment_can_meet_it(tmp_path):
    """A weak treatment cannot promise the precision; the strong one can, and is recommended."""
    X, y = make_classification(
        1000, n_features=6, n_informative=4, weights=[0.85], class_sep=2.5, random_state=0
    )
    weak = DummyClassifier(strategy="prior")
    advisor = Advisor(precision=0.7, treatments=["logistic", weak], trials=0, budget=600).fit(X, y)
    assert advisor.unmet_wish_ is None
    assert advisor.operating_point_.wish == "a precision of at least 70% (95% sure)"
    assert advisor.verdict_.recommended == "logistic"
    assert advisor.verdict_.unable == ("DummyClassifier",)
    assert any(note.startswith("DummyClassifier: a precision of at least 70%") for note in advisor.notes_)
    assert load(advisor.save(tmp_path / "model")).verdict_ == advisor.verdict_
    alone = choose_decision(advisor.held_out_, advisor.truth_, advisor.decision_.wish)
    assert alone.threshold == advisor.operating_point_.threshold
    with pytest.raises(UnmetWish) as best:
        choose_decision(advisor.held_out_, advisor.truth_, Wish.make(precision=0.999))
    most = np.floor(1000 * best.value.most) / 1000
    with pytest.warns(UserWarning, match=f"the most that can be is {most:.3f}"):
        Advisor(precision=0.999, treatments=[weak, "logistic"], trials=0, budget=600).fit(X, y)


def test_save_load_and_retune(fitted, data, tmp_path):
    X, y = data
    folder = fitted.save(tmp_path / "model")
    loaded = equipoise.load(folder)
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    assert loaded.get_params()["cost"] == {"fp": 1, "fn": 20}
    assert loaded.operating_point_.figures["recall"].value == fitted.operating_point_.figures["recall"].value
    result = permutation_importance(loaded, X[:100], y[:100], n_repeats=2, random_state=0)
    assert result.importances_mean.shape == (8,)
    shifted = loaded.retuned(prior=0.5)
    assert shifted.operating_point_.decision.wish == fitted.operating_point_.decision.wish
    assert shifted.predict(X).mean() > fitted.predict(X).mean()
    again = shifted.retuned(recall=0.8)
    np.testing.assert_allclose(again.decision_.prior, [0.5, 0.5])  # an earlier prior is kept
    for wrong, said in (({"recall": 90}, r"write 0\.9 for 90"), ({"prior": 5}, r"write 0\.05 for 5")):
        with pytest.raises(ValueError, match=said):
            loaded.retuned(**wrong)


def test_a_clone_of_a_retuned_model_looks_for_what_it_decides_for(fitted, data, tmp_path):
    tuned = fitted.retuned(alerts=0.05, prior=0.02)
    again = equipoise.load(tuned.save(tmp_path / "model"))
    for made in (tuned, again):
        assert (made.cost, made.alerts, made.prior, made.treatments) == (None, 0.05, 0.02, FAST["treatments"])
    assert (fitted.cost, fitted.alerts) == ({"fp": 1, "fn": 20}, None)
    anew = clone(again).fit(*data)
    assert anew.decision_.threshold == tuned.decision_.threshold


@pytest.mark.parametrize("source", [np.random.default_rng(0), np.random.RandomState(0)])
def test_an_advisor_with_a_generator_can_be_saved(data, source, tmp_path):
    X, y = data
    made = Advisor(random_state=source, **{**FAST, "treatments": ["logistic"]}).fit(X, y)
    again = equipoise.load(made.save(tmp_path / "model"))
    assert again.random_state is None
    np.testing.assert_array_equal(again.predict(X), made.predict(X))


def test_a_column_that_gives_the_target_away_is_said(data):
    X, y = data
    settings = {**FAST, "treatments": ["logistic"]}
    told = Advisor(**settings).fit(pd.DataFrame(X).add_prefix("c").assign(refund=1.0 * y), y).notes_
    assert any("“refund” alone tells the classes apart almost perfectly" in note for note in told)
    assert not any("almost perfectly" in note for note in Advisor(**settings).fit(X, y).notes_)


def test_probabilities_come_at_the_prior_of_use(data):
    X, y = data
    plain = Advisor(**FAST).fit(X, y)
    moved = Advisor(prior=0.5, **FAST).fit(X, y)

    def odds(p):
        return p[:, 1] / p[:, 0]

    share = y.mean()
    np.testing.assert_allclose(
        odds(moved.predict_proba(X)), odds(plain.predict_proba(X)) * (1 - share) / share, rtol=1e-6
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"budget": "soon"}, "budget must be a time"),
        ({"treatments": ["magic"]}, "unknown 'magic'"),
        ({"cost": {"fp": 1}}, "must name fp and fn"),
        ({"prior": 1.5}, "prior must lie between 0 and 1"),
        ({"treatments": []}, "must not be empty"),
        ({"n_jobs": 0}, "n_jobs must be a number of threads, or -1 for all processors, got 0"),
        ({"n_jobs": 1.5}, "n_jobs must be a number of threads"),
    ],
)
def test_bad_parameters_end_in_a_sentence(data, change, said):
    with pytest.raises(ValueError, match=said):
        Advisor(**{**FAST, **change}).fit(*data)


def test_bad_rows_end_in_a_sentence(data):
    X, y = data
    frame = pd.DataFrame(X[:, :2], columns=["a", "a"])
    named = pd.Series(np.where(y == 1, "yes", "no")).where(np.arange(len(y)) != 3, None)
    for rows, labels, groups, said in (
        (frame, y, None, "column names must differ, got 'a'"),
        (frame.set_axis(["a", "b"], axis=1), named, None, "got 1 missing"),
        (X, y, np.zeros(len(y)), "all rows belong to one group"),
    ):
        with pytest.raises(ValueError, match=said):
            Advisor(**FAST).fit(rows, labels, groups=groups)


@pytest.mark.parametrize("name", ["catboost", "extra-trees", "kernel"])
def test_every_kind_of_model_survives_the_folder(name, tmp_path):
    if name == "catboost":
        pytest.importorskip("catboost")
    X, y = make_classification(150, n_informative=5, n_classes=3, random_state=0)
    X[(y == 2) & (np.arange(150) % 4 > 0), 0] = np.nan  # a model may split by what is missing
    advisor = Advisor(treatments=[name], trials=0, budget=600).fit(X, y)
    loaded = equipoise.load(advisor.save(tmp_path / name))
    np.testing.assert_allclose(loaded.predict_proba(X), advisor.predict_proba(X), atol=1e-12)


def test_the_simpler_one_replaces_the_best_only_where_they_are_level():
    from equipoise.advisor.verdict import ENSEMBLE, _judge

    rng = np.random.default_rng(0)
    luck = 0.02 * rng.normal(size=5)
    folds = {ENSEMBLE: 0.8 + luck, "lucky": 0.8 + luck + 0.02 * rng.normal(size=5), "logistic": 0.8 + luck}
    board = pd.DataFrame(
        {
            "balanced_accuracy": {"ensemble": 0.80, "lucky": 0.81, "logistic": 0.80},
            "balanced_accuracy_error": 0.02,
            "log_loss": {"ensemble": 0.3, "lucky": 0.3, "logistic": 0.3},
        }
    )
    order = {ENSEMBLE: 100, "lucky": 60, "logistic": 1}
    names = list(folds)
    assert _judge(board, folds, "balanced_accuracy", order, names).recommended == "logistic"
    board.loc["logistic", "log_loss"] = 0.4  # level calls on worse probabilities are no tie
    found = _judge(board, folds, "balanced_accuracy", order, names)
    assert (found.recommended, found.alternative) == (ENSEMBLE, "logistic")
    order["logistic"] = 200  # a simpler one that is higher by luck is an alternative, no tie
    found = _judge(board, folds, "balanced_accuracy", order, names)
    assert (found.recommended, found.alternative) == (ENSEMBLE, "lucky")
    folds["lucky"] = folds[ENSEMBLE] + 0.05  # better in every fold: no luck
    board.loc["lucky", "balanced_accuracy"] = 0.85
    assert _judge(board, folds, "balanced_accuracy", order, names).recommended == "lucky"


def test_the_luckiest_of_many_level_models_seldom_replaces_the_ensemble():
    from equipoise.advisor.verdict import ENSEMBLE, _judge

    rng = np.random.default_rng(0)
    replaced = 0
    for _ in range(200):
        luck = 0.02 * rng.normal(size=5)
        folds = {f"model {i}": 0.8 + luck + 0.01 * rng.normal(size=5) for i in range(30)}
        folds[ENSEMBLE] = 0.8 + luck
        board = pd.DataFrame(
            {
                "balanced_accuracy": {name: values.mean() for name, values in folds.items()},
                "balanced_accuracy_error": 0.0,
                "log_loss": 0.3,
            }
        )
        order = dict.fromkeys(folds, 50) | {ENSEMBLE: 100}
        replaced += _judge(board, folds, "balanced_accuracy", order, list(folds)).recommended != ENSEMBLE
    assert replaced / 200 < 0.1


def test_a_saved_model_is_used_without_torch(fitted, data, tmp_path):
    fitted.save(tmp_path / "model")
    np.save(tmp_path / "X.npy", data[0])
    code = """if True:
        import sys, numpy as np, equipoise
        equipoise.load(sys.argv[1] + "/model").predict(np.load(sys.argv[1] + "/X.npy"))
        sys.exit("torch" in sys.modules)"""
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 0


def test_treatments_that_cannot_be_tried_are_named(monkeypatch):
    import dataclasses

    from equipoise.advisor import _advisor
    from equipoise.advisor.treatments import advised_treatments

    absent = dataclasses.replace(
        advised_treatments(["logistic"])[0], applies=lambda context: "no such library"
    )
    monkeypatch.setattr(_advisor, "advised_treatments", lambda names: [absent])
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(ValueError, match=r"none of the treatments can be tried .*logistic: no such library"):
        Advisor(trials=0).fit(X, X[:, 0] > 1)
