"""The loop: order, randomness, callbacks, samplers, stopping."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from equipoise.networks import build_network
from equipoise.training import (
    Callback,
    ClassSampler,
    DeferredReweighting,
    EarlyStopping,
    LearningRate,
    Outcome,
    PlainStep,
    Shuffle,
    TensorData,
    TrainingDiverged,
    Validation,
    build_step,
    class_shares,
    drops,
    fit,
)


def make_data(n=60, seed=0):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(n, 4, generator=generator)
    return TensorData(inputs, (inputs[:, 0] > 0.8).long())


def train(step=None, epochs=3, callbacks=(), data=None, **options):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = build_network("mlp", (4,), 2, hidden=(8,))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    step = PlainStep(nn.CrossEntropyLoss()) if step is None else step
    return fit(net, step, data or make_data(), optimizer=sgd, epochs=epochs, callbacks=callbacks, **options)


class Watch:
    """A step that only writes down what it is given."""

    def __init__(self):
        self.index, self.common, self.own, self.weight = [], [], [], []

    def __call__(self, model, optimizer, batch):
        self.index.append(batch.index.tolist())
        self.common.append(float(torch.rand((), generator=batch.generator)))
        self.own.append(float(torch.rand(())))
        self.weight.append(None if batch.weight is None else batch.weight.tolist())
        return Outcome(torch.zeros(()), {"size": torch.tensor(float(len(batch)))})


def test_an_epoch_visits_every_row_once_in_even_batches():
    watch = Watch()
    run = train(watch, epochs=2, batch_size=7)
    assert sorted(row for rows in watch.index[:9] for row in rows) == list(range(60))
    assert {len(rows) for rows in watch.index} == {6, 7}
    assert watch.index[:9] != watch.index[9:]
    assert run.history[0]["size"] == pytest.approx(sum(len(rows) ** 2 for rows in watch.index[:9]) / 60)


def test_everything_random_follows_from_the_seed():
    one, two, other = Watch(), Watch(), Watch()
    before = torch.get_rng_state()
    train(one, seed=1)
    torch.rand(3)
    train(two, seed=1)
    train(other, seed=2)
    assert (one.index, one.common, one.own) == (two.index, two.common, two.own)
    assert one.index != other.index
    assert len({*one.common, *one.own, *other.own}) == len(one.common) + len(one.own) + len(other.own)
    torch.set_rng_state(before)


def test_a_plain_function_is_a_step():
    def step(model, optimizer, batch):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch.inputs), batch.labels())
        loss.backward()
        optimizer.step()
        return Outcome(loss.detach())

    by_function, by_object = train(step, epochs=10), train(epochs=10)
    assert by_function.history[-1]["loss"] == by_object.history[-1]["loss"] < by_object.history[0]["loss"]


def test_a_step_without_optimizer_or_targets():
    seen = []

    def step(model, optimizer, batch):
        seen.append((optimizer, batch.targets))
        return Outcome(model(batch.inputs).mean().detach(), stop=True)

    run = fit(nn.Linear(4, 1), step, TensorData(torch.zeros(5, 4)), epochs=9)
    assert seen == [(None, None)]
    assert run.epoch == 1
    with pytest.raises(ValueError, match="needs targets"):
        fit(nn.Linear(4, 1), PlainStep(nn.CrossEntropyLoss()), TensorData(torch.zeros(5, 4)), epochs=1,
            optimizer=torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1))  # fmt: skip


def test_hooks_are_called_in_order():
    calls = []

    class Loss(nn.CrossEntropyLoss):
        def start_epoch(self, epoch, epochs):
            calls.append(("start", epoch, epochs))

        def end_epoch(self):
            calls.append(("end",))

    class Watcher(Callback):
        def on_start(self, run):
            calls.append("on_start")

        def on_epoch_start(self, run):
            calls.append("on_epoch_start")

        def on_epoch_end(self, run, record):
            calls.append(("on_epoch_end", record["epoch"]))
            return run.epoch == 2

        def on_end(self, run):
            calls.append("on_end")

    run = train(PlainStep(Loss()), epochs=5, callbacks=[Watcher()])
    epoch = lambda e: [("start", e, 5), "on_epoch_start", ("end",), ("on_epoch_end", e + 1)]  # noqa: E731
    assert calls == ["on_start", *epoch(0), *epoch(1), "on_end"]
    assert run.stop


def test_a_loss_is_given_what_it_requires():
    seen = {}

    class Needy(nn.Module):
        requires = frozenset({"features", "head_weight", "index"})

        def forward(self, input, target, *, sample_weight=None, **needs):
            seen.update(needs, sample_weight=sample_weight)
            assert torch.allclose(needs["features"] @ needs["head_weight"].T, input, atol=1)
            return nn.functional.cross_entropy(input, target)

    data = make_data()
    data.weight = torch.ones(60)
    train(PlainStep(Needy()), data=data, epochs=1)
    assert set(seen) == {"features", "head_weight", "index", "sample_weight"}
    assert seen["features"].shape == (60, 8)
    assert seen["features"].requires_grad

    class Greedy(nn.Module):
        requires = frozenset({"moon"})

    with pytest.raises(ValueError, match=r"requires \['moon'\]"):
        PlainStep(Greedy())


class Watcher(Callback):
    """Keeps the learning rate of every step."""

    def __init__(self):
        self.rates = []

    def on_step_start(self, run):
        self.rates.append(run.optimizer.param_groups[0]["lr"])


def test_a_warm_up_rises_by_equal_steps_to_the_full_rate_right_after_it():
    watcher = Watcher()
    train(epochs=4, batch_size=30, callbacks=[LearningRate("constant", warmup=2), watcher])
    steps = len(watcher.rates) // 2
    rising = 0.1 * np.arange(1, steps + 1) / (steps + 1)
    np.testing.assert_allclose(watcher.rates, [*rising, *[0.1] * steps])


def test_warm_up_then_schedule():
    watcher = Watcher()
    train(epochs=10, batch_size=30, callbacks=[LearningRate("cosine", warmup=2), watcher])
    rates = watcher.rates
    assert rates[:4] == sorted(rates[:4])
    assert rates[4:] == sorted(rates[4:], reverse=True)
    assert rates[10] == pytest.approx(0.1 * 0.5)
    assert max(rates) <= 0.1
    stepped = drops((0.5, 0.75), 0.1)
    assert [stepped(x) for x in (0.4, 0.6, 0.8)] == pytest.approx([1, 0.1, 0.01])


def test_deferred_reweighting():
    watch = Watch()
    run = train(watch, epochs=5, callbacks=[DeferredReweighting(start=0.6)])
    assert watch.weight[:3] == [None] * 3
    counts = make_data().targets.bincount()
    assert run.class_weight[1] / run.class_weight[0] == pytest.approx(float(counts[0] / counts[1]))
    assert all(len(set(weights)) == 2 for weights in watch.weight[3:])
    with pytest.raises(ValueError, match="class_weight must have 2 weights, got shape"):
        train(watch, callbacks=[DeferredReweighting([1, 2, 3])])
    with pytest.raises(ValueError, match=r"start must lie in \[0, 1\], got 2"):
        DeferredReweighting(start=2)


def test_early_stopping_takes_the_best_weights_back():
    held = make_data(seed=9)
    held.targets[:20] = 1 - held.targets[:20]  # noise, so that fitting longer gets worse
    stop = EarlyStopping("val_loss", patience=2)
    run = train(epochs=300, callbacks=[LearningRate("constant"), Validation(held), stop])
    losses = [record["val_loss"] for record in run.history]
    assert len(losses) == np.argmin(losses) + 3
    with torch.no_grad():
        again = nn.functional.cross_entropy(run.network(held.inputs), held.targets)
    assert float(again) == pytest.approx(min(losses))
    with pytest.raises(ValueError, match=r"monitor must be one of .* got 'val_los'"):
        train(callbacks=[EarlyStopping("val_los")])


def test_divergence_is_an_error_that_says_what_to_do():
    class Bad(nn.Module):
        def forward(self, input, target):
            return input.sum() * math.nan

    with pytest.raises(TrainingDiverged, match="nan in epoch 1; a lower learning rate"):
        train(PlainStep(Bad()))


@settings(deadline=None, max_examples=30)
@given(
    counts=st.lists(st.integers(1, 40), min_size=2, max_size=5),
    draws=st.integers(1, 200),
    seed=st.integers(0, 9),
)
def test_a_class_sampler_keeps_its_shares(counts, draws, seed):
    targets = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    shares = class_shares("balanced", np.array(counts, dtype=float))
    sampler = ClassSampler(targets, shares, n_draws=draws)
    order = sampler.order(torch.Generator().manual_seed(seed))
    drawn = targets[order].bincount(minlength=len(counts)).numpy()
    assert len(order) == draws
    assert (np.abs(drawn - draws * shares) <= 1 + 1e-9).all()
    for code, count in enumerate(counts):  # no row twice before every row once
        times = order[targets[order] == code].bincount(minlength=len(targets))[targets == code]
        assert len(times) == count
        assert int(times.max() - times.min()) <= 1


def test_rounding_of_shares_has_no_bias():
    sampler = ClassSampler(torch.tensor([0, 0, 1, 2]), [0.55, 0.3, 0.15], n_draws=4)
    drawn = [
        torch.tensor([0, 0, 1, 2])[sampler.order(torch.Generator().manual_seed(seed))].bincount(minlength=3)
        for seed in range(400)
    ]
    mean = torch.stack(drawn).double().mean(dim=0) / 4
    assert torch.allclose(mean, torch.tensor([0.55, 0.3, 0.15], dtype=torch.float64), atol=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ClassSampler(torch.tensor([0, 0]), [0.5, 0.5]),
            "asks for 0.5 of class 1, which has no samples",
        ),
        (lambda: Shuffle(0), "n_samples must be at least 1, got 0"),
        (lambda: TensorData(torch.zeros(3, 2), torch.zeros(2)), "must have the same length, got 3 and 2"),
        (lambda: TensorData(torch.zeros(0, 2)), "inputs must not be empty"),
        (lambda: build_step("hop", nn.CrossEntropyLoss()), "step must be one of .* got 'hop'"),
        (lambda: LearningRate("cosine", warmup=-1), "warmup must lie in .* got -1"),
        (lambda: train(epochs=-1), "epochs must be at least 0, got -1"),
        (lambda: PlainStep(nn.CrossEntropyLoss(), clip=0), "clip must be positive, got 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("name", ["plain", "sam"])
def test_steps_by_name_learn(name):
    run = train(build_step(name, nn.CrossEntropyLoss()), epochs=20)
    assert run.history[-1]["loss"] < run.history[0]["loss"]


def test_half_precision_trains():
    from equipoise.training import make_fabric

    run = train(epochs=10, fabric=make_fabric(precision="bf16-mixed"))
    assert run.history[-1]["loss"] < run.history[0]["loss"]
    assert next(run.network.parameters()).dtype == torch.float32
