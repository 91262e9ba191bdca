"""The parts of the class-preserving auto-encoder: groups, mixes, penalty, what each update touches."""

from __future__ import annotations

import copy
import math
from collections import Counter

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from equipoise.classifiers import autoencoder_preset
from equipoise.networks import Autoencoder
from equipoise.training import (
    AdaptiveAugmentation,
    Batch,
    Callback,
    Checkpoint,
    ExponentialAverage,
    RandomAffine,
    TensorData,
    make_fabric,
)
from equipoise.training.autoencoder import (
    AutoencoderStep,
    Plan,
    draw_weights,
    gradient_penalty,
    mix,
    rotations,
    train_autoencoder,
)
from equipoise.training.samplers import GroupSampler

PARTS = ("encoder", "head", "decoder", "critic", "mixer")


def data(n=40, shape=(6,), classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    targets = torch.arange(n) % classes
    inputs = torch.rand(n, *shape, generator=generator) + targets.reshape(-1, *(1,) * len(shape)) / classes
    return TensorData(inputs.clamp(0, 2) / 2, targets)


def trained(plan, n_mixed=2, shape=(6,), epochs=1, **kwargs):
    torch.manual_seed(0)
    net = Autoencoder(shape, 3, n_mixed=n_mixed, dropout=0.0)
    before = copy.deepcopy(net)
    run = train_autoencoder(
        net,
        data(shape=shape),
        plan,
        epochs=epochs,
        batch_size=12,
        lr=1e-3,
        weight_decay=0.0,
        seed=0,
        **kwargs,
    )
    changed = {
        part
        for part in PARTS
        if any(
            not torch.equal(a, b)
            for a, b in zip(getattr(net, part).parameters(), getattr(before, part).parameters(), strict=True)
        )
    }
    return net, run, changed


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (Plan(mixing="learned", decoder_rate=1), set(PARTS)),
        (Plan(mixing="beta", decoder_rate=1), {"encoder", "head", "decoder", "critic"}),
        (Plan(oversample=False), {"encoder", "head", "decoder", "critic"}),
        (Plan(mixing="learned", adversarial=False), {"encoder", "head", "decoder", "mixer"}),
        (Plan(mixing="learned", decode=False), {"encoder", "head", "mixer"}),
        (Plan(mixing="learned", decoder_mae=0, adversarial=False), {"encoder", "head", "mixer"}),
        (Plan(mixing="learned", classify=False, decoder_rate=1), set(PARTS)),
    ],
    ids=["all", "no mixer", "no mixes", "no critic", "no decoder", "decoder not told", "no classifier"],
)
def test_each_switch_stills_its_part(plan, expected):
    assert trained(plan)[2] == expected


def test_without_classifier_and_reconstruction_the_encoder_stands_still():
    assert "encoder" not in trained(Plan(classify=False, mae_weight=0.0))[2]
    with pytest.raises(ValueError, match="nothing is left"):
        Plan(classify=False, decode=False)


@pytest.mark.parametrize("n_mixed", [2, 3, 4])
@pytest.mark.parametrize("shape", [(6,), (1, 8, 8), (3, 9, 7)], ids=str)
def test_any_number_of_components_and_any_shape(n_mixed, shape):
    net, run, _ = trained(Plan(mixing="learned", decoder_rate=1, critic_rate=2), n_mixed, shape)
    assert math.isfinite(run.history[-1]["loss"])
    z = net.eval().features(data(shape=shape).inputs)
    assert net.decode(z, data().targets).shape == (40, *shape)


def test_groups_have_one_class_and_classes_are_even():
    targets = torch.tensor([0] * 50 + [1] * 9 + [2])
    order = GroupSampler(targets, 3, 18).order(torch.Generator().manual_seed(1))
    groups = targets[order].reshape(-1, 3)
    assert (groups == groups[:, :1]).all()
    assert len(order) == 72
    assert groups[:, 0].bincount().tolist() == [8, 8, 8]
    with pytest.raises(ValueError, match="multiple of n_mixed"):
        GroupSampler(targets, 3, 16)


