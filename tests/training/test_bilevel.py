"""The meta gradient is exact; the step is the optimizer's; the meta set and the counter are what they say."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call

from equipoise.losses import CombinedLoss, MetaENumLoss, MetaSAugLoss, MetaWeightNetLoss
from equipoise.losses._covariance import RunningCovariance
from equipoise.losses._learned import SeenBatch, nearest_psd
from equipoise.losses.functional import data_scatter
from equipoise.losses.meta_enum import ForgettingCounter, training_dynamics
from equipoise.networks import build_network
from equipoise.training import Batch, PlainStep, TensorData, fit
from equipoise.training.bilevel import BilevelStep, virtual_update
from equipoise.training.metaset import MetaSet, take_meta_set
from equipoise.training.sam import statistics_kept

METHODS = {"meta-enum": MetaENumLoss, "mwn": MetaWeightNetLoss, "metasaug": MetaSAugLoss}
COUNTS = [40, 12, 6]
SGD = {
    "plain": {"lr": 0.3},
    "momentum": {"lr": 0.3, "momentum": 0.9, "weight_decay": 1e-2, "dampening": 0.2},
    "nesterov": {"lr": 0.3, "momentum": 0.9, "weight_decay": 1e-2, "nesterov": True},
}


def setting(method="meta-enum", optimizer="plain", seed=0, dropout=0.0, loss_params=None, **params):
    """A double-precision convnet with batch norm, some steps into training."""
    torch.manual_seed(seed)
    net = build_network("convnet", (1, 8, 8), 3, widths=(4, 6), dropout=dropout).double()
    x, y = torch.randn(24, 1, 8, 8).double(), torch.tensor([0] * 12 + [1] * 8 + [2] * 4)
    meta = MetaSet(torch.randn(9, 1, 8, 8).double(), torch.arange(9) % 3, torch.arange(9), 3)
    loss = METHODS[method](COUNTS, **(loss_params or {})).double()
    step = BilevelStep(loss, meta, meta_lr=1e-2, **params)
    sgd = torch.optim.SGD(net.parameters(), **SGD[optimizer])
    batch = Batch(x, y, torch.linspace(0.5, 1.5, 24).double(), torch.arange(24), torch.Generator())
    net.train()
    for _ in range(2):
        step(net, sgd, batch)
    return net, sgd, step, batch


def found_gradients(net, sgd, step, batch, monkeypatch):
    """What the step finds for Ω, Θ and Ω left as they were."""
    kept = []
    monkeypatch.setattr(step, "_step_omega", kept.append)
    state = copy.deepcopy(net.state_dict())
    momentum = copy.deepcopy(sgd.state_dict())
    loss_state = copy.deepcopy(step.loss.state_dict())
    step(net, sgd, batch)
    sigma = None if step.loss.sigma is None else step.loss.sigma.detach().clone()
    net.load_state_dict(state)
    sgd.load_state_dict(momentum)
    step.loss.load_state_dict(loss_state)
    return kept[0], sigma


def meta_value(net, sgd, step, batch, sigma, values, *, create_graph=False):
    """L_meta(Θ̂(Ω)) by ordinary reverse mode and an SGD written out, with Ω as given."""
    loss = step.loss
    names = [name for name, _ in loss.named_parameters()]
    loss.sigma = sigma if sigma is None else values[0]
    own = dict(zip(names, values[len(values) - len(names) :], strict=True))
    parameters = dict(net.named_parameters())

    def learned(logits, seen, head):
        return functional_call(loss, own, (logits, seen, head))

    with statistics_kept(net, nn.Identity()):
        torch.manual_seed(7)
        features = net.features(batch.inputs)
        logits = net.head(features)
    seen = SeenBatch(logits.detach(), batch.targets, features.detach(), batch.index, batch.weight)
    seen.dynamics = step.kept_dynamics
    value = learned(logits, seen, net.head.weight)
    gradients = torch.autograd.grad(value, list(parameters.values()), create_graph=create_graph)
    if step.clip is not None:
        norm = torch.sqrt(sum((g**2).sum() for g in gradients))
        gradients = [g * (step.clip / (norm + 1e-6)).clamp(max=1.0) for g in gradients]
    group = sgd.param_groups[0]
    ahead = {}
    for (name, p), g in zip(parameters.items(), gradients, strict=True):
        d = g + group["weight_decay"] * p
        buffer = sgd.state[p].get("momentum_buffer") if group["momentum"] else None
        if buffer is not None:
            buffer = group["momentum"] * buffer + (1 - group["dampening"]) * d
            d = d + group["momentum"] * buffer if group["nesterov"] else buffer
        ahead[name] = p - group["lr"] * d
    rows = step.meta.draw(len(batch), batch.generator)
    with statistics_kept(net, nn.Identity()):
        meta_logits = functional_call(net, ahead, (step.meta.inputs[rows],))
    targets = step.meta.targets[rows]
    if step.meta_loss == "ce":
        return nn.functional.cross_entropy(meta_logits, targets)
    weight = torch.full((len(rows),), 1 / len(rows)).double()
    view = SeenBatch(meta_logits.detach(), targets, torch.zeros(9, 6), step.meta.index[rows], weight)
    if not hasattr(step, "meta_dynamics"):  # constants, by the loss's convention
        step.meta_dynamics = training_dynamics(meta_logits.detach(), targets, loss.counter.share(view.index))
    view.dynamics = step.meta_dynamics
    return learned(meta_logits, view, ahead["head.weight"])


CASES = [
    ("meta-enum", "plain", {}),
    ("meta-enum", "momentum", {}),
    ("meta-enum", "nesterov", {"clip": 0.05}),
    ("meta-enum", "momentum", {"meta_loss": "literal"}),
    ("meta-enum", "momentum", {"loss_params": {"covariance": "diagonal"}}),
    ("mwn", "momentum", {}),
    ("metasaug", "nesterov", {}),
]


@pytest.mark.parametrize(("method", "optimizer", "params"), CASES)
def test_meta_gradient_equals_double_backward_and_finite_differences(method, optimizer, params, monkeypatch):
    net, sgd, step, batch = setting(method, optimizer, **params)
    observe = step.loss.observe

    def remembering(seen, *, training=True):
        observe(seen, training=training)
        if training:
            step.kept_dynamics = seen.dynamics

    monkeypatch.setattr(step.loss, "observe", remembering)
    found, sigma = found_gradients(net, sgd, step, batch, monkeypatch)
    omega = [*([] if sigma is None else [sigma]), *(p.detach().clone() for p in step.loss.parameters())]
    leaves = [value.clone().requires_grad_() for value in omega]
    value = meta_value(net, sgd, step, batch, sigma, leaves, create_graph=True)
    twice = torch.autograd.grad(value, leaves)
    one, two = (torch.cat([g.flatten() for g in gradients]) for gradients in (found, twice))
    assert two.norm() > 1e-8
    assert (one - two).norm() <= 1e-6 * two.norm()
    generator = torch.Generator().manual_seed(1)
    for part in range(len(omega)):
        if found[part].norm() < 1e-9 * one.norm():
            continue
        direction = torch.randn(omega[part].shape, generator=generator).double()
        direction = direction / direction.norm() + 2 * found[part] / found[part].norm()
        scale = float(found[part].norm() * direction.norm())
        step_size = 4e-9 / scale  # large enough for ten digits, small enough to cross no kink
        ends = []
        for sign in (1, -1):
            moved = [v + sign * step_size * direction if k == part else v for k, v in enumerate(omega)]
            ends.append(meta_value(net, sgd, step, batch, sigma, moved).item())
        slope = (ends[0] - ends[1]) / (2 * step_size)
        assert slope == pytest.approx(float((found[part] * direction).sum()), abs=1e-6 * scale)


@pytest.mark.parametrize("clip", [None, 0.02])
@pytest.mark.parametrize("optimizer", SGD)
def test_virtual_update_is_the_optimizers(optimizer, clip):
    net, sgd, _, batch = setting(optimizer=optimizer)
    nn.functional.cross_entropy(net(batch.inputs), batch.targets).backward()
    parameters = dict(net.named_parameters())
    gradients = {name: p.grad.clone() for name, p in parameters.items()}
    ahead = virtual_update(parameters, gradients, sgd, clip=clip).weights
    if clip is not None:
        nn.utils.clip_grad_norm_(net.parameters(), clip)
    sgd.step()
    for name, p in parameters.items():
        assert torch.allclose(ahead[name], p, rtol=1e-12, atol=1e-14)


def test_dropout_is_the_same_in_both_passes(monkeypatch):
    """With dropout the tangents belong to the very network that was called."""
    net, sgd, step, batch = setting(dropout=0.5)
    from equipoise.training import bilevel

    seen = []
    original = bilevel.logits_tangent

    def spying(network, inputs, w, record, randomness, context):
        tangent = original(network, inputs, w, record, randomness, context)
        h = 1e-6
        ends = []
        for sign in (1, -1):
            moved = {n: p.detach() + sign * h * w[n] for n, p in network.named_parameters()}
            torch.set_rng_state(randomness)
            with torch.no_grad(), statistics_kept(network, nn.Identity()):
                ends.append(functional_call(network, moved, (inputs,)))
        seen.append((tangent, (ends[0] - ends[1]) / (2 * h)))
        return tangent

    monkeypatch.setattr(bilevel, "logits_tangent", spying)
    step(net, sgd, batch)
    tangent, slope = seen[0]
    assert torch.allclose(tangent, slope, rtol=1e-5, atol=1e-7)


def test_head_only_is_exact_for_a_network_that_is_its_head(monkeypatch):
    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(5, 3)

        def forward(self, x):
            return self.head(x)

    torch.manual_seed(0)
    net = Head().double()
    x, y = torch.randn(30, 5).double(), torch.arange(30) % 3
    found = []
    for layers in ("all", "head"):
        torch.manual_seed(1)
        loss = MetaENumLoss(COUNTS).double()
        meta = MetaSet(x[:6], y[:6], torch.arange(6), 3)
        step = BilevelStep(loss, meta, layers=layers)
        kept = []
        monkeypatch.setattr(step, "_step_omega", kept.append)
        copied = copy.deepcopy(net)
        sgd = torch.optim.SGD(copied.parameters(), lr=0.1, momentum=0.9)
        step(copied, sgd, Batch(x, y, None, torch.arange(30), torch.Generator()))
        found.append(kept[0])
    for one, two in zip(*found, strict=True):
        assert torch.allclose(one, two, rtol=1e-10, atol=1e-16)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("layers", ["all", "head"])
def test_a_run_learns_omega_and_keeps_sigma_psd(method, layers):
    net, sgd, step, batch = setting(method, "momentum", layers=layers)
    before = [p.detach().clone() for p in step.loss.parameters()]
    step(net, sgd, batch)
    assert all(not torch.equal(a, b) for a, b in zip(before, step.loss.parameters(), strict=True))
    if step.loss.sigma is not None:
        assert torch.linalg.eigvalsh(step.loss.sigma).min() >= -1e-14
        assert not torch.equal(step.loss.sigma, step.loss.statistics.sigma)


def test_warm_up_is_plain_training():
    torch.manual_seed(0)
    x, y = torch.randn(40, 1, 8, 8), torch.arange(40) % 3
    net = build_network("convnet", (1, 8, 8), 3, widths=(4, 6))
    other = copy.deepcopy(net)
    meta = MetaSet(x[:6], y[:6], torch.arange(6), 3)
    step = BilevelStep(MetaENumLoss([14, 13, 13]), meta, warmup=1.0, clip=1.0)
    for model, method in ((net, step), (other, PlainStep(nn.CrossEntropyLoss(), clip=1.0))):
        sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        fit(model, method, TensorData(x, y), optimizer=sgd, epochs=2, batch_size=20)
    for one, two in zip(net.state_dict().values(), other.state_dict().values(), strict=True):
        assert torch.allclose(one.double(), two.double(), atol=1e-6)
    assert step.class_pull == []


def test_without_h_and_scatter_it_is_class_balanced_cross_entropy():
    from equipoise.losses import get_loss

    torch.manual_seed(0)
    x, y = torch.randn(40, 1, 8, 8), (torch.arange(40) % 8).clamp(max=2)
    counts = torch.bincount(y).numpy()
    net = build_network("convnet", (1, 8, 8), 3, widths=(4, 6))
    other = copy.deepcopy(net)
    meta = MetaSet(x[:6], y[:6], torch.arange(6), 3)
    step = BilevelStep(MetaENumLoss(counts, tau1=0, tau2=0), meta)
    for model, method in ((net, step), (other, PlainStep(get_loss("class_balanced", counts, beta=0.9999)))):
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        fit(model, method, TensorData(x, y), optimizer=sgd, epochs=2, batch_size=20)
    for one, two in zip(net.parameters(), other.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-6)
    assert torch.allclose(step.class_pull[-1].float(), step.loss.class_weight, rtol=1e-4)


def test_autocast_learns_about_the_same(monkeypatch):
    from equipoise.training import make_fabric

    found = []
    for precision in ("32-true", "bf16-mixed"):
        torch.manual_seed(0)
        x, y = torch.randn(24, 1, 8, 8), torch.arange(24) % 3
        net = build_network("convnet", (1, 8, 8), 3, widths=(4, 6))
        step = BilevelStep(MetaENumLoss([8, 8, 8]), MetaSet(x[:9], y[:9], torch.arange(9), 3))
        kept = []
        monkeypatch.setattr(step, "_step_omega", kept.append)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        fit(net, step, TensorData(x, y), optimizer=sgd, epochs=1, batch_size=24,
            fabric=make_fabric(precision=precision))  # fmt: skip
        found.append(torch.cat([g.flatten() for g in kept[0]]))
    cosine = nn.functional.cosine_similarity(*found, dim=0)
    assert cosine > 0.95
    assert 0.8 < found[1].norm() / found[0].norm() < 1.25


# Parts


def test_running_covariance_is_the_covariance():
    rng = torch.Generator().manual_seed(0)
    features, target = torch.randn(60, 4, generator=rng), torch.arange(60) % 2
    for kind in ("full", "diagonal"):
        running = RunningCovariance(2, 4, kind, memory=torch.tensor([30, 30]))
        for part in torch.arange(60).split(17):
            running.update(features[part], target[part])
        for code in (0, 1):
            expected = torch.cov(features[target == code].T, correction=0)
            expected = expected if kind == "full" else expected.diagonal()
            assert torch.allclose(running.sigma[code], expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["full", "diagonal"])
def test_a_class_remembers_as_many_samples_as_it_has(kind):
    """Old batches fade: after many batches from elsewhere the old place of a class is forgotten."""
    running = RunningCovariance(2, 3, kind, memory=torch.tensor([20, 10**6]))
    generator = torch.Generator().manual_seed(0)
    target = torch.arange(20) % 2
    for place in (0.0, 50.0):
        for _ in range(30):
            running.update(place + torch.randn(20, 3, generator=generator), target)
    assert torch.allclose(running.mean[0], torch.full((3,), 50.0), atol=1.0)
    assert torch.allclose(running.mean[1], torch.full((3,), 25.0), atol=0.5)
    assert running.count.tolist() == [30, 600]


@pytest.mark.parametrize("kind", [MetaENumLoss, MetaSAugLoss])
def test_a_learned_loss_remembers_no_more_of_a_class_than_its_count(kind):
    """With counts of 20 and 10⁶, thirty batches from a new place replace the first class and half of the second."""
    loss = kind([20, 10**6])
    loss.prepare(3, 600)
    generator = torch.Generator().manual_seed(0)
    target = torch.arange(20) % 2
    for place in (0.0, 50.0):
        for _ in range(30):
            features = place + torch.randn(20, 3, generator=generator)
            loss.observe(SeenBatch(torch.zeros(20, 2), target, features, torch.arange(20)))
    assert torch.allclose(loss.statistics.mean[0], torch.full((3,), 50.0), atol=1.0)
    assert torch.allclose(loss.statistics.mean[1], torch.full((3,), 25.0), atol=0.5)


def test_batches_smaller_and_larger_than_the_classes_give_the_same_covariance():
    generator = torch.Generator().manual_seed(0)
    features, target = torch.randn(90, 3, generator=generator), torch.randint(8, (90,), generator=generator)
    for kind in ("full", "diagonal"):
        small, large = RunningCovariance(8, 3, kind), RunningCovariance(8, 3, kind)
        for rows in torch.arange(90).split(5):
            small.update(features[rows], target[rows])
        large.update(features, target)
        for name, buffer in small.named_buffers():
            torch.testing.assert_close(buffer, getattr(large, name), atol=1e-5, rtol=1e-5)


def test_many_classes_have_the_same_second_moments_as_few():
    generator = torch.Generator().manual_seed(0)
    features, target = torch.randn(200, 3, generator=generator), torch.arange(200) % 70
    running = RunningCovariance(70, 3, "full")
    running.update(features, target)
    expected = torch.stack([torch.cov(features[target == c].T, correction=0) for c in range(70)])
    torch.testing.assert_close(running.sigma, expected, atol=1e-5, rtol=1e-4)


def test_forgetting_is_counted_up_to_a_limit_of_memory():
    loss = MetaENumLoss([10] * 50)
    loss.prepare(4, 1_000_000)  # 5·10⁷ small integers
    assert loss.counter is not None
    loss = MetaENumLoss([10] * 50)
    with pytest.warns(UserWarning, match="forgetting is not counted for 1000001 rows × 50 classes"):
        loss.prepare(4, 1_000_001)
    assert loss.counter is None


def test_metasaug_as_published_keeps_what_it_learned():
    """All samples are remembered, a batch enters after its step, learned covariances stay, the mean is weighted."""
    loss = MetaSAugLoss([8, 4], preset="paper", sigma_lr=1.0)
    loss.prepare(2, 12)
    assert loss.statistics.memory is None
    generator = torch.Generator().manual_seed(0)
    first, target = torch.randn(12, 2, generator=generator), torch.arange(12) % 2
    seen = SeenBatch(torch.zeros(12, 2), target, first, torch.arange(12))
    loss.observe(seen)
    assert not loss.statistics.count.any()
    loss.observe(SeenBatch(torch.zeros(12, 2), target, first, torch.arange(12)))
    assert loss.statistics.count.tolist() == [6, 6]
    (sigma,) = loss.begin()
    loss.learn([-torch.eye(2).expand(2, 2, 2)])
    torch.testing.assert_close(loss.statistics.sigma, sigma.detach() + torch.eye(2))
    value = MetaSAugLoss([8, 4], preset="paper")(torch.zeros(12, 2), seen, torch.zeros(2, 2))
    assert float(value) == pytest.approx(np.log(2), rel=1e-5)  # whatever the weights


def test_combined_is_meta_enum_with_nothing_learned():
    """The same weights after some epochs, warm-up included: the row "without meta-learning" differs in learning."""
    params = {"beta": 0.9, "tau1": 0.7, "tau2": 1.3}
    networks = []
    for meta_learned in (True, False):
        torch.manual_seed(0)
        net = build_network("convnet", (1, 8, 8), 3, widths=(4, 6)).double()
        x, y = torch.randn(24, 1, 8, 8).double(), torch.tensor([0] * 12 + [1] * 8 + [2] * 4)
        if meta_learned:
            loss = MetaENumLoss(COUNTS, offset="constant", sigma_lr=0.0, **params).double()
            step = BilevelStep(loss, MetaSet(x[::4], y[::4], torch.arange(24)[::4], 3), warmup=1 / 3)
        else:
            step = PlainStep(CombinedLoss(COUNTS, warmup=1 / 3, **params).double())
        sgd = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        fit(net, step, TensorData(x, y), optimizer=sgd, epochs=6, batch_size=8)
        networks.append(net)
    for one, two in zip(*(net.parameters() for net in networks), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-6, atol=1e-8)


def test_scatter_is_the_variance_of_projections():
    rng = torch.Generator().manual_seed(0)
    features, weight = torch.randn(50, 4, generator=rng).double(), torch.randn(3, 4, generator=rng).double()
    sigma = torch.cov(features.T, correction=0).expand(3, 4, 4)
    logits = features @ weight.T
    expected = (logits[:, 0] - logits[:, 1]).var(correction=0) / (weight[0] - weight[1]).square().sum()
    for target in (
        torch.tensor([0, 2]),
        torch.tensor([0, 2, 1, 0, 2]),
    ):  # fewer samples than classes, and more
        scatter = data_scatter(weight, sigma, target)
        assert torch.isclose(scatter[0, 1], expected)
        assert not scatter.gather(1, target[:, None]).any()


@pytest.mark.parametrize("kind", ["full", "diagonal"])
@pytest.mark.parametrize("n", [7, 90])
def test_scatter_of_many_classes_is_that_of_few(kind, n, monkeypatch):
    """Above a size the quadratic forms are multiplied out; values and gradients are the same."""
    rng = torch.Generator().manual_seed(0)
    weight = torch.randn(40, 5, generator=rng).double().requires_grad_()
    root = torch.randn(40, 5, 5, generator=rng).double()
    sigma = root @ root.mT if kind == "full" else root[:, 0].square()
    target = torch.randint(40, (n,), generator=rng)
    found = []
    for small in (1 << 16, 0):
        monkeypatch.setattr("equipoise.losses.functional.scatter._SMALL", small)
        scatter = data_scatter(weight, sigma, target).scatter(1, target[:, None], 0.0)
        (gradient,) = torch.autograd.grad(scatter.square().sum(), weight)
        found.append((scatter.detach(), gradient))
    torch.testing.assert_close(found[0][0], found[1][0], atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(found[0][1], found[1][1], atol=1e-7, rtol=1e-7)


def test_nearest_psd():
    rng = torch.Generator().manual_seed(0)
    a = torch.randn(5, 4, 4, generator=rng).double()
    good = a @ a.mT
    assert torch.allclose(nearest_psd(good), good)
    fixed = nearest_psd(a)
    assert torch.linalg.eigvalsh(fixed).min() > -1e-12
    assert torch.equal(nearest_psd(torch.tensor([[-1.0, 2.0]])), torch.tensor([[0.0, 2.0]]))


def test_meta_set_is_balanced_seeded_and_never_all_of_a_class():
    y = np.array(["a"] * 50 + ["b"] * 30 + ["c"] * 24)
    rows = take_meta_set(y, 10, random_state=3)
    assert np.unique(y[rows], return_counts=True)[1].tolist() == [10, 10, 10]
    assert np.array_equal(rows, take_meta_set(y, 10, random_state=3))
    assert not np.array_equal(rows, take_meta_set(y, 10, random_state=4))


def test_a_tiny_class_gives_fewer_and_says_so():
    y = [0] * 40 + [1] * 7 + [2]
    with pytest.warns(UserWarning, match=r"1: 3 of 7; 2: 1 of 1"):
        rows = take_meta_set(y, 10, random_state=0)
    assert np.bincount(np.array(y)[rows]).tolist() == [10, 3, 1]


def test_meta_batches_are_balanced():
    targets = torch.tensor([0] * 8 + [1] * 8 + [2] * 3)
    meta = MetaSet(torch.zeros(19, 1), targets, torch.arange(19), 3)
    rows = meta.draw(9, torch.Generator().manual_seed(0))
    assert torch.bincount(targets[rows]).tolist() == [3, 3, 3]
    assert len(rows.unique()) == 9
    assert len(meta.draw(100, torch.Generator())) == 19


def test_forgetting_counts_negative_margins():
    counter = ForgettingCounter(2, 3)
    for margin in ([0.0, -1.0, 2.0], [0.0, -1.0, -2.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]):
        counter.update(torch.tensor([0]), torch.tensor([margin]))
    assert counter.share(torch.tensor([0, 1, -1])).tolist() == [[0, 0.5, 0.25], [0, 0, 0], [0, 0, 0]]


def test_forgetting_is_optional_above_a_size():
    loss = MetaENumLoss(np.full(1000, 5))
    with pytest.warns(UserWarning, match="forgetting is not counted for 60000 rows"):
        loss.prepare(4, 60_000)
    assert loss.counter is None


# Bad input


def test_a_loss_without_omega():
    meta = MetaSet(torch.zeros(3, 1), torch.arange(3), torch.arange(3), 3)
    with pytest.raises(TypeError, match="loss must be a LearnedLoss"):
        BilevelStep(nn.CrossEntropyLoss(), meta)


def test_a_network_without_a_head():
    meta = MetaSet(torch.zeros(3, 2), torch.arange(3), torch.arange(3), 3)
    net = nn.Linear(2, 3)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    with pytest.raises(TypeError, match="linear layer named head"):
        fit(net, BilevelStep(MetaENumLoss(COUNTS), meta), TensorData(torch.zeros(3, 2), torch.arange(3)),
            optimizer=sgd, epochs=1)  # fmt: skip


def test_a_meta_set_of_some_classes_only():
    with pytest.warns(UserWarning, match=r"no sample of classes \[1\].*other 2 only"):
        MetaSet(torch.zeros(2, 1), torch.tensor([0, 2]), torch.arange(2), 3)
    with pytest.raises(ValueError, match="must not be empty"):
        MetaSet(torch.zeros(0, 1), torch.zeros(0, dtype=torch.long), torch.arange(0), 3)
    with pytest.raises(ValueError, match="has class 5"):
        MetaSet(torch.zeros(2, 1), torch.tensor([0, 5]), torch.arange(2), 3)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"meta_loss": "mse"}, "meta_loss must be"),
        ({"layers": "body"}, "layers must be"),
        ({"warmup": 1.5}, "warmup must lie"),
        ({"meta_batch_size": 0}, "meta_batch_size must be"),
        ({"meta_lr": -1.0}, "meta_lr must be"),
    ],
)
def test_bad_settings(params, message):
    meta = MetaSet(torch.zeros(3, 1), torch.arange(3), torch.arange(3), 3)
    with pytest.raises(ValueError, match=message):
        BilevelStep(MetaENumLoss(COUNTS), meta, **params)
