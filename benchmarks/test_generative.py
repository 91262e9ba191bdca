"""What looking costs beside training: 500 samples among 8,000 images of 28×28 against 20 steps of the small preset.

Both are timed in the same run, in turns, and the least of several rounds counts, so that a busy machine slows both.
A round trains one step, of which twenty are reckoned; drawing the samples is not part of it.
Run with ``python -m pytest benchmarks/test_generative.py -s``.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from equipoise.generative import NoiseSchedule, memorized_fraction, nearest_two
from equipoise.generative.ddpm import DenoisingStep
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
    step = DenoisingStep(NoiseSchedule(), conditional=False)

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
