"""Two processes on the halves of each batch are one process on the whole of it."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import make_classification

from equipoise.classifiers import NeuralClassifier


def test_two_processes_equal_one():
    X, y = make_classification(333, 8, n_informative=5, n_classes=3, weights=[0.7, 0.2], random_state=0)
    weight = np.random.default_rng(0).uniform(0.1, 3, len(y))
    params = {
        "module_params": {"hidden": (24, 12), "activation": "tanh"},
        "sampler": "sqrt",
        "class_weight": "balanced",
        "optimizer": "sgd",
        "epochs": 5,
        "batch_size": 50,
        "lr": 0.05,
        "step_params": {"clip": 0.5},
        "random_state": 0,
    }
    one = NeuralClassifier(**params).fit(X, y, weight)
    two = NeuralClassifier(**params, num_processes=2).fit(X, y, weight)
    for alone, shared in zip(one.network_.parameters(), two.network_.parameters(), strict=True):
        assert torch.allclose(alone, shared, rtol=0, atol=1e-6)
    assert np.allclose(one.history_["loss"], two.history_["loss"], atol=1e-6)
    assert one.history_["loss"].is_monotonic_decreasing
    assert np.array_equal(one.training_prior_, two.training_prior_)
