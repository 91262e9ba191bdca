"""Drift is found in columns and in the share of the rare class, not where rows are only like their neighbors."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from equipoise.datasets import DataTable
from equipoise.diagnosis import diagnose, question_names
from equipoise.diagnosis.drift import time_blocks
from equipoise.report.as_json import to_plain


def rows(seed, n=600, columns=5):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(n, columns)), np.sort(rng.random(n))


def ask(X, y, time, seed=0):
    return diagnose(X, y, time=time, questions=["drift"], random_state=seed)["drift"]


def test_a_column_that_moves_is_found_and_named():
    rng, X, when = rows(0)
    X[:, 2] += 2 * when
    order = rng.permutation(len(when))
    found = ask(X[order], (rng.random(600) < 0.2).astype(int), when[order])
    assert found.level == "warning"
    assert found.values["auc_interval"][0] > 0.55
    assert found.values["columns"][0]["name"] == "column 2"
    assert "What moved most: “column 2” (median " in found.answer
    assert "“column 0”" not in found.answer
    json.dumps(to_plain(found.values), allow_nan=False)


def test_a_share_that_moves_is_found():
    rng, X, when = rows(1, 4000)
    found = ask(X, (rng.random(4000) < 0.03 + 0.1 * when).astype(int), when)
    low, high = found.values["share_change_interval"]
    assert 0 < low < 0.05 < high
    assert found.values["share_late"] == pytest.approx(0.105, abs=0.02)
    assert found.level == "warning"


def test_texts_dates_and_gaps_that_move_are_said():
    rng, X, when = rows(2)
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    frame["shop"] = np.where(rng.random(600) < when, "new", "old")
    frame.loc[rng.random(600) < 0.8 * when, "b"] = np.nan
    frame["sold"] = pd.Timestamp("2024-01-01") + pd.to_timedelta((400 * when).astype(int), "D")
    answer = ask(frame, (rng.random(600) < 0.2).astype(int), when).answer
    assert "“sold” (median 2024-" in answer
    assert "“shop” (“" in answer
    assert "“b” (missing in " in answer


def test_tables_without_drift_raise_no_alarm():
    """Neighbors in time that are alike, as in a slow machine, are no drift."""
    alarms = 0
    for seed in range(10):
        rng, X, when = rows(seed, 300, 3)
        for i in range(1, 300):
            X[i] = 0.7 * X[i - 1] + np.sqrt(0.51) * X[i]
        alarms += ask(X, (rng.random(300) < 0.2).astype(int), when, seed).level != "good"
    assert alarms <= 2


def test_it_is_asked_only_with_a_time():
    rng, X, when = rows(3, 200)
    y = (rng.random(200) < 0.3).astype(int)
    assert "drift" in question_names()
    assert "drift" not in [f.slug for f in diagnose(X, y, seconds=3).findings]
    assert "it needs the time of each row" in diagnose(X, y, questions=["drift"])["drift"].answer
    assert "all rows have the same time" in ask(X, y, np.zeros(200)).answer
    table = DataTable.from_arrays(X, y, time=when)
    assert diagnose(table, questions=["drift"])["drift"].answer == ask(X, y, when).answer


def test_blocks_follow_the_time_and_moments_stay_in_one_half():
    rng = np.random.default_rng(0)
    time = rng.integers(0, 7, 500).astype(float)
    blocks = time_blocks(time, rng)
    assert set(blocks) == set(range(10))
    assert not set(time[blocks < 5]) & set(time[blocks >= 5])
    assert all(time[blocks == b].max() <= time[blocks == b + 1].min() for b in range(9))
