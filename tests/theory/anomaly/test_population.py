"""Tail or group: error rates on data of either kind, with and without wrong labels."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.theory.anomaly import tail_or_group


def tail(n, seed, noise=0.0, dim=8, bias=-1.3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim))
    return X, (X[:, 0] + bias > 0) ^ (rng.random(n) < noise)


def group(n, seed, noise=0.0, dim=8, shift=3.0, spread=1.0, share=0.1):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    X = rng.standard_normal((n, dim)) * np.where(y, spread, 1.0)[:, None]
    X[:, 0] += shift * y
    return X, y ^ (rng.random(n) < noise)


KINDS = [
    ("tail", tail, {}),
    ("tail", tail, {"noise": 0.02}),
    ("tail", tail, {"noise": 0.05}),
    ("group", group, {}),
    ("group", group, {"noise": 0.02}),
    ("group", group, {"shift": 1.5, "spread": 2.0}),
]


@pytest.mark.parametrize(("truth", "make", "options"), KINDS)
def test_either_kind_is_told(truth, make, options):
    found = [tail_or_group(*make(1500, seed, **options), random_state=0) for seed in range(4)]
    assert all(one.verdict in (truth, "undecided") for one in found)
    assert sum(one.verdict == truth for one in found) >= 3
    assert np.mean([one.label_noise for one in found]) == pytest.approx(options.get("noise", 0.0), abs=0.012)


def test_a_sample_with_more_of_the_rare_rows_is_told_by_what_it_stands_for():
    """All rows of a tail of 1 % beside a few of the others look like a group, unless each counts for its share."""
    X, y = tail(30_000, 0, bias=-2.33, dim=4)
    rare, others = np.flatnonzero(y), np.flatnonzero(~y)
    rows = np.concatenate([rare, others[:3000]])
    pool = (len(rare), len(others))
    assert tail_or_group(X[rows], y[rows], random_state=0).verdict == "group"
    assert tail_or_group(X[rows], y[rows], pool=pool, random_state=0).verdict == "tail"
    with pytest.raises(ValueError, match="pool must be at least"):
        tail_or_group(X[rows], y[rows], pool=(5, 3000))


def test_few_rows_are_undecided_rather_than_wrong():
    found = [tail_or_group(*group(400, seed, shift=2.0), random_state=0).verdict for seed in range(6)]
    assert "tail" not in found
    assert "undecided" in found


def test_positions_are_standardized_and_bad_input_is_named():
    X, y = tail(300, 0)
    positions = tail_or_group(X, y, random_state=0).positions
    assert (positions.mean(), positions.std()) == pytest.approx((0, 1), abs=1e-9)
    with pytest.raises(ValueError, match="at least 20 rows of the rarest class, got 6"):
        tail_or_group(X, np.arange(300) < 6)
