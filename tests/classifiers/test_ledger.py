"""The prior ledger: what training aims at, and the way back, against simulation and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from imblearn.over_sampling import SMOTE, RandomOverSampler
from imblearn.under_sampling import RandomUnderSampler
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from equipoise._core.priors import correct_prior
from equipoise.classifiers import NeuralClassifier, ResampledClassifier
from equipoise.classifiers.ledger import resolve_prior, sampled_prior, shift_logits, softmax

PRIOR = 0.08


@pytest.fixture(scope="module")
def gaussians():
    """Two unit Gaussians two apart, whose posterior is known: logit = 2x − 2 + log odds of the prior."""
    random = np.random.default_rng(0)
    y = (random.random(6000) < PRIOR).astype(int)
    x = random.normal(2.0 * y)
    truth = norm.pdf(x, 2) * PRIOR / (norm.pdf(x, 2) * PRIOR + norm.pdf(x) * (1 - PRIOR))
    return x[:, None], y, truth


@pytest.mark.parametrize(
    "sampler",
    [
        RandomOverSampler(random_state=0),
        RandomUnderSampler(random_state=0),
        RandomOverSampler(sampling_strategy=0.4, random_state=0),
    ],
    ids=["over", "under", "ratio"],
)
def test_a_sampler_is_undone(gaussians, sampler):
    X, y, truth = gaussians
    clf = ResampledClassifier(LogisticRegression(), sampler).fit(X, y)
    raw, corrected = clf.predict_proba(X, prior="train")[:, 1], clf.predict_proba(X)[:, 1]
    assert np.abs(corrected - truth).mean() < 0.01
    assert np.abs(raw - truth).mean() > 0.08
    assert np.array_equal(clf.predict(X), (raw > 0.5).astype(int))


@pytest.mark.parametrize(
    "change",
    [
        {"sampler": "balanced"},
        {"class_weight": "balanced"},
        {"loss": "la"},
        {"loss": "la", "sampler": "balanced"},
        {"loss": "la", "loss_params": {"tau": 0.5}, "class_weight": {0: 1, 1: 3}},
        {"loss": "weighted_ce"},
        {"loss": "class_balanced"},
    ],
    ids=str,
)
def test_whatever_shifts_the_prior_is_undone(gaussians, change):
    X, y, truth = gaussians
    params = {"module_params": {"hidden": ()}, "epochs": 8, "batch_size": 200, "lr": 0.05, "random_state": 0}
    clf = NeuralClassifier(**params, **change).fit(X, y)
    assert np.abs(clf.predict_proba(X)[:, 1] - truth).mean() < 0.015
    assert np.abs(clf.predict_proba(X, prior="train")[:, 1] - truth).mean() > 0.05
    moved = clf.predict_proba(X, prior=[0.5, 0.5])[:, 1]
    expected = norm.pdf(X[:, 0], 2) / (norm.pdf(X[:, 0], 2) + norm.pdf(X[:, 0]))
    assert np.abs(moved - expected).mean() < 0.03


def test_strings_and_smote_and_frames(gaussians):
    import pandas as pd

    X, y, truth = gaussians
    frame, names = pd.DataFrame({"x": X[:, 0], "noise": X[::-1, 0]}), np.array(["common", "rare"])[y]
    clf = ResampledClassifier(LogisticRegression(), SMOTE(random_state=0)).fit(frame, names)
    assert clf.classes_.tolist() == ["common", "rare"]
    assert clf.feature_names_in_.tolist() == ["x", "noise"]
    assert np.abs(clf.predict_proba(frame)[:, 1] - truth).mean() < 0.02


def test_what_the_estimator_cannot_is_not_offered(gaussians):
    X, y, _ = gaussians
    clf = ResampledClassifier(LinearSVC())
    assert not hasattr(clf, "predict_proba")
    assert clf.fit(X, y).decision_function(X).shape == y.shape
    with pytest.raises(TypeError, match=r"sampler must have fit_resample, got LogisticRegression"):
        ResampledClassifier(sampler=LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match="prior must be one of"):
        ResampledClassifier().fit(X, y).predict_proba(X, prior="other")


distributions = st.lists(st.floats(0.01, 1), min_size=3, max_size=3).map(lambda v: np.array(v) / sum(v))


@given(distributions, distributions, st.lists(st.floats(-30, 30), min_size=3, max_size=3))
def test_logits_and_probabilities_agree_and_go_back(trained, wanted, logits):
    z = np.array([logits])
    there = softmax(shift_logits(z, trained, wanted))
    assert np.allclose(there, correct_prior(softmax(z), trained, wanted), atol=1e-9)
    back = shift_logits(shift_logits(z, trained, wanted), wanted, trained)
    assert np.allclose(softmax(back), softmax(z))


def test_a_class_without_mass():
    trained, wanted = np.array([0.5, 0.5, 0.0]), np.array([0.2, 0.3, 0.5])
    assert softmax(shift_logits(np.zeros((1, 3)), trained, wanted))[0].tolist() == pytest.approx(
        [0.4, 0.6, 0.0]
    )
    wanted = np.array([1.0, 0.0, 0.0])
    assert softmax(shift_logits(np.zeros((1, 3)), np.full(3, 1 / 3), wanted))[0].tolist() == [1.0, 0.0, 0.0]


def test_sampled_prior_by_hand():
    mass, counts = np.array([80.0, 40.0]), np.array([80.0, 20.0])  # the rare rows weigh 2
    shares = np.array([0.5, 0.5])
    prior = sampled_prior(mass, shares=shares, counts=counts, class_weight=[1, 3])
    assert prior.tolist() == pytest.approx([1 / 7, 6 / 7])
    with pytest.raises(ValueError, match="no class with training mass"):
        sampled_prior(mass, shares=None, counts=counts, class_weight=[0, 0])
    assert resolve_prior([0.1, 0.9], data=prior, trained=prior).tolist() == [0.1, 0.9]
