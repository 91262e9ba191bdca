"""The encoder gives learners numbers: nothing lost for trees, one scale for the others, no label leaked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from equipoise.datasets import DataTable
from equipoise.datasets.encoding import MOST_CODED, DateParts, ScaledNumbers, TableEncoder


@pytest.fixture
def mixed() -> DataTable:
    rng = np.random.default_rng(0)
    n = 300
    y = (np.arange(n) % 5 == 0).astype(int)
    prose = ["the parcel never came to our door", "all was well and quick, thank you"]
    frame = pd.DataFrame({
        "age": np.where(rng.random(n) < 0.2, np.nan, rng.normal(50, 9, n)),
        "town": rng.choice(["Ulm", "Bonn", "Kiel"], n, p=[0.6, 0.3, 0.1]),
        "shop": rng.choice([f"shop {i}" for i in range(60)], n),
        "note": [f"{prose[1 - label]} {i}" for i, label in enumerate(y)],
        "when": pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 500 * 24, n), unit="h"),
    })  # fmt: skip
    return DataTable.from_arrays(frame, y)


def test_trees_see_numbers_and_gaps_as_they_are(mixed):
    assert mixed.kinds == ("number", "category", "category", "text", "date")
    encoder = TableEncoder(mixed.kinds, for_trees=True).fit(mixed.X, mixed.y)
    encoded = pd.DataFrame(encoder.transform(mixed.X), columns=encoder.get_feature_names_out())
    np.testing.assert_array_equal(encoded["age"], mixed.X["age"])
    pairs = set(zip(mixed.X["town"], encoded["town"], strict=True))
    assert pairs == {("Ulm", 0.0), ("Bonn", 1.0), ("Kiel", 2.0)}  # the commonest first
    assert encoder.get_feature_names_out()[encoder.categorical_features_].tolist() == ["town"]
    dates = pd.to_datetime(mixed.X["when"], unit="s")
    for part, values in {"year": dates.dt.year, "month": dates.dt.month, "weekday": dates.dt.day_of_week,
                         "hour": dates.dt.hour}.items():  # fmt: skip
        np.testing.assert_array_equal(encoded[f"when {part}"], values)


def test_one_scale_has_no_gaps_and_says_where_they_were(mixed):
    encoder = TableEncoder(mixed.kinds, for_trees=False)
    encoded = pd.DataFrame(encoder.fit_transform(mixed.X, mixed.y), columns=encoder.get_feature_names_out())
    assert np.isfinite(encoded.to_numpy()).all()
    np.testing.assert_array_equal(encoded["age is missing"], mixed.X["age"].isna())
    assert encoded["age"].mean() == pytest.approx(0, abs=1e-12)
    assert encoded["age"].std(ddof=0) == pytest.approx(1)
    np.testing.assert_array_equal(encoded["town_Kiel"], mixed.X["town"] == "Kiel")
    np.testing.assert_allclose(encoded[["when hour sine", "when hour cosine"]].std().gt(0), True)


def test_categories_unseen_in_training_are_missing_for_trees_and_zero_for_the_others(mixed):
    new = mixed.X.assign(town="Atlantis")
    trees = TableEncoder(mixed.kinds, for_trees=True).fit(mixed.X, mixed.y)
    place = trees.get_feature_names_out().tolist().index("town")
    assert np.isnan(trees.transform(new)[:, place]).all()
    scaled = TableEncoder(mixed.kinds, for_trees=False).fit(mixed.X, mixed.y)
    towns = [i for i, name in enumerate(scaled.get_feature_names_out()) if name.startswith("town")]
    assert (scaled.transform(new)[:, towns] == 0).all()


@pytest.mark.parametrize("for_trees", [True, False])
def test_many_random_categories_do_not_leak_the_label(for_trees):
    """Names that are nearly unique tell nothing; in-fold shares would separate the classes."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"who": rng.choice([f"w{i}" for i in range(300)], 900)})
    y = rng.integers(0, 2, 900)
    assert X["who"].nunique() > MOST_CODED
    encoder = TableEncoder(("category",), for_trees)
    encoded = encoder.fit_transform(X, y)
    gap = encoded[y == 1].mean() - encoded[y == 0].mean()
    assert abs(gap) < 0.15 * encoded.std()
    in_sample = encoder.transform(X)
    assert in_sample[y == 1].mean() - in_sample[y == 0].mean() > 0.5 * in_sample.std()


