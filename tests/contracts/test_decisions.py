"""One law for every estimator: what was judged is what ``predict`` does, under the same prior and cost."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import get_scorer

from contracts.settings import build, classes_of
from equipoise.classifiers import ConditionalClassifier, NeuralClassifier
from equipoise.metrics import METRICS, expected_cost, get_metric

CLASSIFIERS = [
    cls
    for cls in classes_of("classifiers", "predict")
    if "prior" in inspect.signature(getattr(cls, "predict_proba", lambda: None)).parameters
]
COSTS = {2: [[0.0, 1.0], [5.0, 0.0]], 3: [[0.0, 1.0, 2.0], [4.0, 0.0, 1.0], [9.0, 3.0, 0.0]]}


def table(n_classes, seed=0):
    if n_classes == 2:
        return make_classification(
            700, 8, n_informative=4, weights=[0.85], class_sep=1.0, flip_y=0.05, random_state=seed
        )
    X, y = load_iris(return_X_y=True)
    noise = np.random.default_rng(seed).normal(size=X.shape)
    rows = np.r_[0:50, 50:80, 100:115]
    return (X + noise)[rows], y[rows]


@pytest.fixture(scope="module", params=[2, 3])
def conditional(request):
    X, y = table(request.param)
    base = NeuralClassifier(module_params={"hidden": (16,)}, epochs=10, lr=0.02)
    clf = ConditionalClassifier("vs", estimator=base, random_state=0).fit(X[::2], y[::2])
    return clf, X[1::2], y[1::2]


def evaluated(clf, X, y, name, **keywords):
    """The metric of what the fitted model itself says or decides."""
    metric = get_metric(name, **keywords)
    if metric.needs == "labels":
        two = {"pos_label": clf.positive_} if len(clf.classes_) == 2 and "pos_label" in metric.accepts else {}
        return metric(y, clf.predict(X), **two)
    return metric.evaluate(y, clf.predict_proba(X), labels=clf.classes_)


@pytest.mark.parametrize("name", sorted({*METRICS, "f1", "cost"}))
def test_what_was_judged_is_what_predict_does(conditional, name):
    clf, X, y = conditional
    n_classes = len(clf.classes_)
    known = METRICS.get(name)
    keywords = {"cost_matrix": COSTS[n_classes]} if name in ("cost", "expected_cost") else {}
    if name == "precision_at_recall":
        keywords = {"recall": 0.8}
    if name == "recall_at_precision":
        keywords = {"precision": 0.3}
    if n_classes > 2 and (name in ("f1", "best_f1", "f_beta", "recall", "specificity", "precision")
                          or not (known is None or known.multiclass)
                          or name == "best_balanced_accuracy"):  # fmt: skip
        pytest.skip("takes two classes")
    found = clf.tune(X, y, name, **keywords)
    delivered = {
        "f1": "f_beta",
        "best_f1": "f_beta",
        "best_balanced_accuracy": "balanced_accuracy",
        "cost": "expected_cost",
        "precision_at_recall": "precision",
        "recall_at_precision": "recall",
    }.get(name, name)
    given = keywords if delivered == "expected_cost" else {}
    assert found.value == pytest.approx(evaluated(clf, X, y, delivered, **given), abs=1e-12)


@pytest.mark.parametrize("scorer", ["balanced_accuracy", "f1_macro", "roc_auc_ovr", "neg_log_loss"])
def test_a_scorer_sees_what_predict_does(conditional, scorer):
    clf, X, y = conditional
    found = clf.tune(X, y, get_scorer(scorer))
    assert found.value == pytest.approx(get_scorer(scorer)(clf, X, y))


def test_the_judged_cost_holds_at_another_prior(conditional):
    """The rows weighted to the prior pay what was judged."""
    clf, X, y = conditional
    n = len(clf.classes_)
    prior = np.arange(n, 0, -1) / np.arange(1, n + 1).sum()
    found = clf.tune(X, y, "cost", cost_matrix=COSTS[n], prior=prior)
    weight = (prior / (np.bincount(y) / len(y)))[y]
    paid = expected_cost(y, clf.predict(X), cost_matrix=COSTS[n], sample_weight=weight)
    assert found.value == pytest.approx(paid)


@pytest.mark.parametrize("cls", CLASSIFIERS, ids=lambda cls: cls.__name__)
def test_labels_follow_the_probabilities_of_the_decision_prior(cls):
    X, y = table(2)
    clf = build(cls).fit(X, y)
    proba = clf.predict_proba(X, prior="train")
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[proba.argmax(axis=1)])
