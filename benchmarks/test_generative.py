"""What looking costs beside training, and what a step costs beside a bare loop with the same network.

Looking is 500 samples among 8,000 images of 28×28, against 20 steps of the small preset; drawing them is not part
of it. The bare loop is Ho et al.'s Algorithm 1 written out, with the same network, optimizer and batches. What is
compared is timed in one run, in turns, and the least of several rounds counts, so that a busy machine slows both.
Run with ``python -m pytest benchmarks/test_generative.py -s``.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from equipoise.generative import DDPM, NoiseSchedule, memorized_fraction, nearest_two
from equipoise.generative.denoising import DenoisingStep
from equipoise.networks.unet import UNet
from equipoise.training import TensorData, fit

ROUNDS, STEPS, BATCH = 4, 20, 64


def seconds(action):
    start = time.process_time()
    action()
    return time.process_time() - start


def test_monitoring_costs_less_than_twenty_steps():
    rng = np.random.default_rng(0)
    training = rng.normal(size=(8000, 1, 28, 28)).astype(np.float32)
    samples = rng.normal(size=(500, 1, 28, 28)).astype(np.float32)
    labels = np.arange(500) % 2
    network = UNet((1, 28, 28), "small")
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)
    data = TensorData(torch.from_numpy(training[:BATCH]), torch.zeros(BATCH, dtype=torch.int64))
    step = DenoisingStep(NoiseSchedule())

    def monitor():
        memorized_fraction(nearest_two(samples, training).memorized(), labels)

    def train():
        fit(network, step, data, optimizer=optimizer, epochs=1, batch_size=BATCH, verbose=False)

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rounds = [(seconds(monitor), seconds(train)) for _ in range(ROUNDS)]
    finally:
        torch.set_num_threads(threads)
    looking, one_step = (min(times) for times in zip(*rounds, strict=True))
    print(
        f"monitoring {looking:.2f} s, {STEPS} steps {STEPS * one_step:.2f} s: {looking / one_step / STEPS:.3f}"
    )
    assert looking < STEPS * one_step


@pytest.mark.parametrize("shape", [(500, 8000, 784), (1000, 20_000, 784)])
def test_neighbors_cost_no_more_than_a_flat_index(shape):
    """At most 1.1 times an exact search by faiss, if that is installed."""
    faiss = pytest.importorskip("faiss")
    faiss.omp_set_num_threads(1)
    n, m, d = shape
    training = np.random.default_rng(0).random((m, d), dtype=np.float32)
    samples = 0.9 * training[:n] + 0.05

    def theirs():
        index = faiss.IndexFlatL2(d)
        index.add(training)
        index.search(samples, 2)

    rounds = [(seconds(lambda: nearest_two(samples, training)), seconds(theirs)) for _ in range(ROUNDS)]
    own, flat = (min(times) for times in zip(*rounds, strict=True))
    print(f"{n} among {m}: {own:.3f} s, faiss {flat:.3f} s: {own / flat:.2f}")
    assert own < 1.1 * flat


def test_a_step_costs_no_more_than_a_bare_loop():
    """At most 1.15 times as much, for the smallest network, where whatever surrounds it weighs most."""
    preset, size, steps = "tiny", 14, 24
    images = np.random.default_rng(0).normal(size=(8 * BATCH, size, size)).astype(np.float32)

    def bare():
        network = UNet((1, size, size), preset)
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-4, fused=True)
        kept = torch.cumprod(1 - torch.linspace(1e-4, 2e-2, 1000), 0)
        scaled = torch.from_numpy((images - images.mean(0)) / images.std())[:, None]
        for _ in range(steps // 8):
            for batch in scaled[torch.randperm(len(scaled))].split(BATCH):
                t = torch.randint(0, 1000, (BATCH,))
                noise, a = torch.randn_like(batch), kept[t][:, None, None, None]
                optimizer.zero_grad()
                predicted = network(a.sqrt() * batch + (1 - a).sqrt() * noise, t + 1)
                (predicted - noise).square().mean().backward()
                optimizer.step()

    def ours():
        model = DDPM(
            preset, steps=steps, batch_size=BATCH, monitor=False, held_out_fraction=0.0, verbose=False
        )
        model.fit(images)

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rounds = [(seconds(ours), seconds(bare)) for _ in range(ROUNDS)]
    finally:
        torch.set_num_threads(threads)
    least = [min(times) for times in zip(*rounds, strict=True)]
    print(f"{steps} steps {least[0]:.2f} s, bare loop {least[1]:.2f} s: {least[0] / least[1]:.3f}")
    assert least[0] < 1.15 * least[1]
