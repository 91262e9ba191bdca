"""Every loss in other people's code: a short loop, torch.func, a full graph, half precision; and what it says."""

from __future__ import annotations

import copy
import warnings
from collections import Counter

import pytest
import torch
from torch import nn

from equipoise.losses import CombinedLoss, FocalLoss, LDAMLoss, get_loss
from equipoise.networks import build_network, logits_and_features
from loss_cases import NAMES, batch, call, make

STATEFUL = {"nenum", "combined", "isda", "center"}


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def test_a_short_loop_learns(name):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(90) % 3
    X = 3 * torch.eye(3)[y] + torch.randn(90, 3, generator=generator)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = build_network("mlp", (3,), 3, hidden=(16,))
    loss, sgd = make(name, 3, [30, 30, 30]), torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(20):
        loss.start_epoch(epoch, 20)
        for rows in torch.arange(90).split(30):
            sgd.zero_grad()
            logits, features = logits_and_features(net, X[rows])
            needs = {"features": features, "head_weight": net.head.weight}
            loss(logits, y[rows], **{key: needs[key] for key in loss.requires}).backward()
            sgd.step()
        loss.end_epoch()
    assert (net(X).argmax(1) == y).float().mean() > 0.85


def test_an_attached_loss_finds_what_it_needs(name):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    X, y = 9 * torch.randn(12, 4, generator=torch.Generator().manual_seed(1)), torch.arange(12) % 3
    loss, twin = make(name, 3).attach(net), make(name, 3)
    logits = net(X)
    needs = {"features": net[:2](X), "head_weight": net[2].weight}
    value = loss(logits, y)
    torch.testing.assert_close(value, twin(logits, y, **{k: needs[k] for k in loss.requires}))
    value.backward()
    assert not any(key.startswith("_attached") for key in loss.state_dict())
    with pytest.raises(TypeError, match="must end in a linear layer"):
        make(name, 3).attach(nn.ReLU())


@pytest.mark.parametrize("name", ["nenum", "isda"])
def test_network_and_loss_are_copied_together_or_attached_anew(name):
    """After a batch, as averaging of weights and ``sklearn.base.clone`` do."""
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    X, y = torch.randn(12, 4, generator=torch.Generator().manual_seed(1)), torch.arange(12) % 3
    loss = make(name, 3).attach(net)
    loss(net(X), y).backward()
    network, twin = copy.deepcopy((net, loss))
    with torch.no_grad():
        network[2].weight.mul_(3.0)
    value = twin(network(X), y)
    expected = copy.deepcopy(loss)
    with pytest.raises(TypeError, match=r"loss.attach\(network\)"):  # not the weights of a head nobody trains
        expected(network(X), y)
    torch.testing.assert_close(value, expected.attach(network)(network(X), y))
    assert twin._attached.offers(frozenset({"head_weight"}))["head_weight"] is network[2].weight


def test_modules_under_vmap_in_training(name):
    loss = make(name, 5).double()
    parts = [batch(6, 5, seed=seed) for seed in range(3)]
    call(loss, *parts[0])  # statistics that the transform must leave alone
    before = copy.deepcopy(loss.state_dict())
    logits, target = torch.stack([p[0] for p in parts]), torch.stack([p[1] for p in parts])
    extras = {k: torch.stack([p[2][k] for p in parts]) for k in loss.requires}
    mapped = torch.vmap(lambda z, y, e: loss(z, y, **e))(logits, target, extras)
    for key, value in loss.state_dict().items():
        torch.testing.assert_close(value, before[key])
    loss.gathers = False
    torch.testing.assert_close(mapped, torch.stack([call(loss, *part) for part in parts]))


def test_modules_under_grad_in_training(name):
    loss = make(name, 5).double()
    logits, target, extras = batch(6, 5)
    call(loss, logits, target, extras)
    found = torch.func.grad(lambda z: call(loss, z, target, extras))(logits)
    loss.gathers = False
    leaf = logits.clone().requires_grad_()
    (expected,) = torch.autograd.grad(call(loss, leaf, target, extras), leaf)
    torch.testing.assert_close(found, expected)


