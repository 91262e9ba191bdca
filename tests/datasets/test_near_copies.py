"""Copies of one patient are found, ordinary tables raise no alarm, and large tables are searched in part."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from equipoise.datasets import DataTable, describe_near_copies, find_near_copies
from equipoise.diagnosis import diagnose


def copies(patients: int, each: int, columns: int = 10, noise: float = 0.1, seed: int = 0):
    rng = np.random.default_rng(seed)
    rows = np.repeat(rng.normal(size=(patients, columns)), each, axis=0)
    labels = np.repeat(rng.random(patients) < 0.3, each).astype(int)
    return rows + noise * rng.normal(size=rows.shape), labels, np.repeat(np.arange(patients), each)


def agreement(groups, truth) -> float:
    """The share of true groups that were found whole and unmixed."""
    pairs = pd.DataFrame({"found": groups, "true": truth}).drop_duplicates()
    once = ~pairs["found"].duplicated(keep=False) & ~pairs["true"].duplicated(keep=False)
    return once.sum() / len(np.unique(truth))


@pytest.mark.parametrize(
    ("patients", "each", "noise"), [(150, 8, 0.1), (150, 8, 0.02), (200, 2, 0.1), (40, 12, 0.1)]
)
def test_copies_of_patients_are_found_whole(patients, each, noise):
    X, y, truth = copies(patients, each, noise=noise)
    order = np.random.default_rng(1).permutation(len(y))
    groups = find_near_copies(DataTable.from_arrays(X[order], y[order]))
    assert groups is not None
    assert agreement(groups, truth[order]) > 0.98


@pytest.mark.parametrize("spoiled", ["rounded", "gaps"])
def test_rounding_and_gaps_do_not_hide_copies(spoiled):
    """Measurements come with one decimal, and some are missing."""
    X, y, truth = copies(150, 8, noise=0.06)
    gaps = np.random.default_rng(1).random(X.shape) < 0.05
    X = X.round(1) if spoiled == "rounded" else np.where(gaps, np.nan, X)
    groups = find_near_copies(DataTable.from_arrays(X, y))
    assert groups is not None
    assert agreement(groups, truth) > 0.95


@pytest.mark.parametrize(
    ("columns", "noise", "others"),
    [
        (10, 0.1, 2),
        (10, 0.05, 3),
        (6, 0.05, 2),
        (20, 0.1, 4),
        (4, 0.01, 2),
        (3, 0.01, 1),
        (10, 0.1, 20),
        (5, 0.03, 10),
        (3, 0.02, 5),
    ],
)
def test_columns_that_differ_between_copies_do_not_hide_them(columns, noise, others):
    X, y, truth = copies(150, 8, columns, noise)
    rng = np.random.default_rng(1)
    order = rng.permutation(len(y))
    X = np.c_[rng.normal(size=(len(y), others)), X]
    groups = find_near_copies(DataTable.from_arrays(X[order], y[order]))
    assert groups is not None
    assert agreement(groups, truth[order]) > 0.9


@pytest.mark.parametrize(("noise", "seed", "least"), [(0.01, 0, 0.95), (0.05, 2, 0.4)])
def test_copies_in_a_table_of_three_columns_are_found(noise, seed, least):
    """Where copies are as far apart as other rows where these are dense, no one radius tells them apart."""
    X, y, truth = copies(150, 8, 3, noise, seed)
    groups = find_near_copies(DataTable.from_arrays(X, y))
    assert groups is not None
    assert agreement(groups, truth) > least


def test_an_empty_column_beside_copies_is_no_hindrance():
    X, y, truth = copies(150, 8)
    X = np.c_[X, np.random.default_rng(1).normal(size=(len(y), 8)), np.full(len(y), np.nan)]
    groups = find_near_copies(DataTable.from_arrays(X, y))
    assert groups is not None
    assert agreement(groups, truth) > 0.9


@pytest.mark.parametrize("columns", [4, 12])
def test_columns_without_copies_raise_no_alarm_beside_columns_that_move_together(columns):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        common = rng.normal(size=(600, 2)) @ rng.normal(size=(2, columns))
        X = np.c_[common + 0.1 * rng.normal(size=common.shape), rng.normal(size=(600, columns))]
        assert find_near_copies(DataTable.from_arrays(X, np.arange(600) % 2)) is None


def test_the_diagnosis_says_it_unless_groups_are_named():
    X, y, patient = copies(150, 8)
    finding = diagnose(X, y, questions=["duplicates"])["duplicates"]
    assert finding.level == "warning"
    assert "1,200 rows are near-copies of one another, in 150 groups of mostly 8" in finding.answer
    grouped = diagnose(DataTable.from_arrays(X, y, groups=patient), questions=["duplicates"])["duplicates"]
    assert grouped.level == "good"


def test_the_column_that_names_the_groups_is_named():
    X, y, patient = copies(150, 8)
    shuffled = np.random.default_rng(3).permutation(150)[patient]
    frame = pd.DataFrame(X).assign(patient=[f"p{i}" for i in shuffled])
    table = DataTable.from_arrays(frame, y)
    groups = find_near_copies(table)
    assert groups is not None
    assert "Column 'patient' tells the groups apart: name it with --group" in describe_near_copies(
        table, groups
    )


@pytest.mark.parametrize("load", [load_digits, load_breast_cancer, load_wine, load_iris])
def test_ordinary_tables_raise_no_alarm(load):
    X, y = load(return_X_y=True)
    assert find_near_copies(DataTable.from_arrays(X, y)) is None


@pytest.mark.parametrize("columns", [3, 4, 8, 20])
@pytest.mark.parametrize("shape", ["normal", "lognormal", "clusters", "walk"])
def test_made_tables_raise_no_alarm(columns, shape):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(800, columns))
        if shape == "lognormal":
            X = np.exp(2 * X)
        elif shape == "clusters":
            X += 10 * rng.normal(size=(8, columns))[rng.integers(0, 8, 800)]
        elif shape == "walk":
            X = np.cumsum(X, axis=0)
        assert find_near_copies(DataTable.from_arrays(X, np.arange(800) % 2)) is None


def test_a_large_table_is_searched_in_part_and_grouped_as_a_whole():
    X, y, truth = copies(10_000, 3, noise=0.03)
    groups = find_near_copies(DataTable.from_arrays(X, y))
    assert groups is not None
    assert agreement(groups, truth) > 0.97


def test_exact_copies_of_rich_rows_are_found_and_equal_coarse_rows_are_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    X = np.concatenate([X, X[:30]])
    groups = find_near_copies(DataTable.from_arrays(X, np.arange(330) % 2))
    assert groups is not None
    np.testing.assert_array_equal(groups[:30], groups[300:])
    assert len(np.unique(groups)) == 300
    coarse = rng.integers(0, 3, (500, 4)).astype(float)
    assert find_near_copies(DataTable.from_arrays(coarse, np.arange(500) % 2)) is None


def test_same_seed_same_groups():
    X, y, _ = copies(2000, 4, noise=0.1)
    table = DataTable.from_arrays(X, y)
    np.testing.assert_array_equal(find_near_copies(table), find_near_copies(table))
