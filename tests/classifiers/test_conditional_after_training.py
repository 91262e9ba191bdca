"""One conditional model, adapted after training: new priors and costs, calibrated answers, promises, weights."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.metrics import make_scorer

from equipoise.classifiers import ConditionalClassifier, NeuralClassifier
from equipoise.classifiers._lambda_search import Held, read_metric
from equipoise.metrics import UnmetWish, expected_calibration_error, expected_cost
from equipoise.training import EarlyStopping, Linear, Uniform

COST = [[0.0, 1.0], [5.0, 0.0]]


def gaussians(n, share, seed=0, distance=2.0):
    """Two unit Gaussians, with the exact log-odds of the second class."""
    random = np.random.default_rng(seed)
    y = (random.random(n) < share).astype(int)
    x = random.normal(distance * y)
    return x[:, None], y, distance * x - distance**2 / 2 + np.log(share / (1 - share))


def fitted(loss="vs", share=0.05, n=6000, **params):
    X, y, _ = gaussians(n, share)
    base = NeuralClassifier(module_params={"hidden": (16,)}, epochs=8, batch_size=256, lr=0.02)
    return ConditionalClassifier(loss, estimator=base, random_state=0, **params).fit(X, y)


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.mark.parametrize("prior", [0.5, [0.5, 0.5]])
def test_a_new_prior_costs_little_more_than_bayes(model, prior):
    """Trained at 5 %, cost 1:5, used at 50:50: the same threshold as at 5 % would cost three times as much."""
    X_valid, y_valid, _ = gaussians(4000, 0.05, seed=1)
    X_new, y_new, log_odds = gaussians(20_000, 0.5, seed=2)
    bayes = expected_cost(y_new, (expit(log_odds) >= 1 / 6).astype(int), cost_matrix=COST)
    model.tune(X_valid, y_valid, "cost", cost_matrix=COST)
    stale = expected_cost(y_new, model.predict(X_new), cost_matrix=COST)
    found = model.tune(X_valid, y_valid, "cost", cost_matrix=COST, prior=prior)
    paid = expected_cost(y_new, model.predict(X_new), cost_matrix=COST)
    assert paid < bayes + 0.02 < stale - 0.2
    assert found.value == pytest.approx(paid, abs=0.1), "judged on weighted rows"


@pytest.mark.parametrize("loss", ["vs", "focal"])
def test_a_scorer_of_labels_is_decided_for_the_new_prior(loss):
    """A scorer says nothing of thresholds: they are searched for on rows that are weighted to the prior."""
    clf = fitted(loss, n=4000)
    paid = make_scorer(expected_cost, greater_is_better=False, cost_matrix=COST)
    X, y, _ = gaussians(10_000, 0.05, seed=1)
    X_new, y_new, log_odds = gaussians(20_000, 0.5, seed=2)
    bayes = expected_cost(y_new, (expit(log_odds) >= 1 / 6).astype(int), cost_matrix=COST)
    found = clf.tune(X, y, paid, prior=0.5, params={"tau": [1.0]} if loss == "vs" else {"phi": [2.0]})
    assert -paid(clf, X_new, y_new) < bayes + 0.02
    weight = np.where(y == 1, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    assert found.value == pytest.approx(paid(clf, X, y, sample_weight=weight)), "judged is delivered"


def test_a_metric_of_labels_is_decided_for_the_new_prior(model):
    X, y, _ = gaussians(4000, 0.05, seed=1)
    X_new, y_new, log_odds = gaussians(20_000, 0.5, seed=2)
    model.tune(X, y, "top1_error", prior=0.5, params={"tau": [0.0]})
    wrong = (model.predict(X_new) != y_new).mean()
    assert wrong < ((log_odds > 0) != y_new).mean() + 0.01


@pytest.mark.parametrize(
    ("loss", "laws", "asked"),
    [
        ("vs", {"gamma": Uniform(0, 0.3), "tau": Uniform(0, 2)}, [(0.0, 0.0), (0.2, 1.0), (0.3, 0.5)]),
        ("focal", {"phi": Uniform(0, 3)}, [(0.2,), (1.0,), (2.0,), (2.8,)]),
    ],
    ids=["vs", "focal"],
)
def test_trained_probabilities_are_calibrated_at_every_lambda(loss, laws, asked):
    """A trained network at each corner of the range: the mean and the bins are right without validation rows."""
    clf = fitted(loss, share=0.01, n=20_000, distribution=laws)
    X, y, _ = gaussians(60_000, 0.01, seed=3)
    for values in asked:
        proba = clf.predict_proba(X, dict(zip(laws, values, strict=True)))[:, 1]
        assert expected_calibration_error(y, proba) <= 0.004, values


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "laws"),
    [("vs", {"gamma": Uniform(0, 0.3), "tau": Uniform(0, 2)}), ("focal", {"phi": Uniform(0, 3)})],
    ids=["vs", "focal"],
)
def test_what_a_trained_network_misses_at_the_ends_of_the_range_is_too_few_rows(loss, laws):
    """The links are exact (tests/losses/test_links.py): with three times the rows the ends hold the bound too."""
    clf = fitted(loss, share=0.01, n=60_000, distribution=laws)
    X, y, _ = gaussians(60_000, 0.01, seed=3)
    ends = itertools.product(*([law.low, (law.low + law.high) / 2, law.high] for law in laws.values()))
    for values in ends:
        proba = clf.predict_proba(X, dict(zip(laws, values, strict=True)))[:, 1]
        assert expected_calibration_error(y, proba) <= 0.0025, values


@pytest.mark.parametrize("loss", [{"loss": "focal"}, {"loss": "vs", "loss_params": {"gamma": 0.3}}], ids=str)
def test_the_plain_network_is_calibrated_too(loss):
    X, y, _ = gaussians(20_000, 0.01)
    base = {"module_params": {"hidden": (16,)}, "epochs": 6, "batch_size": 256, "lr": 0.02, "random_state": 0}
    clf = NeuralClassifier(**base, **loss).fit(X, y)
    X_new, y_new, _ = gaussians(60_000, 0.01, seed=3)
    assert expected_calibration_error(y_new, clf.predict_proba(X_new)[:, 1]) <= 0.004
    if loss["loss"] == "focal":
        raw = clf.predict_proba(X_new, prior="train")[:, 1]
        assert raw.mean() > 0.06, "what the softmax of the logits says of a class of 1 %"


def test_the_lambda_of_a_promise_is_not_chosen_by_its_threshold(model):
    """Else the chosen λ would be one whose threshold came out too high: see benchmarks/conditional_promises.py."""
    X, y, _ = gaussians(3000, 0.05, seed=5)
    grid = {"gamma": [0.0, 0.2], "tau": [0.0, 1.5, 3.0]}
    best = model.tune(X, y, "average_precision", params=grid).params
    assert model.tune(X, y, recall=0.9, params=grid).params == best
    assert model.tune(X, y, precision=0.3, params=grid).params == best


def test_a_promise_holds_though_lambda_was_chosen():
    """Eight λ that rank alike but for noise; 46 positives, for which the bound has hardly any slack."""
    random, judge, draws = np.random.default_rng(0), read_metric(None, {"recall": 0.9}), 100
    y = np.repeat([0, 1], [200, 46])
    rows, kept = Held.make(y, np.bincount(y) / len(y), None), {"merit": 0, "value": 0}
    for _ in range(draws):
        scores = expit(random.normal(2.0 * y) + 0.3 * random.normal(size=(8, len(y))))
        judged = [judge(rows, lambda prior, p=p: np.stack([1 - p, p], axis=1)) for p in scores]
        for by in kept:
            best = max(judged, key=lambda one: getattr(one, by))
            kept[by] += norm.sf(logit(best.decision.threshold), 2, np.sqrt(1.09)) >= 0.9
    assert kept["merit"] / draws >= 0.9
    assert kept["value"] / draws <= kept["merit"] / draws - 0.04, "chosen by what was promised"


def test_twenty_positives_cannot_bear_a_promise(model):
    X, y, _ = gaussians(3000, 0.05, seed=5)
    rows = np.r_[np.flatnonzero(y)[:20], np.flatnonzero(y == 0)[:500]]
    with pytest.raises(UnmetWish, match=r"cannot be promised from 20 held-out positives: .* 0\.860"):
        model.tune(X[rows], y[rows], recall=0.9)


def test_sample_weights_enter_the_probabilities():
    """Rows of the rare class weigh five: the mean probability is their share of the weight."""
    X, y, _ = gaussians(6000, 0.1)
    weight = np.where(y == 1, 5.0, 1.0)
    base = NeuralClassifier(module_params={"hidden": (16,)}, epochs=8, batch_size=256, lr=0.02)
    clf = ConditionalClassifier("vs", estimator=base, random_state=0).fit(X, y, weight)
    share = np.average(y, weights=weight)
    for tau in (0.5, 1.5):
        mean = np.average(clf.predict_proba(X, {"gamma": 0.0, "tau": tau})[:, 1], weights=weight)
        assert mean == pytest.approx(share, abs=0.03)


def test_early_stopping_judges_at_the_prior_that_the_default_lambda_answers_at():
    """The held-out loss is the cross-entropy of the default λ's own probabilities, at their own prior."""
    X, y, log_odds = gaussians(6000, 0.05)
    base = NeuralClassifier(
        module_params={"hidden": (16,)}, epochs=8, batch_size=256, lr=0.02,
        early_stopping=EarlyStopping(patience=20), validation_fraction=0.3,
    )  # fmt: skip
    clf = ConditionalClassifier(
        "la", distribution={"tau": Uniform(1.9, 2.1)}, estimator=base, random_state=0
    ).fit(X, y)
    prior = clf.training_prior()
    assert prior == pytest.approx([0.05, 0.95], abs=0.01)
    moved = log_odds + np.log(prior[1] / prior[0]) - np.log(0.05 / 0.95)
    surprise = np.where(y == 1, np.logaddexp(0, -moved), np.logaddexp(0, moved))
    bayes = prior[1] * surprise[y == 1].mean() + prior[0] * surprise[y == 0].mean()
    assert clf.history_["val_loss"].min() == pytest.approx(bayes, rel=0.35)


