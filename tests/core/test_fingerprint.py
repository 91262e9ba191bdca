"""One digest of whatever a piece of work depends on."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from torch import nn

from equipoise._core.fingerprint import describe, environment, fingerprint
from equipoise.training import EarlyStopping, Linear


def _scaled(factor):
    return lambda inputs, generator: inputs * factor


def _network(seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1))


CHANGES = [
    (1, 2),
    (1, 1.0),
    (1, "1"),
    (np.arange(4), np.arange(4.0)),
    (np.arange(4), np.arange(4).reshape(2, 2)),
    (np.array(["a"], dtype=object), np.array(["b"], dtype=object)),
    ([1, [2]], [[1], 2]),
    ({"a": 1}, {"a": 2}),
    ({1, 2}, {1, 3}),
    (Linear(0, 3, 0), Linear(0, 3, 0.33)),
    (EarlyStopping(patience=3), EarlyStopping(patience=4)),
    (_scaled(1), _scaled(2)),
    (functools.partial(int, base=2), functools.partial(int, base=8)),
    (_network(0), _network(1)),
    (nn.Dropout(0.1), nn.Dropout(0.2)),
    (nn.ReLU, nn.GELU),
    (torch.zeros(3), torch.zeros(4)),
]


@pytest.mark.parametrize(("one", "other"), CHANGES, ids=lambda value: type(value).__name__)
def test_any_change_inside_changes_it(one, other):
    assert fingerprint(one) == fingerprint(one)
    assert fingerprint({"nested": [one]}) != fingerprint({"nested": [other]})
    assert describe(one) != describe(other)


def test_equal_things_agree_whatever_made_them():
    assert fingerprint(_network(0)) == fingerprint(_network(0))
    assert fingerprint(Linear(0, 3, 0)) == fingerprint(Linear(0, 3, 0))
    assert fingerprint(torch.ones(2)) == fingerprint(np.ones(2, dtype=np.float32))
    assert fingerprint({1, 2, 3}) == fingerprint({3, 2, 1})


def test_an_object_that_holds_itself_ends():
    one = [1]
    one.append(one)
    assert fingerprint(one) == fingerprint(one)


def test_the_machine_is_named():
    assert {"cpu", "python", "numpy", "torch"} <= set(environment())