def test_labels_that_cannot_be_redrawn_are_smoothed():
    """The mean of DisturbLabel over its draws is label smoothing, which transforms and compiled code can do."""
    logits, target, _ = batch(6, 5)
    loss = make("disturblabel", 5, rate=0.3).double()
    drawn = torch.stack([loss(logits, target) for _ in range(2000)])
    smoothed = nn.functional.cross_entropy(logits, target, label_smoothing=0.3)
    assert abs(drawn.mean() - smoothed) < 4 * drawn.std() / 2000**0.5
    assert drawn.std() > 0
    before = int(loss.step)
    each = torch.vmap(torch.func.grad(loss))(logits, target)
    leaf = logits.clone().requires_grad_()
    (expected,) = torch.autograd.grad(
        nn.functional.cross_entropy(leaf, target, label_smoothing=0.3, reduction="sum"), leaf
    )
    torch.testing.assert_close(each, expected)
    compiled = torch.compile(loss, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(logits, target), smoothed)
    torch._dynamo.reset()
    assert int(loss.step) == before


@pytest.mark.filterwarnings("ignore:.* wants logits:UserWarning")
@pytest.mark.parametrize("name", ["vs", "ldam", "kps"])
def test_constants_follow_buffers_and_settings(name):
    """What a loss makes once is made anew when a buffer is loaded, moved or changed, or a setting changes."""
    logits, target, _ = batch(9, 3)
    loss = make(name, 3, [90, 9, 1])
    loss(30 * logits.float(), target)
    source = "log_prior" if name == "vs" else "margins"
    setting = "tau" if name == "vs" else "scale"
    for change in (
        lambda: loss.load_state_dict(make(name, 3, [50, 50, 10]).state_dict()),
        lambda: getattr(loss, source).mul_(0.5),
        lambda: setattr(loss, setting, 2.0),
        loss.double,
        lambda: setattr(loss, source, getattr(loss, source) * 3),
    ):
        change()
        fresh = make(name, 3, [90, 9, 1]).double()
        for buffer, value in loss.named_buffers():
            fresh.get_buffer(buffer).copy_(value)
        setattr(fresh, setting, getattr(loss, setting))
        torch.testing.assert_close(
            loss(30 * logits, target), fresh(30 * logits, target), rtol=1e-6, atol=1e-9
        )


@pytest.mark.slow
def test_modules_compile_to_one_graph_in_training(name):
    one, two = make(name, 5), make(name, 5)
    compiled = torch.compile(two, backend="aot_eager", fullgraph=True)
    for seed in range(3):
        logits, target, extras = batch(8, 5, seed=seed, dtype=torch.float32)
        a, b = logits.clone().requires_grad_(), logits.clone().requires_grad_()
        mine, theirs = call(one, a, target, extras), call(compiled, b, target, extras)
        torch.testing.assert_close(mine, theirs)
        mine.backward()
        theirs.backward()
        torch.testing.assert_close(a.grad, b.grad)
    for key, value in one.state_dict().items():
        torch.testing.assert_close(value, two.state_dict()[key])
    torch._dynamo.reset()


def test_ignored_rows_weigh_nothing_where_values_are_out_of_sight(name):
    if name in STATEFUL | {"lpl", "disturblabel"}:
        pytest.skip("statistics of the batch see ignored rows there, as Loss says")
    logits, target, extras = batch(12, 3)
    masked = torch.where(torch.arange(12) % 3 == 0, torch.tensor(-100), target)
    expected = call(make(name, 3).double(), logits, masked, extras)
    torch.testing.assert_close(call(make(name, 3, validate=False).double(), logits, masked, extras), expected)


