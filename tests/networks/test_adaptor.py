"""Any backbone: heads found by name, brought weights, frozen bodies, in every classifier."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sklearn.datasets import make_classification
from torch import nn

from equipoise.classifiers import (
    AutoencoderClassifier,
    ConditionalClassifier,
    MetaClassifier,
    NeuralClassifier,
)
from equipoise.networks import adapt, build_network


class Backbone(nn.Module):
    """In the manner of torchvision: no method ``features``, a linear layer under another name, then a thousand."""

    def __init__(self, head="fc", sequence=False):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU())
        last = nn.Linear(12, 1000)
        self.name = head
        setattr(self, head, nn.Sequential(nn.Dropout(0.1), last) if sequence else last)

    def forward(self, x):
        return getattr(self, self.name)(self.body(x))


def seeded(make):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make()


@pytest.mark.parametrize(
    ("module", "params"),
    [(Backbone(), {}), (Backbone("classifier", True), {}), (Backbone("odd"), {"head": "odd"})],
    ids=["fc", "classifier", "named"],
)
def test_the_head_is_found_and_fitted_to_the_classes(module, params):
    network = build_network(module, (6,), 3, **params).eval()
    x = torch.randn(5, 6)
    assert network.head.out_features == 3
    assert torch.allclose(network(x), network.head(network.features(x)))


def test_a_head_that_fits_keeps_its_weights():
    module = seeded(Backbone)
    x = torch.randn(4, 6)
    module.eval()
    whole = module(x)
    assert torch.allclose(adapt(module, 1000).eval()(x), whole)


def test_frozen_trains_the_head_alone():
    X, y = make_classification(200, 6, random_state=0)
    module = seeded(Backbone)
    before = {name: value.clone() for name, value in module.body.state_dict().items()}
    clf = NeuralClassifier(module, module_params={"frozen": True}, epochs=3, lr=0.1, random_state=0).fit(X, y)
    after = clf.network_.body.body.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before), "also the running statistics"
    assert clf.score(X, y) > 0.6


def test_weights_are_brought_without_running_code(tmp_path):
    donor, module = seeded(Backbone), Backbone()
    save_file(donor.state_dict(), tmp_path / "w.safetensors")
    network = build_network(module, (6,), 2, weights=tmp_path / "w.safetensors")
    assert torch.equal(network.body.body[0].weight, donor.body[0].weight)
    with pytest.raises(ValueError, match=r"must be a \.safetensors file or a state dict, got w\.pt"):
        adapt(Backbone(), 2, weights=tmp_path / "w.pt")
    with pytest.raises(ValueError, match="the weights do not fit Backbone"):
        adapt(Backbone(), 2, weights={"body.0.weight": torch.zeros(3, 3)})


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"head": "body"}, TypeError, r"the head 'body\.2' must be a linear layer, got ReLU"),
        ({"head": "tail"}, ValueError, "Backbone has no part 'tail'; its parts are body, fc"),
        ({"width": 3}, ValueError, "module_params of a module are head, weights and frozen, got width"),
    ],
)
def test_what_is_no_head_is_named(params, error, message):
    with pytest.raises(error, match=message):
        build_network(Backbone(), (6,), 2, **params)


def test_a_library_that_is_not_installed_is_named():
    pytest.importorskip("torch")
    try:
        import timm  # noqa: F401
    except ModuleNotFoundError:
        with pytest.raises(ModuleNotFoundError, match="needs timm: pip install timm"):
            build_network("timm/resnet18", (3, 32, 32), 2)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda module: NeuralClassifier(module, epochs=3, lr=0.02, random_state=0),
        lambda module: ConditionalClassifier(
            estimator=NeuralClassifier(module, epochs=3, lr=0.02), random_state=0
        ),
        lambda module: MetaClassifier(estimator=NeuralClassifier(module, epochs=3, lr=0.02), random_state=0),
        lambda module: AutoencoderClassifier(module=module, epochs=3, random_state=0),
    ],
    ids=["neural", "conditional", "meta", "autoencoder"],
)
def test_every_classifier_takes_it_and_can_be_saved(wrap, tmp_path):
    X, y = make_classification(240, 6, class_sep=2, weights=[0.8], random_state=0)
    module = seeded(Backbone)
    clf = wrap(module).fit(X, y)
    clf.save(tmp_path / "model")
    again = type(clf).load(tmp_path / "model", module=module)
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert clf.score(X, y) > 0.6
