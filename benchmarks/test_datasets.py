"""Drawing rare anomalies exactly, against drawing until enough are found."""

from __future__ import annotations

import time

import numpy as np

from equipoise.datasets import TeacherStudent, make_teacher_student


def by_rejection(model: TeacherStudent, n_anomalies: int, rng: np.random.Generator) -> np.ndarray:
    found = np.empty((0, model.n_features))
    while len(found) < n_anomalies:
        X = rng.standard_normal((4096, model.n_features))
        found = np.concatenate([found, X[model.label(X) == 1]])
    return found[:n_anomalies]


def fastest(call, repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def test_exact_sampling_beats_rejection_by_the_rarity():
    model = make_teacher_student(50, bias=-2.5, random_state=0)
    rng = np.random.default_rng(0)
    rejected = fastest(lambda: by_rejection(model, 200, rng))
    exact = fastest(lambda: model.sample_train(400, fraction=0.5, random_state=rng))
    print(f"rejection / exact = {rejected / exact:.0f}")
    assert rejected > 10 * exact
