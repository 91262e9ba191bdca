"""Speed of the metrics, as ratios of two things timed in one run."""

from __future__ import annotations

import time

import numpy as np
import sklearn.metrics
from scipy.spatial.distance import cdist

from equipoise import metrics


def seconds(function, repeats=3):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def scored(n):
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.05).astype(int)
    return y, rng.normal(size=n) + y


def test_bootstrap_of_the_auc_against_a_loop_over_scikit_learn():
    y, score = scored(2000)
    options = {"n_resamples": 100, "random_state": 0}
    loop = seconds(lambda: metrics.bootstrap_interval(sklearn.metrics.roc_auc_score, y, score, **options))
    ours = seconds(lambda: metrics.bootstrap_interval("auc", y, score, **options))
    print(f"bootstrap: {loop / ours:.1f} times as fast as a loop")
    assert loop / ours > 3


def test_best_threshold_grows_as_a_sort_and_keeps_up_with_scikit_learn():
    small, large = scored(50_000), scored(500_000)
    few, many = (seconds(lambda data=data: metrics.best_f1(*data)) for data in (small, large))
    curve = seconds(lambda: sklearn.metrics.precision_recall_curve(*large))
    print(f"best F1: {many / few:.1f} × for 10 × the samples, {many / curve:.2f} × precision_recall_curve")
    assert many / few < 30
    assert many / curve < 3


def test_balls_against_all_distances():
    rng = np.random.default_rng(0)
    real, fake = rng.normal(size=(4000, 64)), rng.normal(size=(4000, 64))

    def direct():
        own = np.partition(cdist(real, real) + np.diag(np.full(4000, np.inf)), 4, axis=1)[:, 4]
        return (cdist(fake, real) < own).sum(axis=1)

    np.testing.assert_array_equal(metrics.balls(real, fake).hits, direct())
    ratio = seconds(lambda: metrics.balls(real, fake), 2) / seconds(direct, 2)
    print(f"balls: {ratio:.2f} × the time of all distances by cdist")
    assert ratio < 1.5
