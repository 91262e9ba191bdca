"""Metrics of labels and rankings: bounds, symmetries, agreement with scikit-learn and imbalanced-learn."""

from __future__ import annotations

import pickle

import imblearn.metrics
import numpy as np
import pytest
import sklearn.metrics
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from equipoise import metrics
from equipoise.metrics import METRICS, get_metric
from metric_cases import labelings, scorings

LABEL_METRICS = sorted(name for name, m in METRICS.items() if m.needs == "labels")
SCORE_METRICS = sorted(name for name, m in METRICS.items() if m.needs == "scores" and not m.multiclass)


def params(name, n_classes):
    return {"cost_matrix": 1 - np.eye(n_classes)} if name == "expected_cost" else {}


@pytest.mark.parametrize("name", LABEL_METRICS)
@given(data=labelings())
@settings(max_examples=40, deadline=None)
def test_label_metric_lies_in_its_bounds_and_ignores_the_order(name, data):
    true, predicted = data
    assume(not (name in ("recall", "specificity") and np.unique(true).size != np.union1d(*data).size))
    keywords = params(name, np.union1d(*data).size)
    value = METRICS[name](true, predicted, **keywords)
    low, high = METRICS[name].bounds
    assert low <= value <= high
    order = np.random.default_rng(0).permutation(true.size)
    assert METRICS[name](true[order], predicted[order], **keywords) == pytest.approx(value, abs=1e-12)
    weights = METRICS[name].weighted(true, predicted, **keywords)(np.ones((1, true.size)))
    assert weights[0] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("name", [n for n in LABEL_METRICS if n != "expected_cost"])
@given(data=labelings(3))
@settings(max_examples=20, deadline=None)
def test_renaming_the_classes_changes_nothing(name, data):
    true, predicted = data
    assume(np.unique(true).size == 3)
    names = np.array(["zebra", "ape", "newt"])
    assert METRICS[name](names[true], names[predicted]) == pytest.approx(
        METRICS[name](true, predicted), abs=1e-12
    )


@pytest.mark.parametrize("name", LABEL_METRICS)
def test_perfect_prediction_is_best(name):
    y = np.array([0, 1, 2, 1, 0])
    best = METRICS[name].bounds[1 if METRICS[name].greater_is_better else 0]
    assert METRICS[name](y, y, **params(name, 3)) == (0 if name == "expected_cost" else best)


@given(labelings())
@settings(max_examples=30, deadline=None)
def test_agreement_with_the_libraries(data):
    true, predicted = data
    assume(np.isin(predicted, true).all())
    assert metrics.balanced_accuracy(true, predicted) == pytest.approx(
        sklearn.metrics.balanced_accuracy_score(true, predicted)
    )
    assert metrics.macro_f1(true, predicted) == pytest.approx(
        sklearn.metrics.f1_score(true, predicted, average="macro", zero_division=0)
    )
    assert metrics.g_mean_macro(true, predicted) == pytest.approx(
        imblearn.metrics.geometric_mean_score(true, predicted, average="macro")
    )
    assert metrics.g_mean(true, predicted) == pytest.approx(
        imblearn.metrics.geometric_mean_score(true, predicted)
    )
    assert metrics.top1_error(true, predicted) == pytest.approx(
        1 - sklearn.metrics.accuracy_score(true, predicted)
    )
    table = metrics.per_class(true, predicted)
    assert table["recall"].mean() == pytest.approx(metrics.balanced_accuracy(true, predicted))
    assert table["g_mean"].mean() == pytest.approx(metrics.g_mean_per_class(true, predicted))


@given(labelings(2))
@settings(max_examples=25, deadline=None)
def test_laws_of_two_classes(data):
    true, predicted = data
    up, down = metrics.recall(true, predicted), metrics.specificity(true, predicted)
    assert metrics.recall(1 - true, 1 - predicted, pos_label=0) == pytest.approx(up)
    assert metrics.recall(true, predicted, pos_label=0) == pytest.approx(down)
    assert metrics.g_mean_macro(true, predicted) == pytest.approx((up + down) / 2)
    assert metrics.g_mean(true, predicted) == pytest.approx(np.sqrt(up * down))
    assert metrics.g_mean_per_class(true, predicted) == pytest.approx(np.sqrt(up * down))
    precision = metrics.precision(true, predicted)
    if precision + up > 0:
        assert metrics.f_beta(true, predicted) == pytest.approx(2 * precision * up / (precision + up))