def test_weights_say_how_often_a_row_is_drawn():
    targets, weight = torch.tensor([0, 0, 1]), torch.tensor([1.0, 3.0, 1.0])
    order = GroupSampler(targets, 2, 4000, weight).order(torch.Generator().manual_seed(0))
    share = (order == 1).sum() / (order != 2).sum()
    assert float(share) == pytest.approx(0.75, abs=0.03)


def test_natural_batches_have_the_data_s_classes():
    targets = torch.tensor([0] * 70 + [2] * 30)
    sampler = GroupSampler(targets, 2, 4000, natural=True)
    groups = targets[sampler.order(torch.Generator().manual_seed(1))].reshape(-1, 2)
    assert (groups == groups[:, :1]).all()
    assert float((groups[:, 0] == 0).float().mean()) == pytest.approx(0.7, abs=0.04)
    assert sampler.shares == pytest.approx([0.7, 0, 0.3])
    weighted = GroupSampler(targets, 2, 4, torch.where(targets == 0, 3.0, 7.0), natural=True)
    assert weighted.shares == pytest.approx([0.5, 0, 0.5])


def _gradients(plan, batch, net):
    """What the first update of a plan gives the encoder, which SGD with rate 1 shows as the step itself."""
    step = AutoencoderStep(plan, GroupSampler(batch.targets, net.n_mixed, len(batch)))

    class FakeRun:
        network, data, augment = net, TensorData(batch.inputs, batch.targets), None
        fabric = make_fabric()

    step.setup(FakeRun())
    parameters = [*net.encoder.parameters(), *net.head.parameters()]
    before = [parameter.detach().clone() for parameter in parameters]
    torch.manual_seed(5)
    step(net, torch.optim.SGD(parameters, lr=1.0), batch)
    return torch.cat([(a - b).detach().flatten() for a, b in zip(before, parameters, strict=True)])


@pytest.fixture
def still():
    """A network whose mixes are halves and whose layers are the same in every pass."""
    torch.manual_seed(0)
    net = Autoencoder((6,), 3, dropout=0.0).double().eval()
    codes = torch.tensor([0, 0, 1, 1, 2, 2])
    batch = Batch(torch.rand(6, 6).double(), codes, None, torch.arange(6), torch.Generator())
    return net, batch


def test_the_printed_sums_are_equations_6_and_7(still, monkeypatch):
    net, batch = still
    halves = lambda mixing, n, t: torch.full((n, t), 1 / t)  # noqa: E731
    monkeypatch.setattr("equipoise.training.autoencoder.draw_weights", halves)
    common = {"adversarial": False, "decode_rate": 1.0, "decode_share": 1.0, "decoder_mae": 0.0}
    z = net.features(batch.inputs)
    mixes = z.reshape(3, 2, -1).mean(dim=1)
    clf = F.cross_entropy(net.head(z), batch.targets, reduction="sum")
    clf = clf + F.cross_entropy(net.head(mixes), batch.targets[::2], reduction="sum")
    decoded = net.decode(z, batch.targets)
    printed = (5 * clf + 0.01 * (batch.inputs - decoded).abs().sum()) / (3 * 3)  # 3 groups of t + 1 terms
    expected = torch.autograd.grad(printed, [*net.encoder.parameters(), *net.head.parameters()])
    found = _gradients(Plan(reduction="sum", **common), batch, copy.deepcopy(net))
    assert torch.allclose(found, torch.cat([g.flatten() for g in expected]), atol=1e-12)
    assert not torch.allclose(found, _gradients(Plan(**common), batch, copy.deepcopy(net)), atol=1e-4)


def test_only_the_classes_below_the_largest_are_mixed(still):
    net, _ = still
    codes = torch.tensor([0, 0, 0, 0, 1, 1])
    batch = Batch(torch.rand(6, 6).double(), codes, None, torch.arange(6), torch.Generator())
    step = AutoencoderStep(Plan(mixed_classes="minority", decode=False), GroupSampler(codes, 2, 6))

    class FakeRun:
        network, data, augment = net, TensorData(batch.inputs, codes), None

    step.setup(FakeRun())
    z = net.features(batch.inputs)
    torch.manual_seed(1)
    loss, _, mixes = step._classify(net, z, codes)
    logits = torch.cat([net.head(z), net.head(mixes[4:])])
    assert torch.allclose(loss, F.cross_entropy(logits, torch.cat([codes, codes[4:]])))


