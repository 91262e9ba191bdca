"""The exact links: from the logits that minimize a loss back to the probabilities they were made from."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit, softmax

from equipoise._core.priors import correct_prior
from equipoise.losses import available_losses, get_loss
from equipoise.losses._links import Link
from equipoise.metrics import expected_calibration_error

CASES = [
    ("ce", {}),
    ("weighted_ce", {}),
    *(("la", {"tau": tau}) for tau in (0.0, 1.0, 3.0)),
    *(("vs", {"gamma": gamma, "tau": tau}) for gamma in (0.0, 0.15, 0.3) for tau in (0.0, 1.5, 3.0)),
    *(("focal", {"phi": phi}) for phi in (0.0, 0.5, 1.0, 2.0, 3.0)),
    ("class_balanced", {"beta": 0.99, "phi": 1.5}),
    ("lq", {"q": 0.4}),
    ("ldam", {"max_margin": 0.5, "scale": 6.0}),
    ("kps", {"scale": 3.0}),
]


def minimizer(loss, posterior, steps=60):
    """Logits of least expected loss for each row of class probabilities, by LBFGS in double precision."""
    n, n_classes = posterior.shape
    weight = torch.as_tensor(posterior)
    logits = torch.zeros(n, n_classes, dtype=torch.float64, requires_grad=True)
    solver = torch.optim.LBFGS([logits], 1.0, steps, 4 * steps, 1e-13, 1e-16, 30, "strong_wolfe")

    def expected():
        solver.zero_grad()
        each = [loss(logits, torch.full((n,), c)) for c in range(n_classes)]
        total = (torch.stack(each, dim=1) * weight).sum()
        total.backward()
        return total

    for _ in range(6):
        solver.step(expected)
    return logits.detach().numpy()


@pytest.mark.parametrize("counts", [(95, 5), (80, 15, 5)], ids=["two", "three"])
@pytest.mark.parametrize(("name", "params"), CASES, ids=str)
def test_the_link_undoes_the_loss(name, params, counts):
    """Minimize the expected loss for known probabilities; the link and the ledger must give them back."""
    prior = np.array(counts) / sum(counts)
    posterior = np.random.default_rng(0).dirichlet(3 * np.ones(len(counts)), 12)
    loss = get_loss(name, counts, reduction="none", **params)
    z = minimizer(loss, posterior)
    linked = np.exp(loss.link()(z))
    np.testing.assert_allclose(correct_prior(linked, loss.implied_prior(prior), prior), posterior, atol=2e-5)


def test_every_other_loss_says_that_it_has_none():
    with_link = {
        name
        for name, loss in available_losses().items()
        if loss.link is not available_losses()["center"].link
    }
    assert with_link == {
        *("crossentropy", "weightedcrossentropy", "logitadjusted", "vs", "focal", "classbalanced"),
        *("lq", "ldam", "kps"),
    }
    assert get_loss("lq", q=1.0).link() is None


def test_probabilities_far_out_keep_their_digits():
    for link in (Link(focus=2.0), Link(power=0.4), Link(margins=(3.0, 5.0)), Link(scales=(1.0, 0.5))):
        out = link([[0.0, 900.0], [0.0, -900.0], [0.0, 0.0]])
        assert np.isfinite(out).all()
        np.testing.assert_allclose(np.exp(out).sum(axis=1), 1)
        assert Link.from_dict(link.to_dict()) == link


def focal_logit(target, phi):
    """The logits that focal loss trains for log-odds: the monotone link, read backwards."""
    grid = np.linspace(-40, 40, 20_001)
    log_p = Link(focus=phi)(np.c_[np.zeros_like(grid), grid])
    return np.interp(target, log_p[:, 1] - log_p[:, 0], grid)


@pytest.fixture(scope="module")
def planted():
    """A 1 % class two standard deviations away, with its exact log-odds."""
    random = np.random.default_rng(0)
    y = (random.random(100_000) < 0.01).astype(int)
    x = random.normal(2.0 * y)
    return y, 2 * x - 2 + np.log(0.01 / 0.99)


@pytest.mark.parametrize("phi", [0.0, 1.0, 2.0, 3.0])
def test_focal_probabilities_are_calibrated(planted, phi):
    """At φ = 2 the softmax has a mean of .09 for a class of 1 %; the link's error is at most .004."""
    y, log_odds = planted
    d = focal_logit(log_odds, phi)
    linked = np.exp(Link(focus=phi)(np.c_[np.zeros_like(d), d]))[:, 1]
    assert expected_calibration_error(y, linked) <= 0.004
    if phi >= 2:
        assert expit(d).mean() > 0.08


@pytest.mark.parametrize("gamma", [0.0, 0.15, 0.3])
@pytest.mark.parametrize("tau", [0.0, 1.0, 3.0])
def test_vs_probabilities_are_calibrated(planted, gamma, tau):
    y, log_odds = planted
    loss = get_loss("vs", [99_000, 1_000], gamma=gamma, tau=tau)
    scale = loss.link().scales
    log_prior = np.log([0.99, 0.01])
    adjusted = log_odds - tau * (log_prior[1] - log_prior[0])
    z = np.c_[-adjusted, adjusted] / (scale[0] + scale[1])  # the minimizer with z₊ = −z₋
    proba = correct_prior(np.exp(loss.link()(z)), loss.implied_prior([0.99, 0.01]), [0.99, 0.01])
    assert expected_calibration_error(y, proba[:, 1]) <= 0.004
    if gamma and not tau:
        assert expected_calibration_error(y, softmax(z, axis=1)[:, 1]) > 0.004
