"""The room's shared behavior, on the classical samplers: strategies, tables, provenance, gate, bad input."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from imblearn.pipeline import make_pipeline
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate

from equipoise.oversampling import AMDO, MCCCR, MCRBO, LowQualityError, LowQualityWarning
from equipoise.oversampling._codec import TableCodec
from equipoise.oversampling._multiclass import draw_opponents, from_large_to_small
from equipoise.oversampling._potential import PointPotential, TabulatedPotential, potential_of
from equipoise.oversampling.gate import assess, expected_coverage
from equipoise.oversampling.mc_ccr import _fill, _radii
from equipoise.theory.anomaly import advise_training
from sampler_cases import blobs, mixed

SAMPLERS = [AMDO(random_state=0), MCCCR(random_state=0), MCRBO(n_steps=40, random_state=0)]
EACH = pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: type(s).__name__)


@EACH
def test_balances_and_keeps_the_input_first(sampler):
    X, y = blobs()
    X_new, y_new = sampler.fit_resample(X, y)
    assert np.bincount(y_new).tolist() == [120, 120, 120]
    made = sampler.provenance_
    still = ~made.moved[: len(X)]
    assert np.array_equal(X_new[: len(X)][still], X[still])
    assert made.synthetic.sum() == len(X_new) - len(X)
    assert (y[made.parents[:, 0]] == y_new[made.synthetic]).all(), "a row's parent has its class"
    assert len(made.to_frame()) == len(X_new)


@EACH
def test_same_seed_same_rows(sampler):
    X, y = blobs()
    assert np.array_equal(sampler.fit_resample(X, y)[0], sampler.fit_resample(X, y)[0])


@pytest.mark.filterwarnings(
    "ignore::equipoise.oversampling.LowQualityWarning"
)  # forty small steps go nowhere
@EACH
def test_mixed_table_comes_back_as_it_was(sampler):
    frame, y = mixed()
    new, labels = sampler.fit_resample(frame, y)
    assert (new.dtypes == frame.dtypes).all()
    assert labels.name == "kind"
    assert set(new["city"]) <= set(frame["city"])
    assert new["visits"].between(0, 8).all()
    assert (labels == "fraud").sum() == 100


@EACH
def test_weights_and_extra_columns_come_along(sampler):
    X, y = blobs()
    extra = pd.DataFrame({"id": np.arange(len(X))})
    weight = np.where(y == 2, 3.0, 1.0)
    _, y_new = sampler.fit_resample(X, y, sample_weight=weight, extra=extra)
    assert np.allclose(sampler.sample_weight_, np.where(y_new == 2, 3.0, 1.0))
    assert (y[sampler.extra_["id"]] == y_new).all()


@EACH
def test_works_in_a_pipeline(sampler):
    X, y = make_classification(200, 3, n_redundant=0, weights=[0.85], random_state=0)
    scores = cross_validate(make_pipeline(sampler, LogisticRegression()), X, y, cv=3)
    assert scores["test_score"].mean() > 0.7


@pytest.mark.parametrize(
    ("strategy", "made"),
    [
        ("auto", 105),
        (0.5, 45),
        ({1: 20}, 5),
        (lambda y: {1: 31}, 16),
        ("minority", 105),
        (15 / 120 + 0.004, 0),
    ],
)
def test_strategies_count_as_imbalanced_learn_does_and_round(strategy, made):
    X, y = blobs((120, 15))
    assert len(AMDO(sampling_strategy=strategy, random_state=0).fit_resample(X, y)[0]) == 135 + made


def test_a_ratio_is_rounded_never_cut_off():
    X, y = blobs((119, 15))
    _, y_new = AMDO(sampling_strategy=0.5, random_state=0).fit_resample(X, y)
    assert (y_new == 1).sum() == round(59.5)


def test_the_theory_says_how_many():
    X, y = make_classification(300, 8, weights=[0.9], random_state=0)
    sampler = AMDO(sampling_strategy="theory", random_state=0)
    _, y_new = sampler.fit_resample(X, y)
    advice = advise_training(X, y, draws=10, random_state=0)
    assert (y_new == 0).sum() == (y == 0).sum()
    assert (y_new == 1).mean() == pytest.approx(advice.plan.weights.train_fraction, abs=0.01)
    with pytest.raises(ValueError, match="two classes, got 3"):
        sampler.fit_resample(*blobs())


def test_partial_balancing_goes_part_of_the_way():
    X, y = blobs()
    _, y_new = AMDO(sampling_strategy="partial", balance=0.5, random_state=0).fit_resample(X, y)
    assert np.bincount(y_new).tolist() == [120, 80, 68]


def test_preflight_counts_before_anything_is_made():
    X, y = blobs()
    estimate = AMDO().preflight(X, y)
    assert (estimate.new_rows, estimate.total_rows) == ({1: 80, 2: 105}, 360)
    assert "80 of class 1" in str(estimate)


def test_amdo_stays_on_its_parents_ellipse():
    X, y = blobs((200, 60))
    sampler = AMDO(random_state=0)
    X_new, _ = sampler.fit_resample(X, y)
    own = X[y == 1]
    inverse = np.linalg.inv(np.cov(own.T))

    def mahalanobis(rows):
        centered = rows - own.mean(axis=0)
        return np.einsum("ij,jk,ik->i", centered, inverse, centered)

    parents = X[sampler.provenance_.parents[:, 0]]
    assert np.allclose(mahalanobis(X_new[len(X) :]), mahalanobis(parents))


def test_ccr_radius_is_where_the_energy_ends():
    distance = np.array([[0.1, 0.3, 2.0], [5.0, 5.0, 5.0], [0.0, 0.0, 0.0]])
    # 0.1·1 + 0.2·2 = 0.5 spent at 0.3; the rest, 0.5, at price 3.
    assert _radii(distance, 1.0) == pytest.approx([0.3 + 0.5 / 3, 1.0, 0.25])


@pytest.mark.filterwarnings("ignore:.*one real row")
def test_ccr_pushes_to_the_border_and_fills_inside():
    X = np.array([[0.0, 0.0], [0.05, 0.0], [1.0, 1.0], [0.9, 1.0], [1.0, 0.9]])
    y = np.array([1, 0, 0, 0, 0])
    sampler = MCCCR(energy=0.2, random_state=0)
    X_new, _ = sampler.fit_resample(X, y)
    radius = 0.05 + 0.15 / 2
    assert np.abs(X_new[1] - X_new[0]).sum() == pytest.approx(radius)
    assert (np.abs(X_new[5:] - X_new[0]).sum(axis=1) <= radius + 1e-12).all()
    assert sampler.provenance_.moved[:5].tolist() == [False, True, False, False, False]


@pytest.mark.filterwarnings("ignore:.*one real row")
def test_ccr_leaves_out_what_lies_in_its_spheres():
    X = np.array([[0.0, 0.0], [0.05, 0.0], [1.0, 1.0], [0.9, 1.0], [1.0, 0.9]])
    y = np.array([1, 0, 0, 0, 0])
    sampler = MCCCR(energy=0.2, cleaning="remove", random_state=0)
    X_new, y_new = sampler.fit_resample(X, y, sample_weight=np.arange(5.0), extra=list("abcde"))
    assert np.array_equal(X_new[:4], X[[0, 2, 3, 4]])
    assert y_new.tolist() == [1, 0, 0, 0, 1, 1, 1]
    assert sampler.provenance_.originals.tolist() == [0, 2, 3, 4]
    assert sampler.provenance_.to_frame()["parent_0"].tolist() == [0, 2, 3, 4, 0, 0, 0]
    assert sampler.sample_weight_[:4].tolist() == [0.0, 2.0, 3.0, 4.0]
    assert list(sampler.extra_) == list("acdeaaa")


@pytest.mark.filterwarnings("ignore::equipoise.oversampling.LowQualityWarning")
def test_ccr_removes_from_mixed_tables_and_many_classes():
    frame, y = mixed()
    new, labels = MCCCR(cleaning="remove", random_state=0).fit_resample(frame, y)
    assert len(new) == len(labels)
    assert (new.dtypes == frame.dtypes).all()
    X, y = blobs()
    sampler = MCCCR(cleaning="remove", random_state=0)
    X_new, y_new = sampler.fit_resample(X, y)
    kept = sampler.provenance_.originals
    assert len(kept) < len(X)
    assert np.array_equal(X_new[: len(kept)], X[kept])
    assert np.array_equal(y_new[: len(kept)], y[kept])
    assert len(sampler.provenance_.to_frame()) == len(X_new)


def test_samples_of_unequal_shape_are_told():
    with pytest.raises(ValueError, match=r"X must have samples of one shape, got \(2,\) and \(1,\)"):
        AMDO().fit_resample([[1.0, 2.0], [3.0]], [0, 1])


def test_rbo_never_raises_the_potential():
    X, y = blobs((150, 30), d=2)
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    sampler = MCRBO(n_steps=200, random_state=1)
    X_new, _ = sampler.fit_resample(X, y)

    def potential(rows):
        squared = (((rows[:, None] - X[None]) / width) ** 2).sum(axis=2)
        return np.abs((np.exp(-squared / 0.05**2) * np.where(y == 0, 1, -1)).sum(axis=1))

    assert low.shape == (2,)
    before, after = potential(X[sampler.provenance_.parents[:, 0]]), potential(X_new[len(X) :])
    assert (after <= before + 1e-12).all()
    assert after.mean() < 0.5 * before.mean()


def test_opponents_are_drawn_evenly_from_larger_classes():
    codes = np.repeat([0, 1, 2], [60, 40, 10])
    order = from_large_to_small(codes, {1: 20, 2: 50})
    assert [(code, larger.tolist()) for code, larger in order] == [(1, [0]), (2, [0, 1])]
    rng = np.random.default_rng(0)
    for (_, larger), expected in zip(order, ([60, 0, 0], [30, 30, 0]), strict=True):
        others = draw_opponents(codes, larger, 60, rng)
        assert np.bincount(codes[others], minlength=3).tolist() == expected
        assert len(np.unique(others)) == len(others)


@pytest.mark.filterwarnings("ignore::equipoise.oversampling.LowQualityWarning")
@pytest.mark.parametrize("sampler", [MCCCR(random_state=0), MCRBO(n_steps=5, random_state=0)], ids=str)
def test_what_was_made_for_one_class_opposes_the_next(sampler, monkeypatch):
    seen = []

    def watched(codes, larger, total, rng):
        seen.append((larger.tolist(), np.bincount(codes).tolist()))
        return draw_opponents(codes, larger, total, rng)

    monkeypatch.setattr(f"{type(sampler).__module__}.draw_opponents", watched)
    sampler.fit_resample(*blobs())
    assert seen == [([0], [120, 40, 15]), ([0, 1], [120, 120, 15])]


@pytest.mark.filterwarnings("ignore:.*one real row")
def test_ccr_pushes_out_points_that_coincide_with_a_rare_one():
    X = np.array([[0.0, 0.0]] * 4 + [[1.0, 1.0]] * 3 + [[0.0, 0.0]])
    y = np.array([0] * 7 + [1])
    sampler = MCCCR(energy=0.25, random_state=0)
    X_new, _ = sampler.fit_resample(X, y)
    pushed = X_new[:4]
    assert sampler.provenance_.moved[:8].tolist() == [True] * 4 + [False] * 4
    assert np.allclose(np.abs(pushed).sum(axis=1), 0.25 / 5), (
        "to the border: four inside make a unit cost five"
    )
    assert len(np.unique(pushed, axis=0)) == 4, "each in its own direction"


def test_ccr_fills_small_spheres_most():
    rng = np.random.default_rng(0)
    radii = np.array([0.1, 0.3])
    made = _fill(np.zeros((2, 2)), np.array([0, 1]), radii, 1 / radii, 400, 1, 1.0, rng)
    assert np.bincount(made.parents[:, 0]).tolist() == [300, 100]


def test_ccr_gives_the_hard_pressed_point_more_rows_unless_told_otherwise():
    rng = np.random.default_rng(1)
    crowd = rng.uniform(-0.02, 0.02, (30, 2))
    X = np.concatenate([crowd, [[1.0, 1.0]], [[0.0, 0.0]], [[0.5, 0.5]]])
    y = np.array([0] * 31 + [1, 1])
    born = {}
    for selection in ("proportional", "random"):
        sampler = MCCCR(selection=selection, random_state=0)
        sampler.fit_resample(X, y)
        born[selection] = np.bincount(sampler.provenance_.parents[:, 0], minlength=33)[31:]
    assert born["proportional"][0] > 5 * born["proportional"][1]
    assert abs(born["random"][0] - born["random"][1]) <= 1


def test_amdo_works_under_a_grid_search_over_small_neighborhoods():
    X, y = make_classification(120, 3, n_redundant=0, weights=[0.8], random_state=0)
    pipeline = make_pipeline(AMDO(random_state=0), LogisticRegression())
    grid = GridSearchCV(pipeline, {"amdo__k_neighbors": [1, 3, 10]}, cv=2, error_score="raise").fit(X, y)
    assert np.isfinite(grid.cv_results_["mean_test_score"]).all()
    with pytest.raises(ValueError, match="k_same must be at most 3"):
        AMDO(k_neighbors=3, k_same=5).fit_resample(X, y)


def test_rbo_takes_the_authors_distance_too():
    X, y = blobs((150, 30), d=2)
    width = np.ptp(X, axis=0)

    def potential(rows, p):
        distance = np.linalg.norm((rows[:, None] - X[None]) / width, ord=p, axis=2)
        return np.abs((np.exp(-(distance**2) / 0.05**2) * np.where(y == 0, 1, -1)).sum(axis=1))

    made = {}
    for metric, p in (("euclidean", 2), ("manhattan", 1)):
        sampler = MCRBO(n_steps=250, metric=metric, random_state=1)
        made[metric] = sampler.fit_resample(X, y)[0][len(X) :]
        before = potential(X[sampler.provenance_.parents[:, 0]], p)
        assert (potential(made[metric], p) <= before + 1e-9).all()
    assert not np.allclose(made["euclidean"], made["manhattan"])


@pytest.mark.parametrize(
    ("kind", "n", "d"),
    [
        *product([PointPotential], [50, 4000], [1, 3, 6]),
        (TabulatedPotential, 50, 1),
        (TabulatedPotential, 300, 2),
        (TabulatedPotential, 9000, 3),
    ],
)
def test_rbo_knows_the_potential_to_second_order(kind, n, d):
    rng = np.random.default_rng(0)
    points, charge, gamma = rng.random((n, d)) ** 2, rng.choice([-1.0, 1.0], n), 0.05
    places = np.concatenate([points[:150], rng.uniform(-0.5, 1.5, (100, d))])
    u = (points - places[:, None]) / gamma
    bells = np.exp(-(u**2).sum(axis=2))
    slope = 2 * np.einsum("ij,j,ijk->ik", bells, charge, u) / gamma
    bend = 4 * np.einsum("ij,j,ijk,ijl->ikl", bells, charge, u, u) - 2 * (bells @ charge)[
        :, None, None
    ] * np.eye(d)
    potential = potential_of(points, charge, gamma)
    if kind is PointPotential:
        potential = PointPotential(points, charge, gamma)
    assert isinstance(potential, kind)
    value, found_slope, found_bend = potential.around(places)
    scale = np.maximum(bells.sum(axis=1), 1)
    assert (np.abs(value - bells @ charge) < 2e-4 * scale).all()
    assert (np.abs(found_slope - slope) < 2e-3 * scale[:, None] / gamma).all()
    rough = 0.1 if kind is TabulatedPotential else 2e-3  # of a cubic spline, whose curvature is linear
    assert (np.abs(found_bend - bend / gamma**2) < rough * scale[:, None, None] / gamma**2).all()


def test_rbo_takes_many_columns():
    X, y = blobs((20, 5), d=400)
    assert len(MCRBO(n_steps=2, on_low_quality="skip", random_state=0).fit_resample(X, y)[0]) <= 40


@pytest.mark.filterwarnings("ignore::equipoise.oversampling.LowQualityWarning")
@pytest.mark.parametrize("d", [1, 2, 3, 4, 8])
def test_rbo_walks_by_the_curvature_as_it_does_by_all_points(d, monkeypatch):
    X, y = make_classification(
        600, d + 1, n_informative=2, n_redundant=0, n_clusters_per_class=1, weights=[0.85], random_state=0
    )
    X = X[:, :d]
    low, width = X.min(axis=0), np.ptp(X, axis=0)

    def ways():
        sampler = MCRBO(random_state=3)
        made = (sampler.fit_resample(X, y)[0][len(X) :] - low) / width
        points = (X - low) / width
        squared = ((made[:, None] - points) ** 2).sum(axis=2)
        ends = np.abs((np.exp(-squared / 0.05**2) * np.where(y == 0, 1, -1)).sum(axis=1))
        return ends, np.abs(made - points[sampler.provenance_.parents[:, 0]]).sum(axis=1) / 0.001

    ends, steps = ways()
    monkeypatch.setattr("equipoise.oversampling.mc_rbo._FEW_COLUMNS", 0)
    exact_ends, exact_steps = ways()
    assert ends.mean() == pytest.approx(exact_ends.mean(), rel=0.1)
    assert np.median(ends) == pytest.approx(np.median(exact_ends), rel=0.15)
    assert steps.mean() == pytest.approx(exact_steps.mean(), rel=0.05)


def test_rbo_takes_long_steps_as_they_are(monkeypatch):
    X, y = blobs((60, 10), d=2)
    long = MCRBO(step=0.02, n_steps=30, random_state=2)
    made = long.fit_resample(X, y)[0]
    monkeypatch.setattr("equipoise.oversampling.mc_rbo._FEW_COLUMNS", 0)
    assert np.array_equal(made, long.fit_resample(X, y)[0])


def test_rbo_walks_as_one_that_sees_all_points_would(monkeypatch):
    X, y = blobs((60, 10), d=9)
    near = MCRBO(n_steps=300, random_state=2).fit_resample(X, y)[0]
    monkeypatch.setattr("equipoise.oversampling.mc_rbo.REACH", 100.0)
    assert np.allclose(near, MCRBO(n_steps=300, random_state=2).fit_resample(X, y)[0])


def test_expected_coverage_is_what_own_draws_cover():
    rng = np.random.default_rng(0)
    found = [assess(rng.normal(size=(60, 2)), rng.normal(size=(40, 2)), "c", rng).coverage for _ in range(60)]
    assert np.mean(found) == pytest.approx(expected_coverage(60, 40), abs=4 * np.std(found) / np.sqrt(60))


def test_gate_tells_good_rows_from_copies_strangers_and_bunches():
    rng = np.random.default_rng(0)
    real = rng.normal(size=(200, 3))
    look = lambda made: assess(real, made, "c", rng)  # noqa: E731
    assert look(rng.normal(size=(200, 3))).reason == ""
    assert "copies" in look(real).reason
    assert "outside" in look(rng.normal(size=(200, 3)) + 9).reason
    assert "bunch" in look(np.zeros((200, 3)) + rng.normal(size=(200, 3)) * 0.01).reason


def test_gate_warns_raises_or_skips():
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.uniform(0, 1, (80, 2)), rng.normal(5, 0.01, (20, 2)), rng.normal(9, 0.01, (20, 2))]
    )
    y = np.repeat([0, 1], [80, 40])
    # Two tight far-apart groups: an ellipse around both is empty of real points.
    with pytest.warns(LowQualityWarning, match="class 1"):
        X_kept, _ = AMDO(random_state=0).fit_resample(X, y)
    assert len(X_kept) == 160
    with pytest.raises(LowQualityError, match="density"):
        AMDO(random_state=0, on_low_quality="raise").fit_resample(X, y)
    with pytest.warns(LowQualityWarning, match="dropped"):
        X_skip, _ = AMDO(random_state=0, on_low_quality="skip").fit_resample(X, y)
    assert len(X_skip) == 120


@EACH
@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda X, y: (sparse.csr_matrix(X), y), TypeError, "dense table"),
        (lambda X, y: (np.where(X > 3, np.nan, X), y), ValueError, "NaN"),
        (lambda X, y: (X, np.zeros(len(y))), ValueError, "one class"),
        (lambda X, y: (X[:-1], y), ValueError, "inconsistent"),
        (lambda X, y: (X[:0], y[:0]), ValueError, "0 sample"),
    ],
)
def test_bad_input_gets_a_sentence(sampler, spoil, error, message):
    with pytest.raises(error, match=message):
        sampler.fit_resample(*spoil(*blobs()))


@EACH
@pytest.mark.filterwarnings("ignore::equipoise.oversampling.LowQualityWarning")
def test_one_sample_class_and_constant_columns_work(sampler):
    X, y = blobs((30, 1))
    X[:, 1] = 4.0
    X_new, y_new = sampler.fit_resample(X, y)
    assert np.bincount(y_new).tolist() == [30, 30]
    assert np.isfinite(X_new).all()


def test_a_strategy_that_removes_is_refused():
    X, y = blobs((30, 10))
    with pytest.raises(ValueError, match="never removes rows"):
        AMDO(sampling_strategy={1: 5}).fit_resample(X, y)
    with pytest.raises(ValueError, match="never removes rows"):
        AMDO(sampling_strategy=0.1).fit_resample(X, y)
    with pytest.raises(ValueError, match="on_low_quality"):
        AMDO(on_low_quality="hide").fit_resample(X, y)


def test_codec_names_the_column_with_missing_values():
    with pytest.raises(ValueError, match="'a' has missing values"):
        TableCodec(pd.DataFrame({"a": [1.0, np.nan]}))
    with pytest.raises(ValueError, match="'a' twice"):
        TableCodec(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_a_change_of_category_is_as_far_as_the_median_spread_of_the_numbers():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.normal(scale=s, size=40) for name, s in (("a", 1), ("b", 5), ("c", 30))})
    table["city"] = pd.Categorical(np.where(np.arange(40) % 2, "Bern", "Oslo"))
    encoded = TableCodec(table).encode(table)
    step = np.linalg.norm(encoded[0, 3:] - encoded[1, 3:])
    assert step == pytest.approx(table["b"].std(ddof=0))
