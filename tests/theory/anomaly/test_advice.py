"""The inverse use: one answer from data, true on the model's own data, and a no where it should be one."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from imblearn.over_sampling import RandomOverSampler
from imblearn.under_sampling import RandomUnderSampler
from scipy.special import ndtr, ndtri
from sklearn.linear_model import LogisticRegression

from equipoise._core.solution import ConvergenceWarning
from equipoise.theory.anomaly import (
    _estimates,
    advise_training,
    area_under_curve,
    classification_metrics,
    optimal_from_pool,
    sample_training_set,
    solve_saddle,
    tail_or_group,
    theory_sampling_strategy,
)


def anomalies(n=500, dim=20, bias=-1.2, seed=0):
    """Data of the model itself, turned so that no axis is the teacher's."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim))
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    return X @ turn, (X[:, 0] + bias > 0).astype(int)


def groups(n=800, dim=10, shift=3.0, share=0.15, seed=0):
    """Two separate Gaussians."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    X = rng.standard_normal((n, dim))
    X[:, 0] += shift * y
    return X, y


@pytest.fixture(scope="module")
def advice():
    return advise_training(*anomalies(), draws=10, random_state=0)


def test_the_gains_are_over_the_rows_as_they_are(advice):
    """The gain is taken at the pool's own share and load, and nowhere else."""
    y = anomalies()[1]
    setting = (len(y) / advice.plan.dimensions, advice.temperature, float(ndtri(y.mean())))
    own = float(solve_saddle(*setting, y.mean()).metrics().balanced_accuracy)
    fresh = float(solve_saddle(*setting, 0.5).metrics().balanced_accuracy)
    assert advice.plan.as_is == pytest.approx(own, abs=1e-9)
    assert advice.plan.fresh.gain_at_half == pytest.approx(fresh - own, abs=1e-9)
    assert advice.plan.fresh.gain == pytest.approx(advice.plan.fresh.value - own, abs=1e-9)


def test_advice_is_the_plan_for_its_own_estimates(advice):
    y = anomalies()[1]
    plan = optimal_from_pool(
        int(y.sum()), int((y == 0).sum()), len(y) / advice.samples_per_dim, advice.temperature
    )
    assert advice.plan.summary() == plan.summary()
    assert advice.verdict == "usable"
    assert advice.reasons == ()
    assert advice.population is not None
    assert advice.population.verdict == "tail"
    assert plan.summary() in advice.summary()
    for way in ("subset", "weights", "fresh"):
        low, high = advice.half_interval[way]
        assert low <= high
        assert low - 0.03 < getattr(advice.plan, way).gain_at_half < high + 0.03


def test_the_folds_decide_little():
    """With two dozen positives one division into folds moved the gain of weights by 0.04 (standard deviation)."""
    X, y = anomalies(n=400, bias=-1.5)
    gains = [_estimates.measure(X, y == 1, 0, np.random.default_rng(k)).weights_gain[0] for k in range(5)]
    assert np.std(gains, ddof=1) < 0.015


def test_whether_it_is_a_tail_has_one_answer(advice):
    assert advice.population.evidence == tail_or_group(*anomalies(), random_state=0).evidence


def classifier_gains(b0, dim, rows, seed):
    """What logistic regression really gains: by leaving rows out, by weights, and by fresh rows at equal shares."""
    rng = np.random.default_rng(seed)
    own = sample_training_set(dim, rows, b0, float(ndtr(b0)), rng)
    fresh = sample_training_set(dim, rows, b0, 0.5, rng)
    few = np.flatnonzero(own.labels > 0)
    half = np.concatenate([few, rng.permutation(np.flatnonzero(own.labels < 0))[: len(few)]])

    def score(data, kept=slice(None), weight=None):
        model = LogisticRegression(C=100, class_weight=weight, max_iter=3000)
        model.fit(data.inputs[kept], data.labels[kept])
        norm = np.linalg.norm(model.coef_)
        return float(
            classification_metrics(model.coef_[0, 0] / norm, model.intercept_[0] / norm, b0).balanced_accuracy
        )

    base = score(own)
    return own, [score(own, half) - base, score(own, weight="balanced") - base, score(fresh) - base]


@pytest.mark.parametrize(
    ("b0", "dim", "rows"), [(-1.2816, 50, 500), pytest.param(-0.84, 50, 200, marks=pytest.mark.slow)]
)
def test_advice_is_true_for_a_classifier_on_the_models_own_data(b0, dim, rows):
    """Over draws of the data, the expected gains agree with logistic regression's within their intervals."""
    real, said, spread = [], [], []
    for seed in range(4):
        data, gains = classifier_gains(b0, dim, rows, seed)
        advice = advise_training(data.inputs, data.labels, draws=10, random_state=seed)
        real.append(gains)
        ways = ("subset", "weights", "fresh")
        said.append([getattr(advice.plan, way).gain_at_half for way in ways])
        spread.append([np.subtract(*advice.half_interval[way][::-1]) / 2 for way in ways])
    error = np.sqrt(np.var(real, axis=0, ddof=1) / 4 + np.mean(spread, axis=0) ** 2 / 4)
    difference = np.abs(np.mean(said, axis=0) - np.mean(real, axis=0))
    assert (difference <= 2 * error + 0.01).all()
    assert np.mean(said, axis=0)[0] < 0  # leaving rows out is no gain, as the fixed-load formula promised
    assert np.mean(real, axis=0)[0] < 0