def test_no_buffer_is_double_and_none_overflows_in_half(name):
    loss = make(name, 3, counts=[5_000_000, 400_000, 3])
    assert not any(buffer.dtype == torch.float64 for buffer in loss.buffers())
    loss.half()
    assert all(torch.isfinite(buffer).all() for buffer in loss.buffers())
    logits, target, extras = batch(8, 3, dtype=torch.float32)
    assert torch.isfinite(call(loss, logits.half(), target, {k: v.half() for k, v in extras.items()}))


def test_losses_keep_the_precision_of_the_logits(name):
    logits, target, extras = batch(8, 3)
    assert call(make(name, 3), logits, target, extras).dtype == torch.float64


def test_several_labels_are_not_soft_labels():
    loss = get_loss("ce")
    with pytest.raises(ValueError, match=r"must sum to one .* off by 1; several labels a sample"):
        loss(torch.zeros(2, 3), torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]]))
    with pytest.raises(ValueError, match="must sum to one"):
        loss(torch.zeros(1, 3), torch.tensor([[float("nan"), 0.0, 0.0]]))
    loss(torch.zeros(1, 3).half(), torch.tensor([[0.3, 0.3, 0.4]]).half())  # rounding is no reason to refuse


def test_messages_say_what_to_write():
    with pytest.raises(TypeError, match=r"FocalLoss\(gamma=2.0\)"):
        FocalLoss(2.0)
    with pytest.raises(TypeError, match="a count for each class, got 10"):
        get_loss("la", class_counts=10)
    assert get_loss("la", class_counts=Counter([0, 0, 1])).class_counts.tolist() == [2, 1]
    with pytest.raises(ValueError, match=r"must have the keys 0 … C − 1, got \['a', 'b'\]"):
        get_loss("la", class_counts=Counter("aab"))
    with pytest.raises(ValueError, match="give one logit a class, two for a binary problem"):
        get_loss("ce")(torch.zeros(4, 1), torch.tensor([0, 1, 1, 0]))
    with pytest.raises(ValueError, match="one logit a sample is not enough"):
        get_loss("ce")(torch.zeros(4), torch.tensor([0, 1, 1, 0]))
    with pytest.raises(ValueError, match="class indices must be integers"):
        get_loss("ce")(torch.zeros(4, 2), torch.tensor([0.0, 1.0, 1.0, 0.0]))
    with pytest.raises(TypeError, match="give one"):
        FocalLoss(gamma=1.0, phi=2.0)


def test_names_that_people_type():
    assert get_loss("focal", gamma=1.5, alpha=0.25).phi == 1.5
    assert get_loss("cb", [3, 1], gamma=0.5).phi == 0.5
    assert type(get_loss("balanced_softmax", [3, 1])).__name__ == "LogitAdjustedLoss"
    logits, target, _ = batch(5, 3)
    p = logits.softmax(1).gather(1, target[:, None])[:, 0]
    poly = get_loss("poly", epsilon=2.0)(logits, target)
    torch.testing.assert_close(poly, (-p.log() + 2 * (1 - p)).mean())


@pytest.mark.parametrize("name", ["ldam", "kps"])
def test_cosines_are_asked_about_once_and_can_be_said(name):
    logits, target, _ = batch(20, 3)
    cosines = torch.tanh(logits)
    loss = make(name, 3).double()
    with pytest.warns(UserWarning, match='input="cosine"'):
        loss(cosines, target)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(150):
            loss(cosines, target)
        right = make(name, 3).double()
        right(right.scale * cosines, target)
        said = make(name, 3, input="cosine").double()
        torch.testing.assert_close(
            said(cosines, target), make(name, 3).double()(said.scale * cosines, target)
        )


@pytest.mark.parametrize("name", ["ldam", "kps"])
def test_a_head_of_another_scale_is_told_once(name):
    """Also where the first batch's logits are small, as those of a network that has not learned."""
    logits, target, _ = batch(20, 3)
    cosines = torch.tanh(logits)
    for settings, small, large in (({}, 10.0, 64.0), ({"input": "cosine"}, 0.1, 30.0)):
        loss = make(name, 3, **settings).double()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            loss(small * cosines, target)
            for _ in range(250):
                loss(large * cosines, target)
        (said,) = (str(w.message) for w in told)
        wants = "cosines" if settings else f"logits {loss.scale:g}·cos"
        assert said.startswith(
            f"{type(loss).__name__} wants {wants}, but got {large * cosines.abs().max():.4g}"
        )


