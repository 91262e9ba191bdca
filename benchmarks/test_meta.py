"""A Meta-ENum step on ResNet-20 at batch 100 beside a plain step and beside double backward, in one run.

Run with ``python -m pytest benchmarks/test_meta.py -s``. Times are the least of several rounds in which the three
alternate, so that a busy machine slows all. Peak memory is the high-water mark of a process that does nothing else,
above what it holds before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
import torch
from torch import nn
from torch.func import functional_call

from equipoise.losses import MetaENumLoss
from equipoise.losses._learned import SeenBatch
from equipoise.networks import build_network
from equipoise.training import Batch, BilevelStep, MetaSet, PlainStep
from equipoise.training.sam import statistics_kept

BATCH, CLASSES, ROUNDS = 100, 10, 4


class DoubleBackwardStep:
    """The same step as usually written: the graph of the virtual update is differentiated again."""

    def __init__(self, loss, meta):
        self.loss, self.meta = loss, meta
        self.optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)

    def __call__(self, model, optimizer, batch):
        self.loss.prepare(model.head.in_features, int(batch.index.max()) + 1)
        parameters = dict(model.named_parameters())
        features = model.features(batch.inputs)
        logits = model.head(features)
        seen = SeenBatch(logits.detach(), batch.targets, features.detach(), batch.index)
        self.loss.observe(seen)
        omega = [*self.loss.begin(), *self.loss.parameters()]
        value = self.loss(logits, seen, model.head.weight)
        gradients = torch.autograd.grad(value, list(parameters.values()), create_graph=True)
        lr = optimizer.param_groups[0]["lr"]
        ahead = {name: p - lr * g for (name, p), g in zip(parameters.items(), gradients, strict=True)}
        with statistics_kept(model, nn.Identity()):
            meta_logits = functional_call(model, ahead, (self.meta.inputs,))
        found = torch.autograd.grad(nn.functional.cross_entropy(meta_logits, self.meta.targets), omega)
        del ahead, gradients, meta_logits, value
        self.loss.learn(found[:1])
        for p, g in zip(self.loss.parameters(), found[1:], strict=True):
            p.grad = g
        self.optimizer.step()
        optimizer.zero_grad()
        with statistics_kept(model, nn.Identity()):
            logits = model(batch.inputs)
        self.loss(logits, seen, model.head.weight).backward()
        optimizer.step()


def prepare(kind):
    torch.manual_seed(0)
    net = build_network("resnet20", (3, 32, 32), CLASSES).train()
    batch = Batch(
        torch.randn(BATCH, 3, 32, 32),
        torch.arange(BATCH) % CLASSES,
        None,
        torch.arange(BATCH),
        torch.Generator(),
    )
    meta = MetaSet(torch.randn(BATCH, 3, 32, 32), torch.arange(BATCH) % CLASSES, torch.arange(BATCH), CLASSES)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    step = {
        "plain": lambda: PlainStep(nn.CrossEntropyLoss()),
        "bilevel": lambda: BilevelStep(MetaENumLoss([BATCH] * CLASSES), meta),
        "double": lambda: DoubleBackwardStep(MetaENumLoss([BATCH] * CLASSES), meta),
    }[kind]()
    return lambda: step(net, sgd, batch)


def peak_mb(kind):
    """The memory of two steps above what the process holds before, in a process of its own."""
    code = f"import test_meta; print(test_meta.measure({kind!r}))"
    found = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(["benchmarks", *sys.path]), "OMP_NUM_THREADS": "1", "PATH": ""},
    )
    return json.loads(found.stdout)


def measure(kind):
    from equipoise.studies.cell import peak_memory_mb, reset_peak_memory

    torch.set_num_threads(1)
    step = prepare(kind)
    if kind == "bilevel":  # torch's formulas for forward mode are compiled once
        from equipoise.training.tangents import Recorder, logits_tangent

        small = nn.Linear(2, 2)
        logits_tangent(small, torch.ones(1, 2), {"weight": torch.ones(2, 2)}, Recorder(small))
    reset_peak_memory()
    before = peak_memory_mb()
    for _ in range(2):
        step()
    return peak_memory_mb() - before


@pytest.fixture
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_time_of_a_step(one_thread):
    steps = {kind: prepare(kind) for kind in ("plain", "bilevel", "double")}
    least = dict.fromkeys(steps, float("inf"))
    for number in range(ROUNDS + 1):
        for kind, step in steps.items():
            start = time.perf_counter()
            step()
            if number:
                least[kind] = min(least[kind], time.perf_counter() - start)
    ratio = {kind: least[kind] / least["plain"] for kind in least}
    print(
        f"\nplain {least['plain']:.3f} s; Meta-ENum {ratio['bilevel']:.2f}×; double backward {ratio['double']:.2f}×"
    )
    assert ratio["bilevel"] <= 4.0
    assert least["bilevel"] < least["double"]


def test_peak_memory_of_a_step():
    peak = {kind: peak_mb(kind) for kind in ("plain", "bilevel", "double")}
    print("\n" + ", ".join(f"{kind} {value:.0f} MB" for kind, value in peak.items()))
    assert peak["bilevel"] <= 0.7 * peak["double"]
