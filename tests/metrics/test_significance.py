"""Significance: published worked examples, independent formulas, other libraries, calibration."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise.metrics import significance as sig
from equipoise.metrics.significance.posthoc import true_hypotheses

# Demšar (2006), Table 6: AUC of four variants of C4.5 on 14 data sets. It prints .975 twice for the 13th but
# ranks the two as 2 and 3, so they were ranked before rounding; hence the fifth digit there.
DEMSAR = pd.DataFrame(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.97501, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ],
    columns=["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"],
)

# García & Herrera (2008): five classifiers on 30 data sets; p-values of aligned ranks and their Shaffer
# adjustment as printed in the vignette of scmamp (Calvo & Santafé 2016); pairs in the order of the upper
# triangle of C4.5, 1-NN, naive Bayes, kernel, CN2
RAW = [1.174850e-03, 3.341698e-01, 2.843421e-10, 1.845167e-02, 2.265711e-02]
RAW += [2.197407e-03, 3.742777e-01, 9.226472e-08, 1.643229e-01, 7.793722e-05]
SHAFFER = [0.007049103, 0.6683396, 2.843421e-09, 0.0738066768, 0.09062842]
SHAFFER += [0.01318444, 0.6683396134, 5.535883e-07, 0.4929687992, 0.0004676233]

tables = st.integers(0, 10_000).map(lambda seed: np.random.default_rng(seed).normal(size=(12, 5)))


def test_demsars_worked_example():
    ranks = sig.average_ranks(DEMSAR)
    np.testing.assert_allclose(ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    result = sig.friedman(DEMSAR, correct_ties=False)
    assert result.statistic == pytest.approx(9.28, abs=0.005)
    assert result.f_statistic == pytest.approx(3.69, abs=0.005)
    assert sig.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert sig.critical_difference(4, 14, alpha=0.1) == pytest.approx(1.12, abs=0.005)


# Top-1 errors of Wu & Li, a row a data set: Tables 2 to 4 (fourteen methods) and Tables 5 and 6 (twelve)
WU_LI_LONG_TAILED = [
    [61.23, 58.50, 58.39, 61.59, 60.40, 59.40, 57.11, 62.60, 56.11, 53.13, 55.75, 54.97, 54.46, 52.08],
    [42.43, 42.43, 41.09, 44.22, 42.01, 42.71, 41.22, 44.49, 41.66, 38.27, 39.03, 40.16, 40.39, 37.33],
    [27.32, 28.66, 26.43, 29.62, 25.43, 26.45, 25.88, 26.45, 22.33, 19.46, 22.05, 18.77, 20.75, 17.92],
    [13.10, 16.83, 12.45, 13.34, 12.52, 12.68, 11.63, 12.98, 11.07, 10.56, 10.59, 10.95, 10.91, 9.83],
    [42.02, 41.77, 37.48, 38.98, 41.92, 39.15, 37.84, 43.37, 36.75, 38.47, 35.86, 35.56, 36.88, 35.02],
    [33.57, 34.16, 32.50, 32.69, 38.88, 34.13, 32.12, 39.92, 31.56, 32.06, 30.59, 29.65, 31.67, 29.31],
]
WU_LI_STANDARD = [
    [3.82, 3.69, 3.91, 3.62, 3.76, 3.78, 3.60, 3.58, 3.85, 3.37, 3.64, 2.80],
    [6.76, 6.46, 6.61, 6.68, 6.38, 6.69, 6.33, 5.98, 7.22, 5.72, 6.28, 5.14],
    [18.53, 18.48, 18.56, 18.22, 18.50, 18.43, 18.12, 17.98, 18.61, 17.61, 18.27, 16.31],
    [28.67, 28.00, 28.46, 28.28, 27.85, 28.78, 27.57, 26.35, 28.75, 25.42, 26.19, 24.86],
]


@pytest.mark.parametrize(
    ("errors", "printed", "critical"), [(WU_LI_LONG_TAILED, 37.52, 1.87), (WU_LI_STANDARD, 29.07, 2.09)]
)
def test_wu_and_lis_friedman_statistics_are_iman_and_davenports(errors, printed, critical):
    """Their section 5.4.1; the critical values printed there, 10.64 and 7.81, are those of χ²."""
    result = sig.friedman(errors, greater_is_better=False, correct_ties=False)
    assert result.f_statistic == pytest.approx(printed, abs=0.005)
    n, k = np.shape(errors)
    assert stats.f.isf(0.05, k - 1, (k - 1) * (n - 1)) == pytest.approx(critical, abs=0.005)
    assert result.ranks.argmin() == k - 1  # Meta-ENum, the last column


def test_demsars_comparison_with_a_control():
    table = sig.versus_control(DEMSAR, "C4.5")
    assert table.index.tolist() == ["C4.5+m+cf", "C4.5+m", "C4.5+cf"]
    np.testing.assert_allclose(
        table["p_value"], [0.016, 0.019, 0.607], atol=2e-3
    )  # printed from rounded ranks
    np.testing.assert_allclose(table["adjusted"], [0.047, 0.047, 0.607], atol=2e-3)


def test_shaffer_as_printed_for_five_classifiers():
    np.testing.assert_allclose(sig.shaffer(RAW, 5), SHAFFER, rtol=2e-6)


@pytest.mark.parametrize(("alpha", "first", "last"), [(0.05, 1.960, 3.164), (0.1, 1.645, 2.920)])
def test_critical_values_as_printed_by_demsar(alpha, first, last):
    """Table 5a for 2 and 10 classifiers."""
    assert sig.critical_difference(2, 100, alpha=alpha) * 10 == pytest.approx(first, abs=1e-3)
    scale = np.sqrt(10 * 11 / 600)
    assert sig.critical_difference(10, 100, alpha=alpha) / scale == pytest.approx(last, abs=1e-3)


def test_rank_p_values_as_printed_for_five_classifiers():
    ranks = np.array([2.1, 3.25, 2.2, 13 / 3, 3 + 7 / 60])
    from equipoise.metrics.significance.posthoc import _rank_p

    p = _rank_p(ranks, 30, [(0, 1), (0, 2), (0, 3), (0, 4), (3, 4)])
    np.testing.assert_allclose(p, [0.004848763, 0.8064959, 4.486991e-08, 0.012763008, 0.002880485], rtol=1e-6)


@pytest.mark.parametrize("k", range(2, 7))
def test_number_of_true_hypotheses_by_listing_all_partitions(k):
    found = set()
    for groups in itertools.product(range(k), repeat=k):
        found.add(sum(a == b for a, b in itertools.combinations(groups, 2)))
    assert true_hypotheses(k) == sorted(found)


@given(tables)
@settings(max_examples=25, deadline=None)
def test_corrections_are_ordered_and_keep_the_order(table):
    raw = sig.pairwise(table, correction="none").adjusted.to_numpy()
    shaffer = sig.pairwise(table, correction="shaffer").adjusted.to_numpy()
    holm = sig.pairwise(table, correction="holm").adjusted.to_numpy()
    assert (raw <= shaffer + 1e-15).all()
    assert (shaffer <= holm + 1e-15).all()
    upper = np.triu_indices(5, 1)
    assert (np.diff(shaffer[upper][np.argsort(raw[upper])]) >= 0).all()
    assert (holm <= np.minimum(10 * raw + np.eye(5), 1) + 1e-15).all()


@given(tables)
@settings(max_examples=10, deadline=None)
def test_agreement_with_scikit_posthocs_and_scipy(table):
    posthocs = pytest.importorskip("scikit_posthocs")
    holm = sig.pairwise(table, correction="holm").adjusted
    np.testing.assert_allclose(holm, posthocs.posthoc_siegel_friedman(table, p_adjust="holm"))
    nemenyi = sig.pairwise(table, correction="nemenyi").adjusted
    np.testing.assert_allclose(nemenyi, posthocs.posthoc_nemenyi_friedman(table))
    wilcoxon = sig.pairwise(table, test="wilcoxon", correction="none").adjusted
    assert wilcoxon.loc[1, 3] == pytest.approx(stats.wilcoxon(table[:, 1], table[:, 3]).pvalue)
    result = sig.friedman(table)
    assert result.p_value == pytest.approx(stats.friedmanchisquare(*table.T).pvalue)


def test_nemenyi_and_its_critical_difference_say_the_same():
    pytest.importorskip("scikit_posthocs")
    table = np.random.default_rng(3).normal(size=(20, 6)) + np.arange(6) * 0.4
    result = sig.pairwise(table, correction="nemenyi")
    gaps = np.abs(result.ranks.to_numpy()[:, None] - result.ranks.to_numpy())
    np.testing.assert_array_equal(result.adjusted < 0.05, gaps > sig.critical_difference(6, 20))


def test_friedman_is_calibrated_when_nothing_differs():
    rng = np.random.default_rng(0)
    p = np.array([sig.friedman(rng.normal(size=(15, 4))).f_p_value for _ in range(400)])
    assert (p < 0.05).mean() == pytest.approx(0.05, abs=3 * np.sqrt(0.05 * 0.95 / 400))


def test_shaffer_keeps_the_family_wise_error():
    rng = np.random.default_rng(1)
    wrong = [(sig.pairwise(rng.normal(size=(20, 4))).adjusted.to_numpy() < 0.05).any() for _ in range(300)]
    assert np.mean(wrong) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_direction_turns_ranks_around_and_leaves_p_alone():
    up, down = sig.pairwise(DEMSAR), sig.pairwise(1 - DEMSAR, greater_is_better=False)
    np.testing.assert_allclose(up.ranks, down.ranks)
    np.testing.assert_allclose(up.adjusted, down.adjusted)
    np.testing.assert_allclose(sig.average_ranks(DEMSAR, greater_is_better=False), 5 - up.ranks)


def test_all_equal_methods_do_not_differ():
    table = np.repeat(np.arange(6.0)[:, None], 3, axis=1)
    result = sig.friedman(table)
    assert (result.statistic, result.p_value) == (0, 1)
    for test in ("ranks", "wilcoxon"):
        assert (sig.pairwise(table, test=test).adjusted.to_numpy() == 1).all()


@given(tables, st.sampled_from([0.01, 0.05, 0.5]))
@settings(max_examples=30, deadline=None)
def test_groups_are_all_maximal_runs_without_a_difference(table, alpha):
    result = sig.pairwise(table + np.arange(5) * 0.3)
    order = list(result.ranks.sort_values(kind="stable").index)

    def same(run):
        return all(result.adjusted.loc[a, b] >= alpha for a, b in itertools.combinations(run, 2))

    runs = [tuple(order[i:j]) for i in range(5) for j in range(i + 2, 6) if same(order[i:j])]
    maximal = [run for run in runs if not any(set(run) < set(other) for other in runs)]
    assert sig.rank_groups(result, alpha=alpha) == maximal


def test_bayesian_signed_rank_is_symmetric_and_seeded():
    pytest.importorskip("baycomp")
    a, b = DEMSAR["C4.5+m"], DEMSAR["C4.5"]
    one = sig.bayesian_signed_rank(a, b, rope=0.001, n_samples=3000, random_state=0)
    assert one == sig.bayesian_signed_rank(a, b, rope=0.001, n_samples=3000, random_state=0)
    other = sig.bayesian_signed_rank(b, a, rope=0.001, n_samples=3000, random_state=0)
    assert (other.second, other.equivalent, other.first) == (one.first, one.equivalent, one.second)
    assert one.first > 0.9
    assert one.first + one.equivalent + one.second == pytest.approx(1)
    less = sig.bayesian_signed_rank(a, b, rope=0.001, n_samples=3000, random_state=0, greater_is_better=False)
    assert less.second == one.first
    assert sig.bayesian_signed_rank(a, b, rope=1, n_samples=500, random_state=0).equivalent == 1
    assert sig.bayesian_signed_rank(a, a, rope=0, n_samples=500) == sig.Posterior(0.5, 0, 0.5)


def test_correlated_t_is_students_t_with_the_corrected_variance():
    pytest.importorskip("baycomp")
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.8, 0.02, 20), rng.normal(0.78, 0.02, 20)
    got = sig.correlated_t(a, b, rope=0.005, runs=2)
    gap = a - b
    scale = np.sqrt(
        gap.var(ddof=1) * (1 / 20 + 1 / 9)
    )  # ten folds: the test fold is 1/9 of the training ones
    assert got.first == pytest.approx(stats.t.sf(0.005, 19, gap.mean(), scale))
    assert got.second == pytest.approx(stats.t.cdf(-0.005, 19, gap.mean(), scale))
    assert sig.correlated_t(a, b, rope=0).equivalent == 0


@given(tables)
@settings(max_examples=30, deadline=None)
def test_effect_sizes_by_counting_pairs(table):
    a, b = np.round(table[:, 0], 1), np.round(table[:, 1], 1)
    gaps = a[:, None] - b
    chance = ((gaps > 0) + 0.5 * (gaps == 0)).mean()
    assert sig.vargha_delaney(a, b) == pytest.approx(chance)
    assert sig.cliffs_delta(a, b) == pytest.approx(-sig.cliffs_delta(b, a)) == pytest.approx(2 * chance - 1)
    assert sig.cohens_d(a, b) == pytest.approx(stats.ttest_rel(a, b).statistic / np.sqrt(12))
    pooled = stats.ttest_ind(a, b).statistic * np.sqrt(2 / 12)
    assert sig.cohens_d(a, b, paired=False) == pytest.approx(pooled)
    assert -1 <= sig.rank_biserial(a, b) <= 1
    assert sig.rank_biserial(a, b) == pytest.approx(-sig.rank_biserial(b, a))
    assert set(sig.effect_sizes(a, b)) >= {"cohens_d", "cliffs_delta", "mean_difference"}


def test_effect_sizes_at_the_limits():
    assert sig.rank_biserial([2, 3], [1, 1]) == sig.cliffs_delta([2, 3], [1, 1]) == 1
    assert sig.cohens_d([1, 1], [1, 1]) == sig.rank_biserial([1, 1], [1, 1]) == 0
    assert sig.cohens_d([2, 2], [1, 1]) == np.inf


@given(tables)
@settings(max_examples=20, deadline=None)
def test_wins_and_losses_mirror_each_other_and_fill_the_data_sets(table):
    counts = sig.win_tie_loss(table, tolerance=0.2)
    assert (counts.sum(axis=1) == 12).all()
    assert counts.loc[(0, 3), "win"] == counts.loc[(3, 0), "loss"] == (table[:, 0] > table[:, 3] + 0.2).sum()
    assert len(sig.win_tie_loss(table, control=2)) == 4
    flipped = sig.win_tie_loss(table, tolerance=0.2, greater_is_better=False)
    np.testing.assert_array_equal(flipped["win"], counts["loss"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sig.friedman([[1, 2, np.nan]] * 3), "scores must be finite, got nan"),
        (lambda: sig.friedman([[1, 2]] * 3), r"scores must have at least 3 columns \(methods\), got 2"),
        (lambda: sig.pairwise([[1, 2]]), r"scores must have at least 2 rows \(data sets\), got 1"),
        (lambda: sig.pairwise(pd.DataFrame([[1, 2]] * 3, columns=["a", "a"])), "got twice 'a'"),
        (lambda: sig.pairwise([[1, 2]] * 3, correction="tukey"), "correction must be one of .* got 'tukey'"),
        (lambda: sig.pairwise([[1, 2]] * 3, test="t"), "test must be one of .* got 't'"),
        (
            lambda: sig.pairwise([[1, 2]] * 3, test="wilcoxon", correction="nemenyi"),
            "goes with the test 'ranks', got 'wilcoxon'",
        ),
        (lambda: sig.versus_control([[1, 2]] * 3, "x"), "control must be one of 0, 1, got 'x'"),
        (lambda: sig.shaffer([0.1, 0.2], 3), "p_values must be the 3 pairs of 3 methods, got 2"),
        (lambda: sig.holm([0.1, 1.2]), r"p_values must lie in \[0, 1\], got 1.2"),
        (lambda: sig.critical_difference(4, 14, alpha=0), r"alpha must lie in \(0, 1\), got 0"),
        (lambda: sig.bayesian_signed_rank([1, 2], [1]), "same length, got 2 and 1"),
        (lambda: sig.bayesian_signed_rank([1, 2], [1, 2], rope=-1), r"rope must lie in \[0, inf\), got -1"),
        (lambda: sig.correlated_t([1, 2, 3], [1, 2, 3], runs=2), "got 2 for 3"),
        (lambda: sig.cohens_d([1], [1]), "first must have at least 2 scores, got 1"),
        (lambda: sig.cliffs_delta([[1]], [1]), r"first must be a vector of scores, got the shape \(1, 1\)"),
        (lambda: sig.win_tie_loss([[1, 2]] * 3, control="x"), r"control must be one of \[0, 1\], got 'x'"),
    ],
)
def test_message_names_argument_and_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()