def test_the_mixer_s_wrong_label_can_be_always_another(still, monkeypatch):
    net, batch = still
    aims = []
    kept = F.cross_entropy

    def watched(logits, codes, **kwargs):
        aims.append(codes)
        return kept(logits, codes, **kwargs)

    monkeypatch.setattr("equipoise.training.autoencoder.F.cross_entropy", watched)
    for _ in range(20):
        _gradients(Plan(mixing="learned", wrong_label="other", decode=False), batch, copy.deepcopy(net))
    assert all((wrong != batch.targets).all() for wrong in aims[1::2])


def test_the_encoder_s_gradient_passes_through_the_mixer_only_if_asked(still):
    net, batch = still
    one, two = (
        _gradients(Plan(mixing="learned", mixer_gradient=on, decode=False), batch, copy.deepcopy(net))
        for on in (False, True)
    )
    assert not torch.allclose(one, two)


def test_an_untold_critic_does_not_ask_for_the_class():
    net = Autoencoder((6,), 3, critic_told=False)
    x = torch.rand(4, 6)
    assert torch.equal(net.criticize(x, torch.zeros(4).long()), net.criticize(x, torch.ones(4).long()))
    told = sum(p.numel() for p in Autoencoder((6,), 3).critic.parameters())
    assert told - sum(p.numel() for p in net.critic.parameters()) == 3 * 128


def test_the_paper_s_plan_counts_four_decoder_and_twenty_critic_updates(monkeypatch):
    counted = Counter()
    for name in ("_update_critic", "_update_decoder", "_reconstruct"):
        original = getattr(AutoencoderStep, name)

        def counting(self, net, *args, original=original, name=name):
            counted[name, args[-1] if name == "_update_decoder" else ""] += 1
            if name == "_update_critic":
                counted["rows"] = max(counted["rows"], len(args[0]))
            return original(self, net, *args)

        monkeypatch.setattr(AutoencoderStep, name, counting)
    settings = autoencoder_preset("paper", "table", n_rows=40)
    _, _, changed = trained(Plan(mixing="learned", **settings["plan_params"]))
    updates = 4  # 40 rows in batches of 12
    assert counted["_update_decoder", "adversary"] == 4 * updates
    assert counted["_update_decoder", "decoder"] == updates
    assert counted["_update_critic", ""] == 20 * updates
    assert counted["_reconstruct", ""] == updates
    assert counted["rows"] == 24, "reconstructions beside mixes"
    assert changed == set(PARTS)


def test_clean_targets_are_the_images_before_augmentation(monkeypatch):
    seen = []
    original = AutoencoderStep._reconstruct

    def watched(self, net, z, x, labels):
        seen.append(x)
        return original(self, net, z, x, labels)

    monkeypatch.setattr(AutoencoderStep, "_reconstruct", watched)
    black = lambda images, generator: torch.zeros_like(images)  # noqa: E731
    trained(Plan(clean_targets=True), augment=black)
    assert float(seen[0].max()) > 0
    seen.clear()
    trained(Plan(), augment=black)
    assert float(seen[0].max()) == 0


def test_mixes_are_convex_and_rotations_permute_the_weights():
    groups = torch.rand(5, 3, 4, dtype=torch.float64)
    weights = draw_weights("uniform", 5, 3).double()
    mixes = mix(groups, weights)
    assert (mixes >= groups.min(dim=1).values - 1e-12).all()
    assert (mixes <= groups.max(dim=1).values + 1e-12).all()
    turned = rotations(groups).reshape(5, 3, 3, 4)
    for turn in range(3):
        assert torch.allclose(mix(turned[:, turn], weights.roll(-turn, dims=1)), mixes)


