"""make_imbalanced, the profiles and the embedded sets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from equipoise import datasets
from equipoise.datasets import class_counts, exponential_counts, make_imbalanced, step_counts
from equipoise.datasets.imbalance import apportion

# Table 8 of Mondal et al. as printed: first, middle and last rows of ten, for train and imbalanced test.
TABLE_8_TRAIN = {
    0: [500, 488, 477, 466, 455, 445, 434, 424, 415, 405],
    4: [197, 192, 188, 183, 179, 175, 171, 167, 163, 159],
    9: [61, 60, 58, 57, 56, 54, 53, 52, 51, 50],
}
TABLE_8_TEST = {
    0: [100, 97, 95, 93, 91, 89, 86, 84, 83, 81],
    4: [39, 38, 37, 36, 35, 35, 34, 33, 32, 31],
    9: [12, 12, 11, 11, 11, 10, 10, 10, 10, 10],
}

labelings = st.integers(2, 6).flatmap(
    lambda c: st.lists(st.integers(3, 30), min_size=c, max_size=c).map(
        lambda stock: np.repeat(np.arange(len(stock)), stock)
    )
)


@given(y=labelings, data=st.data())
def test_counts_are_met_and_rows_stay_together(y, data):
    stock = np.bincount(y)
    counts = [data.draw(st.integers(1, int(n))) for n in stock]
    X = np.stack([y, np.arange(len(y))], axis=1)
    X_kept, y_kept, rows = make_imbalanced(X, y, counts=counts, random_state=1, return_indices=True)
    assert np.bincount(y_kept).tolist() == counts
    assert np.array_equal(X_kept[:, 0], y_kept)
    assert np.array_equal(X_kept[:, 1], rows)
    assert len(np.unique(rows)) == len(rows)


@given(y=labelings, seed=st.integers(0, 99), ratio=st.floats(1, 50))
def test_profiles_fit_the_stock_and_a_smaller_draw_is_nested(y, seed, ratio):
    for profile in ("exponential", "step"):
        _, kept, large = make_imbalanced(
            y[:, None], y, profile=profile, ratio=min(ratio, 3), random_state=seed, return_indices=True
        )
        counts = np.bincount(kept)
        assert (np.diff(counts) <= 0).all()
        assert (counts <= np.bincount(y)).all()
        fewer = {label: max(1, int(n) // 2) for label, n in enumerate(counts)}
        *_, small = make_imbalanced(y[:, None], y, counts=fewer, random_state=seed, return_indices=True)
        assert set(small) <= set(large)


@given(
    head=st.integers(1, 10_000),
    n_classes=st.integers(2, 200),
    ratio=st.floats(1, 1000),
)
def test_profile_ends_at_head_over_ratio(head, n_classes, ratio):
    for counts in (exponential_counts(head, n_classes, ratio), step_counts(head, n_classes, ratio)):
        assert counts[0] == head
        assert counts[-1] == pytest.approx(head / ratio, abs=1)
        assert (np.diff(counts) <= 0).all()


@given(st.integers(0, 500), st.lists(st.floats(0.01, 1), min_size=1, max_size=8))
def test_apportion_sums_and_stays_within_one(total, raw):
    weights = np.array(raw) / np.sum(raw)
    counts = apportion(total, weights)
    assert counts.sum() == total
    assert (np.abs(counts - total * weights) < 1 + 1e-6).all()


def test_default_head_is_the_largest_that_fits():
    y = np.repeat([0, 1, 2], [100, 100, 4])
    _, kept = make_imbalanced(y, y, profile="exponential", ratio=10, random_state=0)
    counts = np.bincount(kept)
    assert counts[2] == 4
    assert (exponential_counts(counts[0] + 1, 3, 10) > [100, 100, 4]).any()


def test_order_says_who_is_the_head():
    y = np.array(["a"] * 20 + ["b"] * 20)
    _, kept = make_imbalanced(y, y, profile="step", ratio=10, order=["b", "a"], random_state=0)
    assert dict(zip(*np.unique(kept, return_counts=True), strict=True)) == {"a": 2, "b": 20}


def test_tables_images_sparse_and_frames_alike():
    y = np.repeat([0, 1], 10)
    how = {"counts": {1: 3}, "random_state": 0}
    expected = make_imbalanced(np.arange(20), y, **how)[0]
    images = np.arange(20)[:, None, None, None] * np.ones((1, 1, 2, 2))
    assert np.array_equal(make_imbalanced(images, y, **how)[0][:, 0, 0, 0], expected)
    sparse = scipy.sparse.csr_array(np.arange(20)[:, None])
    assert np.array_equal(make_imbalanced(sparse, y, **how)[0].toarray()[:, 0], expected)
    frame = pd.DataFrame({"a": np.arange(20)}, index=np.arange(100, 120))
    X, labels = make_imbalanced(frame, pd.Series(y, index=frame.index), **how)
    assert X["a"].tolist() == expected.tolist()
    assert labels.index.equals(X.index)


def test_gapped_string_and_boolean_labels():
    for labels in ([-3, 40], ["x", "y"], [False, True]):
        y = np.repeat(labels, 10)
        _, kept = make_imbalanced(y, y, counts={labels[1]: 2}, random_state=0)
        assert (kept == labels[1]).sum() == 2
        assert len(kept) == 12


@pytest.mark.parametrize(
    ("y", "how", "message"),
    [
        ([0, 0, 1, 1], {"counts": [1, -1]}, "counts must be whole numbers of at least 0, got -1"),
        ([0, 0, 1, 1], {"counts": [1, 3]}, "asks for 3 samples of class 1, which has 2"),
        ([0, 0, 1, 1], {"counts": [1]}, r"one number a class \(2\), got 1"),
        ([0, 0, 1, 1], {"counts": {2: 1}}, "unknown 2; there are 0, 1"),
        ([0, 0, 1, 1], {"counts": [2, 0]}, "at least two classes"),
        ([0, 0, 0], {"counts": [1]}, "at least two classes, got only"),
        ([], {"counts": [1]}, "y must not be empty"),
        ([0.0, np.nan], {"counts": [1, 1]}, "y must be finite, got nan"),
        ([[0], [1]], {"counts": [1, 1]}, r"y must be one-dimensional, got shape \(2, 1\)"),
        ([0, 1], {}, "either counts or a profile"),
        ([0, 1], {"counts": [1, 1], "profile": "step", "ratio": 2}, "either counts or a profile"),
        ([0, 1], {"profile": "stp", "ratio": 2}, "one of 'exponential', 'step', got 'stp'"),
        ([0, 1], {"profile": "step"}, "needs a ratio"),
        ([0, 1], {"profile": "step", "ratio": 0.5}, r"ratio must lie in \[1, inf\], got 0.5"),
        ([0, 1], {"profile": "step", "ratio": 1, "order": [0, 0]}, "each of the 2 classes once"),
        ([0, 1], {"profile": "step", "ratio": 1, "head": 9}, "asks for 9 samples of class 0"),
    ],
)
def test_bad_input_is_named(y, how, message):
    with pytest.raises(ValueError, match=message):
        make_imbalanced(np.zeros((len(y), 2)), y, **how)


def test_mismatched_lengths_are_named():
    with pytest.raises(ValueError, match="X and y must have the same length, got 3 and 2"):
        make_imbalanced(np.zeros((3, 1)), [0, 1], counts=[1, 1])


@pytest.mark.parametrize(("split", "rows"), [("train", TABLE_8_TRAIN), ("imbalanced_test", TABLE_8_TEST)])
def test_cifar100_is_the_printed_table(split, rows):
    counts = class_counts("cifar100-mondal", split).reshape(10, 10)
    for row, printed in rows.items():
        assert counts[row].tolist() == printed


def test_long_tail_sizes_are_those_of_the_paper():
    sizes = {(10, 10): 20391, (10, 100): 12380, (100, 10): 19541, (100, 100): 10829}
    for (classes, ratio), size in sizes.items():
        assert class_counts(f"cifar{classes}-lt-{ratio}-wu").sum() == size


def test_every_profile_is_usable():
    for name, profile in datasets.PROFILES.items():
        counts = class_counts(name)
        assert counts.min() >= 1, name
        assert counts.argmax() == 0, name
        assert len(profile.balanced_test) == len(counts), name
        if "beta" in name:
            beta = int(name.rpartition("beta")[2])
            assert counts[0] / counts[1] == pytest.approx(beta, rel=0.06), name
        elif "-lt-" in name:
            assert counts[0] / counts[-1] == pytest.approx(int(name.split("-")[2]), rel=0.25), name
        assert profile.source
    assert class_counts("mnist-mondal").sum() == 9000
    with pytest.raises(ValueError, match="no 'imbalanced_test'"):
        class_counts("cifar10-lt-100", "imbalanced_test")
    with pytest.raises(ValueError, match="name must be one of"):
        class_counts("mnist")


@pytest.mark.parametrize("loader", ["digits", "breast_cancer", "wine"])
def test_embedded_sets(loader):
    load = getattr(datasets, f"load_{loader}_imbalanced")
    data = load()
    assert np.array_equal(data.X, load(random_state=0).X)
    counts = list(data.class_counts.values())
    assert counts == sorted(counts, reverse=True)
    assert len(data.target_names) == len(counts)
    assert len(data.feature_names) == data.X.shape[1]
    assert np.isfinite(data.X).all()
    other = load(profile="step", ratio=4, head=20)
    assert set(other.class_counts.values()) == {20, 5}


def test_digits_have_two_views():
    data = datasets.load_digits_imbalanced()
    assert data.images.shape == (len(data), 1, 8, 8)
    assert data.X.max() == 1
    assert np.array_equal(data.images.reshape(len(data), -1), data.table)
    with pytest.raises(ValueError, match="not images"):
        datasets.load_wine_imbalanced().images
