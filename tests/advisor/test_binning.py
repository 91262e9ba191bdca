"""Bins before weighted boosting: the same trees as without weights, missing values kept, much faster."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier

from equipoise.advisor.bags import Rows
from equipoise.advisor.treatments._binning import MOST, QuantileBins, boosting
from equipoise.advisor.treatments._boosted import LightGBMTrees


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    X[:, 1] = rng.integers(0, 7, 2000)
    X[rng.random(2000) < 0.1, 2] = np.nan
    y = (X[:, 0] + np.nan_to_num(X[:, 2]) + rng.normal(size=2000) > 2.2).astype(int)
    return X, y


def test_boosting_grows_the_same_trees_on_bins_as_on_values(table):
    X, y = table
    model = HistGradientBoostingClassifier(max_iter=20, early_stopping=False, random_state=0)
    bins = QuantileBins().fit(X)
    on_values = model.fit(X, y).predict_proba(X)
    on_bins = model.fit(bins.transform(X), y).predict_proba(bins.transform(X))
    np.testing.assert_allclose(on_bins, on_values, rtol=1e-12)


def test_few_values_and_missing_ones_are_kept(table):
    X, _ = table
    binned = QuantileBins().fit_transform(X)
    np.testing.assert_array_equal(binned[:, 1], X[:, 1])
    np.testing.assert_array_equal(np.isnan(binned), np.isnan(X))
    assert all(len(np.unique(column[~np.isnan(column)])) <= MOST for column in binned.T)
    order = np.argsort(X[:, 0])
    assert (np.diff(binned[order, 0]) >= 0).all()
    assert np.bincount(binned[:, 0].astype(int)).max() <= 2 * len(X) / MOST


def test_weights_no_longer_cost_more_than_the_boosting(table):
    X, y = table
    X = np.nan_to_num(np.hstack([X] * 5))

    def seconds(model):
        def once():
            start = time.process_time()
            model.fit(X, y)
            return time.process_time() - start

        return min(once() for _ in range(3))

    settings = {"max_iter": 30, "early_stopping": False, "random_state": 0}
    plain, weighted = seconds(boosting(**settings)), seconds(boosting("balanced", **settings))
    assert weighted < 3 * plain + 0.2


def test_weights_count(table):
    X, y = table
    settings = {"max_iter": 20, "early_stopping": False, "random_state": 0}
    plain, weighted = (boosting(w, **settings).fit(X, y).predict_proba(X)[:, 1] for w in (None, "balanced"))
    assert weighted.mean() > 1.5 * plain.mean()


class SlowToBin(LightGBMTrees):
    """Long enough at it for every thread to ask before the first has an answer."""

    made: ClassVar[list] = []

    def dataset(self, X, codes):
        self.made.append(1)
        time.sleep(0.05)
        return super().dataset(X, codes)


def test_folds_in_several_threads_share_one_set_of_bins(table):
    """LightGBM refuses to judge rows with other bins than it trains on."""
    X, y = table
    rows, halves = Rows({"trees": X}, y, 2), (np.arange(0, 2000, 2), np.arange(1, 2000, 2))

    def fold(train, test):
        parts = [rows.part("trees", SlowToBin(), index) for index in (train, test)]
        return LightGBMTrees(rounds=5).fit_dataset(parts[0], 2, held_out=parts[1]).predict_proba(X)

    jobs = [delayed(fold)(*halves), delayed(fold)(*halves[::-1])]
    apart = Parallel(n_jobs=2, prefer="threads")(jobs)
    np.testing.assert_array_equal(apart[0], fold(*halves))
    assert len(SlowToBin.made) == 1