def test_a_normalizing_head_keeps_its_scale_and_says_so():
    from equipoise.networks import build_network, use_cosine_head

    net = use_cosine_head(build_network("mlp", (4,), 3), 30.0)
    with pytest.warns(UserWarning, match="keeps its scale 30, where 15 was asked for"):
        use_cosine_head(net, 15.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(use_cosine_head(net, 30).head.scale) == 30


@pytest.mark.parametrize("name", ["nenum", "isda", "largemargin", "combined"])
def test_a_loop_without_epoch_calls_is_told_once(name):
    logits, target, extras = batch(4, 3)
    loss = make(name, 3).double()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(250):
            call(loss, logits, target, extras)
    assert [str(w.message).split(": ")[1][:22] for w in told] == ["call loss.start_epoch("]
    quiet = make(name, 3).double()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quiet.start_epoch(0, 1)
        for _ in range(150):
            call(quiet, logits, target, extras)


def test_the_gradient_of_the_scatter_reaches_the_head():
    """With the gradient cut, DS says nothing to the head's weights."""
    found = {}
    for cut in (False, True):
        loss = CombinedLoss([50, 30, 20], tau1=0.0, scatter_gradient=not cut).double()
        logits, target, extras = batch(30, 3)
        logits.requires_grad_()
        head = extras["head_weight"].requires_grad_()
        value = loss(logits, target, features=extras["features"], head_weight=head)
        (found[cut],) = torch.autograd.grad(value, head, allow_unused=True)
    assert found[True] is None
    assert found[False].abs().max() > 1e-3


def test_combined_warms_up_with_cross_entropy():
    logits, target, extras = batch(30, 3)
    loss = CombinedLoss([50, 30, 20], warmup=1 / 3).double()
    plain = nn.functional.cross_entropy(logits, target)
    equal = []
    for epoch in range(6):
        loss.start_epoch(epoch, 6)
        equal.append(bool(torch.isclose(call(loss, logits, target, extras), plain)))
        loss.end_epoch()
    assert equal == [True, True, False, False, False, False]


def test_combined_offsets_are_what_they_say():
    logits, target, extras = batch(30, 3)
    p = logits.softmax(1)
    mean = torch.tensor([0.3, 0.6, 0.9], dtype=torch.float64)
    weight = CombinedLoss([50, 30, 20]).class_weight.double()
    g = torch.where(p >= 0.2, (1 - p) ** 2, (1 - mean) ** 2)
    expected = {"robust": g, "unlikely": (1 - p) ** 2, "likely": torch.where(p <= 0.8, p**2, 0.0)}
    for offset, h in expected.items():
        loss = CombinedLoss([50, 30, 20], tau2=0.0, offset=offset).double()
        loss.mean_probability.copy_(mean)
        moved = logits + h.scatter(1, target[:, None], 0.0)
        each = weight[target] * nn.functional.cross_entropy(moved, target, reduction="none")
        torch.testing.assert_close(call(loss, logits, target, extras), each.mean())
        loss.end_epoch()
    seen = torch.stack([p[target == c, c].mean() for c in range(3)])
    robust = CombinedLoss([50, 30, 20], offset="robust").double()
    robust.start_epoch(5, 6)
    call(robust, logits, target, extras)
    robust.end_epoch()
    torch.testing.assert_close(robust.mean_probability, seen)


def test_plain_margin_without_a_cosine_head_is_also_asked_about():
    with pytest.warns(UserWarning, match="use_cosine_head"):
        LDAMLoss([9, 1])(torch.rand(20, 2), torch.zeros(20, dtype=torch.int64))