@pytest.mark.parametrize("name", SCORE_METRICS)
@given(data=scorings())
@settings(max_examples=40, deadline=None)
def test_score_metric_depends_on_ranks_alone_and_keeps_its_bounds(name, data):
    true, score = data
    value = METRICS[name](true, score)
    assert 0 <= value <= 1
    assert METRICS[name](true, np.exp(score)) == pytest.approx(value, abs=1e-12)
    assert METRICS[name](true[::-1], score[::-1]) == pytest.approx(value, abs=1e-12)
    assert METRICS[name].weighted(true, score)(np.ones((1, true.size)))[0] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("name", [*SCORE_METRICS, "auc", "auprc_ova", "brier", "log_loss"])
@given(data=scorings(), seed=st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_a_weight_is_a_repetition(name, data, seed):
    true, score = data
    proba = 1 / (1 + np.exp(-score))
    counts = np.random.default_rng(seed).integers(1, 4, true.size)
    repeated = METRICS[name](np.repeat(true, counts), np.repeat(proba, counts))
    assert METRICS[name](true, proba, sample_weight=counts) == pytest.approx(repeated, abs=1e-12)
    kernel = METRICS[name].weighted(true, proba)(counts[None].astype(float))[0]
    assert kernel == pytest.approx(repeated, abs=1e-12)


@given(data=scorings())
@settings(max_examples=40, deadline=None)
def test_auc_is_the_chance_that_a_positive_outranks_a_negative(data):
    true, score = data
    gap = score[true == 1][:, None] - score[true == 0]
    assert metrics.auc(true, score) == pytest.approx(((gap > 0) + 0.5 * (gap == 0)).mean())
    assert metrics.auc(true, -score) == pytest.approx(1 - metrics.auc(true, score))


def test_multiclass_rankings_agree_with_scikit_learn():
    rng = np.random.default_rng(1)
    y, proba = rng.integers(0, 4, 200), rng.dirichlet(np.ones(4), 200)
    one_hot = np.eye(4)[y]
    assert metrics.auprc_ova(y, proba) == pytest.approx(
        sklearn.metrics.average_precision_score(one_hot, proba, average="macro")
    )
    assert metrics.auc(y, proba) == pytest.approx(sklearn.metrics.roc_auc_score(y, proba, multi_class="ovr"))
    for name in ("auc", "auprc_ova"):
        assert METRICS[name].weighted(y, proba)(np.ones((1, 200)))[0] == pytest.approx(
            METRICS[name](y, proba)
        )


def test_an_absent_class_needs_named_columns_and_does_not_count():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 6)
    y = ["a", "a", "a", "c", "c", "c"]
    with pytest.raises(
        ValueError, match=r"proba has 3 columns for the classes .*name the columns by labels="
    ):
        metrics.auprc_ova(y, proba)
    expected = np.mean(
        [
            metrics.average_precision(y, proba[:, 0], pos_label="a"),
            metrics.average_precision(y, proba[:, 2], pos_label="c"),
        ]
    )
    assert metrics.auprc_ova(y, proba, labels=["a", "b", "c"]) == pytest.approx(expected)


def test_cost_of_the_cheapest_decision_is_least():
    rng = np.random.default_rng(2)
    proba = rng.dirichlet(np.ones(3), 4000)
    y = np.array([rng.choice(3, p=row) for row in proba])
    costs = np.array([[0, 1, 4], [2, 0, 1], [9, 3, 0]])
    cheapest = metrics.expected_cost(y, metrics.cheapest_decision(proba, costs), cost_matrix=costs)
    assert cheapest < metrics.expected_cost(y, proba.argmax(axis=1), cost_matrix=costs)
    assert cheapest == pytest.approx((proba @ costs).min(axis=1).mean(), abs=0.1)


@pytest.mark.parametrize("name", sorted(METRICS))
@pytest.mark.parametrize(
    ("y_true", "values", "message"),
    [
        ([], [], "y_true must not be empty"),
        ([0, 1, 1], [0.5, 0.5], "y_true and .* must have the same length, got 3 and 2"),
        ([0, 1, float("nan")], [0, 1, 1], "y_true must be finite, got nan"),
        ([0, 1, 1], [0, float("inf"), 1], "must be finite, got inf"),
        ([[0, 1], [1, 0]], [0, 1], r"y_true must be a vector of labels, got the shape \(2, 2\)"),
    ],
)
def test_bad_input_is_named(name, y_true, values, message):
    with pytest.raises(ValueError, match=message):
        METRICS[name](y_true, values, **params(name, 2))