@pytest.mark.parametrize(("mixing", "variance"), [("uniform", 1 / 12), ("beta", 1 / 20)])
def test_drawn_weights_are_beta(mixing, variance):
    torch.manual_seed(0)
    first = draw_weights(mixing, 100_000, 2)[:, 0]
    assert float(first.mean()) == pytest.approx(0.5, abs=0.005)
    assert float(first.var()) == pytest.approx(variance, rel=0.03)


def test_penalty_of_a_linear_critic_is_known():
    slope = torch.tensor([3.0, 4.0])
    penalty = gradient_penalty(lambda x: x @ slope, torch.rand(6, 2), torch.rand(6, 2), torch.rand(6))
    assert float(penalty) == pytest.approx((5 - 1) ** 2)


def test_the_average_is_worn_between_epochs_and_leaves_out_what_it_should():
    seen = []

    class Look(ExponentialAverage):
        def on_epoch_end(self, run, record):
            super().on_epoch_end(run, record)
            seen.append(torch.equal(run.network.head.weight, self.average["head.weight"]))

    average = Look(0.9, skip=("critic", "mixer"))
    net, _, _ = trained(Plan(decode=False), epochs=2, callbacks=[average])
    assert seen == [True, True]
    assert average.steps == 8
    assert not any(name.startswith("critic") for name in average.average)
    assert not torch.equal(average.own["head.weight"], net.head.weight)


def test_average_forgets_its_start():
    class Still(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

    class FakeRun:
        network, batch = Still(), 1

    average, run = ExponentialAverage(0.5), FakeRun()
    average.on_start(run)
    with torch.no_grad():
        run.network.weight.fill_(3.0)
    expected = 1.0
    for step in range(1, 30):
        average.on_step_start(run)
        kept = min(0.5, (1 + step) / (10 + step))
        expected = kept * expected + (1 - kept) * 3.0
    assert float(average.average["weight"]) == pytest.approx(expected)


def test_a_shift_by_pixels_is_a_shift():
    images = torch.zeros(1, 1, 8, 8)
    images[0, 0, 4, 4] = 1.0
    many = RandomAffine(shift=0.25)(images.repeat(200, 1, 1, 1), torch.Generator().manual_seed(0))
    assert many.sum(dim=(1, 2, 3)).min() > 0.9, "an inner point never leaves"
    rows = (many * torch.arange(8.0).reshape(1, 1, 8, 1)).sum(dim=(1, 2, 3)) / many.sum(dim=(1, 2, 3))
    assert 1.9 < float(rows.min()) < 2.5
    assert 5.5 < float(rows.max()) < 6.1
    mirrored = RandomAffine(shift=0, flip=True)(images.repeat(50, 1, 1, 1), torch.Generator().manual_seed(0))
    assert {int(m.argmax()) % 8 for m in mirrored} == {3, 4}


class _Killed(Exception):
    pass


class _Kill(Callback):
    def __init__(self, epoch):
        self.epoch = epoch

    def on_epoch_end(self, run, record):
        if run.epoch == self.epoch:
            raise _Killed


@pytest.mark.slow
def test_adaptive_augmentation_follows_the_critic_and_is_resumed(tmp_path):
    plan = Plan(decoder_rate=1.0)

    def run(folder, kill=None):
        augment = AdaptiveAugmentation(target=0.0, patience=200)
        where = Checkpoint(tmp_path / folder, identity={"of": "the same"})
        callbacks = [where, _Kill(kill)]
        net, _, _ = trained(plan, shape=(1, 16, 16), epochs=4, augment=augment, callbacks=callbacks)
        return net, augment.share

    whole, share = run("whole")
    assert 0 < share < 1
    with pytest.raises(_Killed):
        run("killed", kill=2)
    resumed, again = run("killed")
    assert again == share
    for a, b in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(a, b)


def test_adaptive_augmentation_leaves_images_alone_until_asked():
    images, chance = torch.rand(50, 1, 8, 8), torch.Generator().manual_seed(0)
    augment = AdaptiveAugmentation()
    assert torch.equal(augment(images, chance), images)
    augment.share = 0.5
    same = (augment(images, chance) == images).flatten(1).all(dim=1)
    assert 10 < int(same.sum()) < 40
    augment.share = 0.0
    augment.hear(-torch.ones(9))
    assert augment.share == 0
