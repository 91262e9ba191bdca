"""Forward and backward of each loss at 4096×1000 logits, as a ratio to ``F.cross_entropy`` timed in the same run.

Run with ``python -m pytest benchmarks/test_losses.py -s``. Times are the least of several rounds in which the two
alternate, so that a busy machine slows both.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from equipoise.losses import get_loss

SAMPLES, CLASSES, WIDTH, ROUNDS = 4096, 1000, 64, 25
LIMITS = {
    "vs": 1.5,
    "logit_adjusted": 1.5,
    "ldam": 1.5,
    "class_balanced": 1.5,
    "focal": 1.5,
    "nenum": 2.5,
    "kps": 2.5,
    "lpl": 2.5,
}


@pytest.fixture(scope="module")
def data():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(SAMPLES, CLASSES, generator=generator).requires_grad_()
    target = torch.randint(CLASSES, (SAMPLES,), generator=generator)
    head = torch.randn(CLASSES, WIDTH, generator=generator)
    return logits, target, head


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def seconds(function, logits):
    logits.grad = None
    start = time.perf_counter()
    function().backward()
    return time.perf_counter() - start


@pytest.mark.parametrize("name", LIMITS)
def test_cost_beside_cross_entropy(name, data):
    logits, target, head = data
    counts = np.round(1000 * 100.0 ** (-np.arange(CLASSES) / (CLASSES - 1)))
    loss = get_loss(name, class_counts=counts)
    needs = {"head_weight": head} if "head_weight" in loss.requires else {}
    ours, theirs = [], []
    for _ in range(ROUNDS):
        theirs.append(seconds(lambda: F.cross_entropy(logits, target), logits))
        ours.append(seconds(lambda: loss(logits, target, **needs), logits))
    ratio = min(ours) / min(theirs)
    print(f"{name:16} {1e3 * min(ours):6.1f} ms, {ratio:.2f} × cross-entropy ({1e3 * min(theirs):.1f} ms)")
    assert ratio <= LIMITS[name]