@pytest.mark.parametrize("name", sorted(set(METRICS) - {"top1_error", "expected_cost"}))
def test_one_class_only_is_an_error(name):
    with pytest.raises(ValueError, match=r"class"):
        METRICS[name]([1, 1, 1], [1, 0, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.recall([0, 1], [0, 2], labels=[0, 1]), "y_pred has the unknown label 2"),
        (lambda: metrics.recall([0, 1], [0, 1], pos_label=7), r"pos_label must be .* \[0, 1\], got 7"),
        (lambda: metrics.recall([0, 1, 2], [0, 1, 1], average="binary"), "pos_label must be given"),
        (lambda: metrics.recall([0, 1], [0, 1], average="micro"), "average must be one of .* got 'micro'"),
        (lambda: metrics.f_beta([0, 1], [0, 1], beta=0), "beta must be positive, got 0"),
        (lambda: metrics.macro_f1([0, 1], [0, 1], labels=[0, 0, 1]), "labels must not repeat"),
        (lambda: metrics.macro_f1([0, None], [0, 1]), "y_true must not have missing labels, got None"),
        (lambda: metrics.auc([0, 1], [0, 1], sample_weight=[1, -1]), "sample_weight must lie in .* got -1"),
        (lambda: metrics.auc([0, 1], [0, 1], sample_weight=[1, 0]), "positive somewhere in both"),
        (lambda: metrics.auc([0, 1, 2], [0, 1, 1]), "pos_label must be given when"),
        (
            lambda: metrics.expected_cost([0, 1], [0, 1], cost_matrix=[[1]]),
            r"cost_matrix must have the shape \(2, 2\)",
        ),
        (lambda: metrics.brier([0, 1], [0.5, 1.5]), r"proba must lie in \[0, 1\], got 1.5"),
        (lambda: metrics.brier([0, 1], [[0.5, 0.4], [0.5, 0.5]]), "rows that sum to 1, got a sum of 0.9"),
        (lambda: get_metric("f_beta", gamma=2), "f_beta does not take .*gamma"),
        (lambda: get_metric("f_beta(2)"), r"name\(key=value, ...\), got 'f_beta\(2\)'"),
        (
            lambda: get_metric("best_f1").evaluate([0, 1, 2], np.full((3, 3), 1 / 3)),
            "best_f1 takes two classes",
        ),
    ],
)
def test_message_names_argument_and_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_mixed_labels_are_refused():
    with pytest.raises(TypeError, match="labels of one kind"):
        metrics.macro_f1(["a", "b"], [0, 1])


def test_registry_evaluates_everything_from_probabilities():
    rng = np.random.default_rng(3)
    y = np.array(["no", "yes"])[rng.integers(0, 2, 80)]
    p = rng.random(80)
    values = metrics.evaluate_all(y, p)
    assert set(values) == set(METRICS) - {"expected_cost"}
    assert values["recall"] == metrics.recall(y, np.where(p > 0.5, "yes", "no"))
    other = metrics.evaluate_all(y, p, ["recall", "auc", "average_precision"], pos_label="no")
    assert other["recall"] == pytest.approx(values["specificity"])
    assert other["auc"] == pytest.approx(values["auc"])
    assert other["average_precision"] == pytest.approx(metrics.average_precision(y, 1 - p, pos_label="no"))
    multi = metrics.evaluate_all(rng.integers(0, 3, 50), rng.dirichlet(np.ones(3), 50))
    assert set(multi) == {n for n, m in METRICS.items() if m.multiclass} - {"expected_cost"}


def test_scorer_serves_scikit_learn():
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score

    X, y = make_classification(300, weights=[0.8], random_state=0)
    for name, theirs in [("auc", "roc_auc"), ("brier", "neg_brier_score"), ("f_beta", "f1")]:
        ours = cross_val_score(LogisticRegression(), X, y, scoring=get_metric(name).scorer, cv=3)
        np.testing.assert_allclose(ours, cross_val_score(LogisticRegression(), X, y, scoring=theirs, cv=3))
    digits = np.digitize(X[:, 0], [-1, 1])
    assert (cross_val_score(LogisticRegression(), X, digits, scoring=get_metric("auc").scorer) > 0.5).all()


def test_a_metric_is_hashable_and_travels_to_workers():
    for name in METRICS:
        assert pickle.loads(pickle.dumps(METRICS[name])) == METRICS[name]  # noqa: S301
    metric = get_metric("expected_cost", cost_matrix=np.array([[0, 1], [5, 0]]))
    again = pickle.loads(pickle.dumps(metric))  # noqa: S301
    assert again([0, 1], [0, 0]) == metric([0, 1], [0, 0]) == 2.5
    assert len({METRICS["auc"], get_metric("auc"), get_metric("f_beta", beta=2)}) == 2
