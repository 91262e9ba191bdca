"""Border checks that were found missing: each call once gave nonsense, a numpy message, or no end of work."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from equipoise.metrics.significance import holm, shaffer
from equipoise.theory.anomaly import (
    crossover_temperature,
    extrapolate,
    optimal_train_fraction,
    tail_or_group,
)
from equipoise.theory.effective_number import class_factor
from equipoise.theory.mixing import loss_variance, risk_variance

NAN = float("nan")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tail_or_group([], []), "X must not be empty"),
        (lambda: tail_or_group([1.0, 2.0], [0, 1]), "X must have two dimensions"),
        (lambda: tail_or_group([[NAN, 1.0], [2.0, 3.0]], [0, 1]), "X must be finite"),
        (lambda: extrapolate([1, 2], [1], [1, 1]), "vectors of one length"),
        (lambda: extrapolate([1, 2], [1, NAN], [1, 1]), "means must be finite"),
        (lambda: extrapolate([0, 2], [1, 1], [1, 1]), "dims must be positive"),
        (lambda: extrapolate([1, 2], [1, 1], [0, 1]), "errors must be positive"),
        (lambda: loss_variance([1, 2], NAN), "loss_at_mean must be finite"),
        (lambda: loss_variance([1, 2], [1, 2]), "loss_at_mean must be one number"),
        (lambda: risk_variance(np.sum, np.zeros((0, 2)), np.sum, n_rows=4), "points must not be empty"),
        (lambda: risk_variance(np.sum, [[NAN]], np.sum), "points must be finite"),
        (lambda: class_factor([1, NAN], [1, 1]), "mean_scatter must be finite"),
        (lambda: class_factor([1, 2], [1]), "vectors of one length"),
        (lambda: class_factor([1, 2], [0, 0]), "weights must not all be zero"),
        (lambda: holm([[0.1, 0.2]]), "p_values must be a vector"),
        (lambda: holm([]), "p_values must not be empty"),
        (lambda: shaffer([[0.1, 0.2, 0.3]], 3), "p_values must be a vector"),
        (lambda: shaffer([0.1], 10**6), "n_methods must be at most"),
        (lambda: crossover_temperature(1.1, -0.6, highest=1e308), "highest must lie in"),
        (lambda: optimal_train_fraction(8, 1e30, -1.5), "temperature must lie in"),
    ],
)
def test_a_bad_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_must_be_called_is_a_function():
    with pytest.raises(TypeError, match="weights must be a function"):
        risk_variance(np.sum, [[1.0]], 0.5)


def test_lists_and_frames_are_tables_too():
    rows = np.random.default_rng(0).standard_normal((200, 2))
    labels = rows[:, 0] > 1
    asked = [
        tail_or_group(X, labels, random_state=0).verdict for X in (rows.tolist(), rows, pd.DataFrame(rows))
    ]
    assert asked[0] == asked[1] == asked[2]