def test_a_network_that_is_not_told_lambda_gives_one_answer():
    clf = fitted("la", film=False, distribution={"tau": Linear(0, 3, 0.33)})
    X, y, _ = gaussians(4000, 0.05, seed=1)
    one, other = clf.predict_proba(X, {"tau": 0.1}), clf.predict_proba(X, {"tau": 2.9})
    np.testing.assert_array_equal(one, other)
    assert one[:, 1].mean() == pytest.approx(y.mean(), abs=0.015), "the mean over the distribution of λ"


def test_focal_varies_alpha_too_where_it_can():
    X, y, _ = gaussians(300, 0.2)
    base = NeuralClassifier(epochs=1)
    assert list(ConditionalClassifier("focal", estimator=base).fit(X, y).distribution_) == ["alpha", "phi"]
    three = np.arange(300) % 3
    assert list(ConditionalClassifier("focal", estimator=base).fit(X, three).distribution_) == ["phi"]


def test_a_folder_of_another_distribution_or_loss_is_refused(tmp_path):
    X, y, _ = gaussians(200, 0.3)
    base = NeuralClassifier(epochs=1, checkpoint=tmp_path)

    def fit(loss="vs", **params):
        return ConditionalClassifier(loss, estimator=base, random_state=0, **params).fit(X, y)

    fit(distribution={"tau": Linear(0, 3, 0)})
    fit(distribution={"tau": Linear(0, 3, 0)})
    with pytest.raises(ValueError, match=r"holds another run: loss was .*, is .*choose another folder"):
        fit(distribution={"tau": Linear(0, 3, 0.33)})
    with pytest.raises(ValueError, match=r"name='vs'.* is .*name='la'"):
        fit("la", distribution={"tau": Linear(0, 3, 0)})
    with pytest.raises(ValueError, match="holds another run: module was"):
        fit(distribution={"tau": Linear(0, 3, 0)}, film=False)
