"""Forward and backward of each loss beside ``F.cross_entropy`` timed in the same run, at three sizes.

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

WIDTH = 64
LIMITS = {
    (4096, 1000): {
        "vs": 1.7, "logit_adjusted": 1.5, "ldam": 1.5, "class_balanced": 1.5, "focal": 1.5, "nenum": 3.0,
        "kps": 2.0, "lpl": 2.9,
    },
    (128, 10): {
        "ce": 1.6, "logit_adjusted": 1.6, "class_balanced": 1.6, "vs": 1.6, "ldam": 1.6, "kps": 1.8, "focal": 2.2,
        "nenum": 2.5, "isda": 10.0, "combined": 12.0,
    },
    (128, 10_000): {"logit_adjusted": 1.6, "nenum": 2.5, "combined": 10.0},
}  # fmt: skip
ROUNDS = {4096: 15, 128: 400}
CASES = [(*size, name, limit) for size, limits in LIMITS.items() for name, limit in limits.items()]


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def seconds(function, logits):
    """Where a call is longer than a slice of a busy processor's time, what counts is the processor's."""
    logits.grad = None
    clock = time.perf_counter if logits.numel() < 1e5 else time.process_time
    start = clock()
    function().backward()
    return clock() - start


@pytest.mark.parametrize(("samples", "classes", "name", "limit"), CASES)
def test_cost_beside_cross_entropy(samples, classes, name, limit):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(samples, classes, generator=generator).requires_grad_()
    target = torch.randint(classes, (samples,), generator=generator)
    counts = np.round(1000 * 100.0 ** (-np.arange(classes) / (classes - 1)))
    loss = get_loss(name, class_counts=counts)
    loss.start_epoch(1, 1)
    known = {
        "features": torch.randn(samples, WIDTH, generator=generator),
        "head_weight": torch.randn(classes, WIDTH, generator=generator),
    }
    needs = {key: known[key] for key in loss.requires}
    ours, theirs = [], []
    for _ in range(ROUNDS[samples] if classes < 10_000 else 15):
        theirs.append(seconds(lambda: F.cross_entropy(logits, target), logits))
        ours.append(seconds(lambda: loss(logits, target, **needs), logits))
    ratio = min(ours) / min(theirs)
    print(f"| {samples}×{classes} | {name} | {ratio:.2f} | {limit} |")
    assert ratio <= limit


def test_the_combined_loss_of_many_classes_keeps_little():
    """No (C, C) state: 10,000 classes of 64 features in diagonals are some megabytes."""
    loss = get_loss("combined", class_counts=[10] * 10_000)
    features = torch.randn(8, WIDTH)
    loss(torch.zeros(8, 10_000), torch.arange(8), features=features, head_weight=torch.zeros(10_000, WIDTH))
    assert sum(buffer.numel() * buffer.element_size() for buffer in loss.buffers()) < 10e6
