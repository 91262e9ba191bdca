"""Thinning keeps the rare classes whole and takes only from the frequent ones."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.datasets import DataTable
from equipoise.datasets.thinning import sample_rows, thin


@pytest.mark.parametrize(
    ("counts", "most", "kept"),
    [
        ((900, 60, 40), 300, (200, 60, 40)),  # the rare ones are whole, the rest is filled up
        ((900, 600, 40), 300, (130, 130, 40)),  # what is left is shared by those that have more
        ((500, 500), 100, (50, 50)),
        ((70, 30), 100, (70, 30)),
        ((71, 30), 100, (70, 30)),
    ],
)
def test_rare_classes_stay_whole_and_the_number_is_kept(counts, most, kept):
    y = np.repeat(np.arange(len(counts)), counts)
    rows = np.random.default_rng(0).permutation(len(y))
    chosen = thin(y, rows, most, seed=0)
    assert len(set(chosen.tolist())) == len(chosen)
    assert tuple(np.bincount(y[chosen], minlength=len(counts))) == kept


def test_only_the_rows_given_are_chosen_and_the_seed_decides():
    y = np.repeat([0, 1], [200, 10])
    rows = np.arange(0, 210, 2)
    a, b, other = thin(y, rows, 30, 0), thin(y, rows, 30, 0), thin(y, rows, 30, 1)
    assert set(a) <= set(rows)
    assert a.tolist() == b.tolist() != other.tolist()


def test_a_sample_knows_the_counts_of_all_rows():
    table = DataTable.from_arrays(np.arange(210.0)[:, None], np.repeat([0, 1], [200, 10]))
    small = sample_rows(table, 30, seed=0)
    assert len(small) == 30
    assert small.counts.tolist() == [200, 10]
    np.testing.assert_allclose(small.prior, [200 / 210, 10 / 210])