def test_words_and_missingness_can_be_learned_from(mixed):
    text = DataTable.from_arrays(mixed.X[["note"]], mixed.y)
    model = make_pipeline(TableEncoder(text.kinds, for_trees=False), LogisticRegression())
    assert cross_val_score(model, text.X, text.y, cv=3).mean() > 0.95
    gap = DataTable.from_arrays(
        np.where(mixed.y == 1, 3.0, np.nan)[:, None], mixed.y
    )  # filled only for positives
    for learner, trees in ((LogisticRegression(), False), (HistGradientBoostingClassifier(), True)):
        model = make_pipeline(TableEncoder(gap.kinds, trees), learner)
        assert cross_val_score(model, gap.X, gap.y, cv=3).min() == 1.0


def test_plain_numbers_pass_without_a_copy():
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    assert np.shares_memory(TableEncoder(("number",) * 3).fit_transform(X), X)


def test_scaling_agrees_with_scikit_learn():
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(2)
    X = rng.normal(3, 2, (40_000, 11))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 4] = 7.0
    wanted = StandardScaler().fit_transform(SimpleImputer(strategy="median").fit_transform(X))
    got = ScaledNumbers().fit_transform(X)
    np.testing.assert_allclose(got[:, :11], wanted, atol=1e-12)
    np.testing.assert_array_equal(got[:, 11:], np.isnan(np.delete(X, 4, axis=1)))


@pytest.mark.parametrize("for_trees", [True, False])
def test_same_seed_same_bits_and_a_copy_from_disk(mixed, tmp_path, for_trees):
    io = pytest.importorskip("skops.io")
    encoder = TableEncoder(mixed.kinds, for_trees, random_state=3)
    first = encoder.fit_transform(mixed.X, mixed.y)
    np.testing.assert_array_equal(first, clone(encoder).fit_transform(mixed.X, mixed.y))
    io.dump(encoder, tmp_path / "e.skops")
    unknown = io.get_untrusted_types(file=tmp_path / "e.skops")
    allowed = ("equipoise.datasets.encoding.", "numpy.dtype", "sklearn.model_selection._split.")
    assert all(name.startswith(allowed) for name in unknown), unknown
    again = io.load(tmp_path / "e.skops", trusted=unknown)
    np.testing.assert_array_equal(again.transform(mixed.X), encoder.transform(mixed.X))


def test_a_class_with_one_row_can_be_encoded():
    X = pd.DataFrame({"who": [f"w{i % 30}" for i in range(90)]})
    y = np.zeros(90, dtype=int)
    y[7] = 1
    assert np.isfinite(TableEncoder(("category",)).fit_transform(X, y)).all()


def test_missing_dates_stay_missing():
    seconds = np.array([[0.0], [np.nan], [1e9]])
    assert np.isnan(DateParts().fit(seconds).transform(seconds)[1]).all()


def test_a_date_later_than_all_seen_counts_as_the_last_one():
    """Every new table is later than the old one; a linear trend must not be drawn on into it."""
    hours = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(40 * 24), unit="h")
    seen = pd.DataFrame({"when": (hours - pd.Timestamp(0)) / pd.Timedelta(seconds=1)})
    encoder = TableEncoder(("date",), for_trees=False).fit(seen)
    later = seen + 86400 * 7 * 30  # the same weekdays and hours, thirty weeks on
    names = encoder.get_feature_names_out().tolist()
    assert not [name for name in names if "month" in name]  # forty days tell nothing of the other months
    encoded, drawn_on = encoder.transform(seen), encoder.transform(later)
    trend = names.index("when seconds")
    np.testing.assert_array_equal(drawn_on[:, trend], encoded[:, trend].max())
    around = [i for i, name in enumerate(names) if "weekday" in name or "hour" in name]
    np.testing.assert_allclose(drawn_on[:, around], encoded[:, around])


def test_kinds_must_fit():
    with pytest.raises(ValueError, match="X must have 2 columns, one for each of kinds, got 1"):
        TableEncoder(("number", "date")).fit(np.zeros((3, 1)))
    with pytest.raises(ValueError, match="'fish'"):
        TableEncoder(("fish",)).fit(np.zeros((3, 1)))
