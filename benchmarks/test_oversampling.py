"""Classical samplers against imbalanced-learn's SMOTEENN on the same 10,000 × 50 table, in one run."""

from __future__ import annotations

import time

import pytest
from imblearn.combine import SMOTEENN
from sklearn.datasets import make_classification

from equipoise.oversampling import AMDO, MCCCR, MCRBO


@pytest.mark.filterwarnings("ignore::equipoise.oversampling.LowQualityWarning")
def test_classical_samplers_within_twenty_times_smoteenn(record_property):
    X, y = make_classification(10_000, 50, n_informative=20, weights=[0.9], random_state=0)

    def seconds(sampler):
        start = time.perf_counter()
        sampler.fit_resample(X, y)
        return time.perf_counter() - start

    base = min(seconds(SMOTEENN(random_state=0)) for _ in range(2))
    for sampler in (AMDO(random_state=0), MCCCR(random_state=0), MCRBO(random_state=0)):
        ratio = seconds(sampler) / base
        record_property(type(sampler).__name__, round(ratio, 2))
        print(f"{type(sampler).__name__}: {ratio:.2f} × SMOTEENN")
        assert ratio <= 20


@pytest.mark.filterwarnings("ignore::equipoise.oversampling.LowQualityWarning")
@pytest.mark.parametrize("columns", [2, 3, 4, 5, 6, 7, 8, 20, 50])
@pytest.mark.parametrize("rows", [1_000, 5_000, 10_000, 20_000])
def test_mc_rbo_within_twenty_times_smoteenn(rows, columns, record_property):
    """CPU seconds."""
    X, y = make_classification(
        rows,
        columns,
        n_informative=max(2, min(columns, 20) * 2 // 3),
        n_redundant=0,
        n_clusters_per_class=1,
        weights=[0.9],
        random_state=0,
    )

    def seconds(sampler):
        start = time.process_time()
        sampler.fit_resample(X, y)
        return time.process_time() - start

    ratio = seconds(MCRBO(random_state=0)) / min(seconds(SMOTEENN(random_state=0)) for _ in range(2))
    record_property("ratio", round(ratio, 1))
    print(f"{rows} × {columns}: {ratio:.1f} × SMOTEENN")
    assert ratio <= 20


def test_an_epoch_of_the_autoencoder_within_four_of_cross_entropy(record_property):
    """The same encoder and head, the same number of rows, one thread."""
    import torch
    from torch import nn

    from equipoise.networks import Autoencoder
    from equipoise.training import PlainStep, TensorData, fit
    from equipoise.training.autoencoder import Plan, train_autoencoder

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        data = TensorData(torch.rand(1024, 1, 28, 28), torch.arange(1024) % 10)
        for size in ("small", "paper"):
            net = Autoencoder((1, 28, 28), 10, size=size)

            def plain(net=net):
                start = time.process_time()
                parameters = [*net.encoder.parameters(), *net.head.parameters()]
                optimizer = torch.optim.AdamW(parameters)
                fit(net, PlainStep(nn.CrossEntropyLoss()), data, optimizer=optimizer, epochs=1, verbose=False)
                return time.process_time() - start

            def whole(net=net):
                start = time.process_time()
                train_autoencoder(
                    net,
                    data,
                    Plan(mixing="learned"),
                    epochs=1,
                    batch_size=128,
                    lr=1e-3,
                    weight_decay=0,
                    seed=0,
                    verbose=False,
                )
                return time.process_time() - start

            plain()  # warm
            ratio = min(whole() for _ in range(2)) / min(plain() for _ in range(2))
            record_property(size, round(ratio, 2))
            print(f"auto-encoder, {size}: {ratio:.2f} × cross-entropy")
            assert ratio <= 4
    finally:
        torch.set_num_threads(threads)


def test_separability_of_a_hundred_classes_within_ten_seconds(record_property):
    """300 rows a class in 256 columns on one place: the slow case, where no plane parts any class off."""
    import numpy as np

    from equipoise.theory.mixing import separable_classes

    points = np.random.default_rng(0).normal(size=(30_000, 256))
    start = time.process_time()
    parted = separable_classes(points, np.repeat(np.arange(100), 300))
    spent = time.process_time() - start
    record_property("separability", round(spent, 1))
    assert not parted.any()
    assert spent <= 10