def test_separate_groups_are_called_worthless():
    advice = advise_training(*groups(), draws=10, random_state=0)
    assert advice.verdict == "worthless"
    assert any("group of its own" in reason for reason in advice.reasons)


def test_no_signal_is_called_worthless():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 8)), (np.arange(200) < 40).astype(int)
    advice = advise_training(X, y, draws=10, random_state=0)
    assert advice.verdict == "worthless"
    assert any("no signal" in reason for reason in advice.reasons)


def test_few_rare_rows_are_said_to_be_few():
    advice = advise_training(*anomalies(n=150, bias=-1.5), draws=10, random_state=0)
    assert advice.population is None
    assert "fewer than 20 rare rows" in advice.summary()


def test_the_model_is_recovered_from_what_it_does_itself():
    """A load and a noise are found again from the ROC area and the weights' gain that they imply."""
    rho, b0, weights = 0.15, -1.1, {"positive_weight": 0.5 / 0.15, "negative_weight": 0.5 / 0.85}
    weighted, plain = solve_saddle(12.0, 0.4, b0, rho, **weights), solve_saddle(12.0, 0.4, b0, rho)
    gain = weighted.metrics().balanced_accuracy - plain.metrics().balanced_accuracy
    area = area_under_curve(weighted.overlap, b0)
    load, noise = _estimates.fit_model(_estimates.Evidence(np.array([area]), np.array([gain])), b0, rho)
    assert load[0] == pytest.approx(12.0, rel=0.05)
    assert noise[0] == pytest.approx(0.4, abs=0.02)


def test_rank_area_counts_ties_half():
    assert _estimates.rank_area(np.array([1.0, 2.0]), np.array([1.0, 0.0])) == pytest.approx(0.875)


def test_a_classifier_that_stops_too_early_says_so(monkeypatch):
    real = _estimates.minimize
    monkeypatch.setattr(_estimates, "minimize", lambda *a, **k: real(*a, **{**k, "options": {"maxiter": 1}}))
    X, y = anomalies(n=60, dim=4)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        _estimates.held_out_scores(X, y == 1, np.random.default_rng(0))


@pytest.mark.parametrize(("sampler", "kind"), [(RandomOverSampler, "over"), (RandomUnderSampler, "under")])
def test_as_a_sampling_strategy(sampler, kind):
    X, y = anomalies(n=400, dim=10, bias=-1.0, seed=3)
    strategy = theory_sampling_strategy(X, kind=f"{kind}-sampling")
    _, resampled = sampler(sampling_strategy=strategy, random_state=0).fit_resample(X, y)
    plan = strategy.advice.plan
    choice = plan.weights if kind == "over" else plan.subset
    assert resampled.mean() == pytest.approx(choice.train_fraction, abs=0.01)
    kept = 0 if kind == "over" else 1
    assert (resampled == kept).sum() == (y == kept).sum()


def test_needs_no_scikit_learn():
    code = (
        "import sys, numpy as np; from equipoise.theory.anomaly import theory_sampling_strategy;"
        "X = np.random.default_rng(0).standard_normal((60, 2));"
        "theory_sampling_strategy(X)(X[:, 0] > 1);"
        "sys.exit(bool({'sklearn', 'pandas', 'torch', 'matplotlib', 'imblearn'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [0] * 20}, "y must have exactly two classes, got 1"),
        ({"y": [0] * 19 + [1]}, "at least 5 samples of each class, got 1"),
        ({"X": np.full((20, 2), np.nan)}, "X must be finite, got nan"),
        ({"X": np.zeros(20)}, "X must have two dimensions, got 1"),
        ({"y": [0, 1]}, "X and y must have the same length, got 20 and 2"),
        ({"objective": "x"}, "objective must be one of"),
        ({"test_fraction": 0.0}, "test_fraction must lie in"),
        ({"draws": 1}, "draws must be at least 10, got 1"),
        ({"pool": (3, 100)}, "pool must be at least 10, got 3"),
    ],
)
def test_bad_input(arguments, message):
    good = {"X": np.zeros((20, 2)), "y": [0, 1] * 10}
    with pytest.raises(ValueError, match=message):
        advise_training(**(good | arguments))


def test_strategy_refuses_three_classes():
    with pytest.raises(ValueError, match="two classes, got 3"):
        theory_sampling_strategy(np.zeros((3, 1)))([0, 1, 2])
