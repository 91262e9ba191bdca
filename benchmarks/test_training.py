"""What the loop costs on top of a bare torch loop that does the same updates, both timed in one run."""

from __future__ import annotations

import time

import pytest
import torch
from torch import nn

from equipoise.networks import build_network
from equipoise.training import PlainStep, TensorData, fit

CASES = {
    "small table": ("mlp", (20,), {"hidden": (64, 64)}, 4096, 64, 2.2),
    "images": ("convnet", (1, 28, 28), {}, 1024, 128, 1.25),
}


def bare(net, sgd, data, epochs, batch_size):
    loss_of = nn.CrossEntropyLoss()
    net.train()
    for epoch in range(epochs):
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(epoch))
        total = 0.0
        for rows in order.split(batch_size):
            sgd.zero_grad()
            loss = loss_of(net(data.inputs[rows]), data.targets[rows])
            loss.backward()
            sgd.step()
            total += float(loss.detach())


def ours(net, sgd, data, epochs, batch_size):
    step = PlainStep(nn.CrossEntropyLoss())
    fit(net, step, data, optimizer=sgd, epochs=epochs, batch_size=batch_size, verbose=False)


def seconds(train, case):
    name, shape, params, n, batch_size, _ = case
    data = TensorData(torch.randn(n, *shape), torch.arange(n) % 10)
    net = build_network(name, shape, 10, **params)
    sgd = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, fused=True)
    start = time.process_time()
    train(net, sgd, data, 2, batch_size)
    return time.process_time() - start


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_loop_is_nearly_bare(case):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        seconds(ours, case)  # imports and first-time costs
        rounds = [(seconds(ours, case), seconds(bare, case)) for _ in range(7)]
    finally:
        torch.set_num_threads(threads)
    ratio = min(own for own, _ in rounds) / min(plain for _, plain in rounds)
    print(f"loop / bare loop: {ratio:.2f}")
    assert ratio < case[-1]
