"""The class sampler in other people's loaders, and the warm-up of the learning rate."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

from equipoise.training import ClassSampler, LearningRate, PlainStep, TensorData, fit
from equipoise.training.callbacks import Callback

TARGETS = torch.tensor([0] * 80 + [1] * 15 + [2] * 5)


def test_it_is_a_torch_sampler_of_balanced_epochs():
    sampler = ClassSampler(TARGETS, "balanced", n_draws=120)
    assert isinstance(sampler, Sampler)
    assert len(sampler) == 120
    loader = DataLoader(TensorDataset(torch.arange(100), TARGETS), batch_size=40, sampler=sampler)
    drawn = torch.cat([y for _, y in loader])
    assert len(loader) == 3
    assert torch.bincount(drawn).tolist() == [40, 40, 40]


def test_epochs_differ_and_come_back():
    sampler = ClassSampler(TARGETS.numpy(), "balanced", seed=3)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first
    sampler.set_epoch(0)
    assert list(sampler) == first
    assert list(ClassSampler(TARGETS, "balanced", seed=4)) != first


@pytest.mark.parametrize("world", [2, 3, 7])
def test_processes_share_one_order_without_repeats(world):
    whole = list(ClassSampler(TARGETS, np.array([0.8, 0.15, 0.05])))
    parts = [ClassSampler(TARGETS, [0.8, 0.15, 0.05], num_replicas=world, rank=rank) for rank in range(world)]
    rows = [list(part) for part in parts]
    assert {len(part) for part in rows} == {len(part) for part in parts} == {100 // world}
    together = [row for part in rows for row in part]
    assert len(set(together)) == len(together) == 100 // world * world  # shares of the data: every row once
    assert set(together) <= set(whole)
    with pytest.raises(ValueError, match=f"rank must be at most {world - 1}, got {world}"):
        ClassSampler(TARGETS, "balanced", num_replicas=world, rank=world)


def test_the_rate_grows_by_equal_steps_to_its_full_value():
    """Step k of W has (k + 1)/(W + 1) of the rate, and step W + 1 all of it."""
    rates = []

    class Watch(Callback):
        def on_step_start(self, run):
            rates.append(run.optimizer.param_groups[0]["lr"])

    net = nn.Linear(2, 2)
    data = TensorData(torch.randn(40, 2, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)
    fit(
        net,
        PlainStep(nn.CrossEntropyLoss()),
        data,
        optimizer=sgd,
        epochs=4,
        batch_size=10,
        callbacks=[LearningRate("constant", warmup=1.5), Watch()],
    )
    expected = [0.5 * min(1.0, (k + 1) / 7) for k in range(16)]
    np.testing.assert_allclose(rates, expected)
