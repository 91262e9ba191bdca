"""A conditional model against its baseline: the cost of training, and of many λ, in one run."""

from __future__ import annotations

import time

import numpy as np

from equipoise.classifiers import ConditionalClassifier, NeuralClassifier


def seconds(work, repeats=3):
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def images(n, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.1).astype(int)
    return (rng.normal(size=(n, 1, 28, 28)) + 0.3 * y[:, None, None, None]).astype(np.float32), y


def test_training_costs_at_most_fifteen_percent_more(record_property):
    X, y = images(2000)
    base = NeuralClassifier(loss="vs", epochs=2, batch_size=128, random_state=0)
    plain = lambda: NeuralClassifier(**base.get_params()).fit(X, y)  # noqa: E731
    told = lambda: ConditionalClassifier(estimator=base, random_state=0).fit(X, y)  # noqa: E731
    times = [(seconds(plain, 1), seconds(told, 1)) for _ in range(5)]
    ratio = min(b for _, b in times) / min(a for a, _ in times)
    record_property("conditional_over_plain", round(ratio, 3))
    print(f"conditional / plain training: {ratio:.3f}")
    assert ratio <= 1.15


def test_twenty_lambdas_cost_at_most_half_more_than_one(record_property):
    X, y = images(10_000)
    clf = ConditionalClassifier(estimator=NeuralClassifier(epochs=1, batch_size=256), random_state=0)
    clf.fit(X[:500], y[:500])
    lambdas = [{"gamma": g, "tau": t} for g in (0, 0.1, 0.2, 0.3) for t in (0, 1, 2, 2.5, 3)]
    one = seconds(lambda: clf.tune(X, y, "brier", params=lambdas[:1]))
    many = seconds(lambda: clf.tune(X, y, "brier", params=lambdas))
    record_property("twenty_over_one", round(many / one, 3))
    print(f"20 λ / 1 λ: {many / one:.3f}")
    assert many / one <= 1.5
