"""Losses inside skorch: they find the head by themselves, and probabilities are the data's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from torch import nn

from equipoise.losses import available_losses, get_loss
from loss_cases import NAMES

skorch = pytest.importorskip("skorch")


def data():
    rng = np.random.default_rng(0)
    y = (rng.random(1500) < 0.15).astype(np.int64)
    X = (rng.normal(size=(1500, 2)) + 1.2 * y[:, None]).astype(np.float32)
    return X, y


def fitted(loss, X, y, epochs=15):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
        model = skorch.NeuralNetClassifier(
            net,
            criterion=loss.attach(net),
            predict_nonlinearity=loss.probabilities,
            optimizer=torch.optim.Adam,
            lr=0.01,
            max_epochs=epochs,
            batch_size=100,
            train_split=None,
            verbose=0,
        )
        return model.fit(X, y)


@pytest.mark.parametrize("name", ["nenum", "isda", "combined", "center"])
def test_losses_that_need_the_head_find_it(name):
    X, y = data()
    loss = get_loss(name, np.bincount(y))
    loss.start_epoch(1, 2)
    model = fitted(loss, X, y, epochs=3)
    assert np.isfinite(model.history[:, "train_loss"]).all()
    assert model.score(X, y) > 0.5


class Attached(skorch.NeuralNetClassifier):
    """As in docs/how-to/losses.md: each copy of the model attaches its own loss to its own network."""

    def initialize_criterion(self):
        super().initialize_criterion()
        self.criterion_.attach(self.module_)
        return self


@pytest.mark.parametrize("name", ["nenum", "isda"])
def test_copies_for_cross_validation_look_at_their_own_network(name):
    X, y = data()
    net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
    loss = get_loss(name, np.bincount(y), **({"scatter": True} if name == "nenum" else {}))
    loss.start_epoch(1, 2)
    settings = {"lr": 0.1, "max_epochs": 2, "train_split": None, "verbose": 0}
    model = Attached(net, criterion=loss, predict_nonlinearity=loss.probabilities, **settings)
    copied = clone(clone(model.fit(X, y)).fit(X, y)).fit(X, y)
    assert copied.module_[2] is copied.criterion_._attached._head
    assert np.isfinite(cross_val_score(model, X, y, cv=2, error_score="raise")).all()


@pytest.mark.parametrize("name", ["ce", "logit_adjusted", "weighted_ce", "class_balanced"])
def test_predicted_probabilities_have_the_datas_prior(name):
    """Whatever prior a loss trains to, the mean prediction is the data's share of the rare class."""
    X, y = data()
    model = fitted(get_loss(name, np.bincount(y)), X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    assert p[:, 1].mean() == pytest.approx(y.mean(), abs=0.03)


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_are_distributions(name):
    loss = available_losses()[name]([70, 20, 10])
    logits = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    p = loss.probabilities(logits)
    assert p.shape == (6, 3)
    torch.testing.assert_close(p.sum(dim=1), torch.ones(6))
    same = loss.probabilities(logits, [0.7, 0.2, 0.1])
    torch.testing.assert_close(same, p)
