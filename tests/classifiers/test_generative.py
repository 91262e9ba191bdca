"""GenerativeClassifier (DGC): its bound, its decisions, saving."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_classification

from equipoise.classifiers import AutoencoderClassifier, GenerativeClassifier
from equipoise.metrics import balanced_accuracy
from equipoise.networks.generative import GenerativeNetwork
from equipoise.training import RandomAffine

FAST = {"latent": 8, "widths": (32,), "epochs": 25, "lr": 0.01, "n_draws": 3, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    return make_classification(300, 6, n_informative=4, weights=[0.85], class_sep=2, random_state=1)


def test_finds_the_rare_class_and_repeats(table, tmp_path):
    X, y = table
    clf = GenerativeClassifier(**FAST).fit(X, y)
    assert balanced_accuracy(y, clf.predict(X)) > 0.8
    assert np.array_equal(clf.predict_proba(X), clf.predict_proba(X)), "draws are the same at every call"
    clf.save(tmp_path / "clf")
    assert np.array_equal(GenerativeClassifier.load(tmp_path / "clf").predict_proba(X), clf.predict_proba(X))


def test_averages_its_weights_and_moves_its_images(tmp_path):
    X, y = load_digits(n_class=2, return_X_y=True)
    common = {
        "image_shape": (8, 8),
        "latent": 4,
        "widths": (8,),
        "epochs": 2,
        "n_draws": 2,
        "random_state": 0,
    }
    own = GenerativeClassifier(**common).fit(X, y)
    averaged = GenerativeClassifier(**common, average=0.9).fit(X, y)
    assert own.history_.equals(averaged.history_), "the average is not what is trained"
    assert not np.array_equal(own.predict_proba(X), averaged.predict_proba(X))
    moved = GenerativeClassifier(**common, augment=RandomAffine(shift=0.2)).fit(X, y)
    assert not moved.history_.equals(own.history_)
    averaged.save(tmp_path / "clf")
    again = GenerativeClassifier.load(tmp_path / "clf")
    assert np.array_equal(again.predict_proba(X), averaged.predict_proba(X))


def test_a_score_is_the_log_mean_of_the_draws():
    torch.manual_seed(0)
    net = GenerativeNetwork((3,), 2, latent=2, widths=(4,), n_draws=5).eval()
    x = torch.randn(4, 3)
    hidden = net.body(x)
    terms = [
        net._terms(x, torch.ones(4, dtype=torch.long), hidden, noise.expand(4, -1)) for noise in net.noise
    ]
    expected = torch.stack(terms).neg().exp().mean(dim=0).log()
    assert torch.allclose(net(x)[:, 1], expected, atol=1e-5)


def test_the_divergence_is_that_of_normals():
    torch.manual_seed(0)
    net = GenerativeNetwork((3,), 2, latent=2, widths=(4,), clf_weight=0.0, kl_weight=1.0)
    with torch.no_grad():  # both components alike: the mixture is one normal, whose divergence is known
        net.prior_mean[1] = net.prior_mean[0]
        x = torch.randn(1, 3)
        hidden, codes = net.body(x), torch.zeros(1, dtype=torch.long)
        mean, log_scale = net._posterior(hidden, codes)
        n = 40_000
        drawn = net._terms(x.expand(n, -1), codes.expand(n), hidden.expand(n, -1), torch.randn(n, 2))
        net.kl_weight = 0.0
        torch.manual_seed(1)
        rebuilt = net._terms(x.expand(n, -1), codes.expand(n), hidden.expand(n, -1), torch.randn(n, 2))
        q = torch.distributions.Normal(mean[0], log_scale[0].exp())
        p = torch.distributions.Normal(net.prior_mean[0], net.prior_log_scale[0].exp())
        expected = float(torch.distributions.kl_divergence(q, p).sum())
    error = float(drawn.std() / n**0.5 + rebuilt.std() / n**0.5)
    assert float(drawn.mean() - rebuilt.mean()) == pytest.approx(expected, abs=4 * error)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"image_shape": (5, 5)}, "does not fit"),
        ({"n_draws": 0}, "n_draws must be at least 1"),
        ({"kl_weight": -1}, "kl_weight must lie in"),
    ],
)
def test_bad_settings_get_a_sentence(table, params, message):
    with pytest.raises(ValueError, match=message):
        GenerativeClassifier(**{**FAST, **params}).fit(*table)


@pytest.mark.parametrize("kind", [GenerativeClassifier, AutoencoderClassifier])
def test_trains_in_the_precision_that_was_asked_for(kind):
    """Half the digits give other answers, but hardly: they were the same to the bit where nobody heard the wish."""
    pytest.importorskip("lightning_fabric")
    X, y = make_classification(120, 6, weights=[0.8], random_state=0)
    answers = {
        precision: kind(epochs=2, precision=precision, random_state=0).fit(X, y).predict_proba(X)
        for precision in ("32-true", "bf16-mixed")
    }
    apart = np.abs(answers["32-true"] - answers["bf16-mixed"]).max()
    assert 0 < apart < 0.2
