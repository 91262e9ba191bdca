"""SAM, balanced fine-tuning, samplers, and every loss through the loop and the classifier."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from equipoise.classifiers import NeuralClassifier
from equipoise.losses import available_losses, get_loss
from equipoise.networks import MLP, CosineLinear
from equipoise.training import (
    BalancedFineTuning,
    Batch,
    ClassSampler,
    DeferredReweighting,
    PlainStep,
    SAMStep,
    TensorData,
    class_shares,
    effective_number_shares,
    fit,
    ratio_shares,
)
from loss_cases import NAMES


def blobs(counts=(60, 20, 8), d=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    return rng.normal(size=(len(y), d)) + 3 * np.eye(len(counts), d)[y], y


def a_batch(n=12, d=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, d, generator=generator)
    y = torch.randint(3, (n,), generator=generator)
    return Batch(x, y, None, torch.arange(n), generator)


def network(seed=0, **params):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return MLP((4,), 3, hidden=(8,), **params)


def test_sam_without_radius_is_the_plain_step():
    nets = [network(batch_norm=True) for _ in range(2)]
    steps = [PlainStep(get_loss("ce")), SAMStep(get_loss("ce"), rho=0.0)]
    for net, step in zip(nets, steps, strict=True):
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        for seed in range(3):
            step(net, sgd, a_batch(seed=seed))
    for one, two in zip(nets[0].state_dict().values(), nets[1].state_dict().values(), strict=True):
        assert torch.equal(one, two)


def test_sam_descends_by_the_gradient_at_the_climbed_point():
    net, batch, rho, lr = network(), a_batch(), 0.3, 0.1
    before = [p.detach().clone() for p in net.parameters()]
    loss = nn.CrossEntropyLoss()
    gradients = torch.autograd.grad(loss(net(batch.inputs), batch.targets), list(net.parameters()))
    norm = torch.sqrt(sum((g**2).sum() for g in gradients))
    climbed = network()
    with torch.no_grad():
        for p, g in zip(climbed.parameters(), gradients, strict=True):
            p += rho * g / norm
    wanted = torch.autograd.grad(loss(climbed(batch.inputs), batch.targets), list(climbed.parameters()))
    outcome = SAMStep(get_loss("ce"), rho=rho)(net, torch.optim.SGD(net.parameters(), lr=lr), batch)
    for p, old, g in zip(net.parameters(), before, wanted, strict=True):
        torch.testing.assert_close(p.detach(), old - lr * g)
    assert outcome.metrics["sharpness"] > 0


def test_sam_clips_the_update_and_not_the_climb():
    net, batch = network(), a_batch()
    before = torch.cat([p.detach().flatten().clone() for p in net.parameters()])
    step = SAMStep(get_loss("ce"), rho=0.3, clip=1e-3)
    outcome = step(net, torch.optim.SGD(net.parameters(), lr=1.0), batch)
    after = torch.cat([p.detach().flatten() for p in net.parameters()])
    assert (after - before).norm() == pytest.approx(1e-3, rel=1e-3)
    assert outcome.metrics["sharpness"] > 1e-2


def test_sam_takes_statistics_from_the_first_pass_only():
    net, batch = network(batch_norm=True), a_batch()
    twin = network(batch_norm=True)
    twin.train()(batch.inputs)
    loss = get_loss("nenum", class_counts=[5, 4, 3])
    SAMStep(loss, rho=0.5)(net.train(), torch.optim.SGD(net.parameters(), lr=0.1), batch)
    for name, value in twin.named_buffers():
        assert torch.equal(value, dict(net.named_buffers())[name])
    loss.statistics.flush()
    assert loss.statistics.count.sum() == len(batch)
    disturbed = get_loss("disturb_label", rate=0.5)
    SAMStep(disturbed, rho=0.5)(net, torch.optim.SGD(net.parameters(), lr=0.1), batch)
    assert disturbed.step == 1


def test_shares():
    counts = np.array([900, 90, 10])
    np.testing.assert_allclose(class_shares("balanced", counts), 1 / 3)
    root = np.sqrt(counts)
    np.testing.assert_allclose(class_shares("sqrt", counts), root / root.sum())
    np.testing.assert_allclose(effective_number_shares(counts, 0.0), counts / counts.sum())
    np.testing.assert_allclose(effective_number_shares(counts, 1.0), 1 / 3)
    beta = 0.9999
    mass = counts * (1 - beta) / (1 - beta**counts)
    np.testing.assert_allclose(class_shares("effective_number", counts), mass / mass.sum())
    np.testing.assert_allclose(class_shares(0.25, counts), [0.75 * 10 / 11, 0.75 / 11, 0.25])
    np.testing.assert_allclose(ratio_shares([0, 90, 10], 0.4), [0, 0.6, 0.4])
    with pytest.raises(ValueError, match=r"rho must lie in \(0, 1\), got 1.5"):
        class_shares(1.5, counts)
    with pytest.raises(ValueError, match="one of 'balanced', 'sqrt', 'effective_number', got 'blanced'"):
        class_shares("blanced", counts)


@pytest.mark.parametrize("name", ["balanced", "sqrt", "effective_number", 0.3])
def test_samplers_keep_their_shares_and_divide_over_processes(name):
    y = torch.tensor([0] * 500 + [1] * 60 + [2] * 20)
    shares = class_shares(name, np.bincount(y))
    sampler = ClassSampler(y, shares)
    seen = np.zeros(3)
    for epoch in range(30):
        order = sampler.order(torch.Generator().manual_seed(epoch))
        again = sampler.order(torch.Generator().manual_seed(epoch))
        assert torch.equal(order, again)  # every process draws the same and takes its part
        parts = [order[rank::2] for rank in range(2)]
        assert sum(map(len, parts)) == len(order)
        seen += np.bincount(y[order], minlength=3)
    np.testing.assert_allclose(seen / seen.sum(), shares, atol=2e-3)


def test_fine_tuning_changes_stage_in_data_and_rate():
    X, y = blobs()
    data = TensorData(torch.tensor(X, dtype=torch.float32), torch.tensor(y))
    seen = []

    class Watch(PlainStep):
        def __call__(self, model, optimizer, batch):
            seen.append((batch.labels(), batch.index, optimizer.param_groups[0]["lr"]))
            return super().__call__(model, optimizer, batch)

    net = network()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    tuning = BalancedFineTuning(start=0.5, lr_factor=0.1, per_class=8)
    fit(net, Watch(get_loss("ce")), data, optimizer=sgd, epochs=4, batch_size=88, callbacks=[tuning])
    counts = [torch.bincount(labels, minlength=3).tolist() for labels, _, _ in seen]
    assert counts[0] == counts[1] == [60, 20, 8]
    for later in counts[2:]:
        assert max(later) - min(later) <= 1
    assert [rate for _, _, rate in seen] == pytest.approx([0.1, 0.1, 0.01, 0.01])
    subset = set(torch.cat([index for _, index, _ in seen[2:]]).tolist())
    assert len(subset) == 24


def test_fine_tuning_and_deferred_weights_enter_the_ledger():
    X, y = blobs()
    prior = np.bincount(y) / len(y)
    params = {"epochs": 4, "module_params": {"hidden": (8,)}, "random_state": 0}
    tuned = NeuralClassifier(callbacks=[BalancedFineTuning(start=0.5)], **params).fit(X, y)
    np.testing.assert_allclose(tuned.training_prior_, 1 / 3, atol=1e-9)
    weights = 1 / prior
    deferred = NeuralClassifier(callbacks=[DeferredReweighting(weights, start=0.5)], **params).fit(X, y)
    np.testing.assert_allclose(deferred.training_prior_, 1 / 3, atol=1e-6)
    np.testing.assert_allclose(tuned.data_prior_, prior)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["table", "image"])
def test_every_loss_trains_a_classifier(name, kind):
    X, y = blobs(counts=(60, 20, 10), d=16)
    labels = np.array(["many", "some", "few"])[y]
    if kind == "image":
        X = X.reshape(-1, 4, 4)
    params = {"hidden": (16,)} if kind == "table" else {"widths": (8, 8)}
    clf = NeuralClassifier(
        loss=name, module_params=params, epochs=12, batch_size=16, lr=0.02, random_state=0
    ).fit(X, labels)
    assert clf.score(X, labels) > 0.8
    proba = clf.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert clf.training_prior_.sum() == pytest.approx(1)
    wanted = "cosine" if getattr(available_losses()[name], "head", "") == "cosine" else "plain"
    assert isinstance(clf.network_.head, CosineLinear) == (wanted == "cosine")


def test_an_instance_and_a_name_train_alike(tmp_path):
    X, y = blobs()
    counts = np.bincount(y)
    params = {"epochs": 5, "module_params": {"hidden": (8,)}, "random_state": 0}
    named = NeuralClassifier(loss="nenum", **params).fit(X, y)
    given = NeuralClassifier(loss=get_loss("nenum", class_counts=counts), **params).fit(X, y)
    np.testing.assert_array_equal(named.decision_function(X), given.decision_function(X))
    cosine = NeuralClassifier(loss="ldam", **params).fit(X, y)
    cosine.save(tmp_path / "model")
    loaded = NeuralClassifier.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(X), cosine.predict_proba(X))


def test_ledger_undoes_the_losses_that_shift_the_prior():
    """Trained to other priors, the posteriors under the data's own prior agree; those of the training differ."""
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.1).astype(int)
    X = (rng.normal(size=4000) + 1.5 * y)[:, None]
    params = {"module_params": {"hidden": ()}, "epochs": 30, "lr": 0.02, "batch_size": 256, "random_state": 0}
    grid = np.linspace(-1, 3, 21)[:, None]
    exact = 1 / (1 + np.exp(-(1.5 * grid[:, 0] - 1.5**2 / 2 + np.log(y.mean() / (1 - y.mean())))))
    for loss, loss_params in [("logit_adjusted", {}), ("class_balanced", {"beta": 1.0}), ("ce", {})]:
        clf = NeuralClassifier(loss=loss, loss_params=loss_params, **params).fit(X, y)
        np.testing.assert_allclose(clf.predict_proba(grid)[:, 1], exact, atol=0.08)
        if loss != "ce":
            np.testing.assert_allclose(clf.training_prior_, 0.5, atol=1e-6)
            assert np.abs(clf.predict_proba(grid, prior="train")[:, 1] - exact).max() > 0.3


@pytest.mark.slow
def test_losses_and_samplers_in_two_processes():
    X, y = blobs()
    params = {"epochs": 3, "module_params": {"hidden": (8,)}, "random_state": 0, "batch_size": 44}
    for loss in ("nenum", "ce"):
        for sampler in (None, "effective_number"):
            one = NeuralClassifier(loss=loss, sampler=sampler, **params).fit(X, y)
            two = NeuralClassifier(loss=loss, sampler=sampler, num_processes=2, **params).fit(X, y)
            np.testing.assert_allclose(
                two.decision_function(X), one.decision_function(X), rtol=1e-2, atol=1e-3
            )
