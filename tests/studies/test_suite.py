"""The generic study: fair splits, equal tuning, parameters as axes, methods that fit every learner."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.advisor.treatments import Context, all_learners, all_treatments
from equipoise.studies import data, suite
from equipoise.studies.locate import study_module
from equipoise.studies.toml import spec_from_toml

TABULAR = study_module("tabular").SPEC


def cell(**more):
    settings = {
        "dataset": "breast_cancer",
        "method": "plain",
        "learner": "logistic",
        "seed": 0,
        "fold": 0,
        "folds": 3,
        "metrics": ["balanced_accuracy", "average_precision", "log_loss"],
        "trials": 0,
        "inner_folds": 2,
        "tune_metric": "balanced_accuracy",
        "max_rows": None,
    }
    return {**settings, **more}


@pytest.mark.filterwarnings("ignore:synthetic rows of low quality")  # a page shows it; here it is no news
@pytest.mark.parametrize("name", sorted(all_treatments()))
def test_every_method_gives_sane_scores_and_the_same_bits_twice(name):
    reason = all_treatments()[name].applies(Context(seed=0))
    if reason:
        pytest.skip(reason)
    learner = "logistic" if all_treatments()[name].takes_learner else suite.OWN
    few = {"parameters": {"epochs": 8, "lr": 0.01}} if "epochs" in all_treatments()[name].defaults else {}
    settings = cell(method=name, learner=learner, max_rows=200, **few)
    first, second = (suite.run_cell(**settings) for _ in range(2))
    measured = {key for key in first if key.endswith("_seconds")}
    assert {key: first[key] for key in first if key not in measured} == {
        key: second[key] for key in second if key not in measured
    }
    assert first["average_precision"] > 0.3  # a tenth of the rows are positive
    assert np.isfinite(first["log_loss"])


def test_corrected_smote_decides_as_smote_does_and_gives_better_probabilities():
    plain, corrected = (suite.run_cell(**cell(method=name)) for name in ("smote", "smote-corrected"))
    assert corrected["balanced_accuracy"] == plain["balanced_accuracy"]
    assert corrected["average_precision"] == pytest.approx(plain["average_precision"])  # ranks are kept
    assert corrected["log_loss"] < plain["log_loss"]


def test_the_conditional_method_chooses_its_operating_point_on_rows_it_was_not_fitted_on(monkeypatch):
    from equipoise.classifiers import ConditionalClassifier

    rows = {}
    for name in ("fit", "tune"):
        real = getattr(ConditionalClassifier, name)

        def recorded(self, X, *rest, name=name, real=real):
            rows[name] = {row.tobytes() for row in np.asarray(X)}
            return real(self, X, *rest)

        monkeypatch.setattr(ConditionalClassifier, name, recorded)
    suite.run_cell(**cell(method="conditional", learner=suite.OWN, parameters={"epochs": 2}))
    assert rows["fit"]
    assert rows["tune"]
    assert not rows["fit"] & rows["tune"]


def test_a_method_that_cannot_be_fitted_answers_with_the_class_shares():
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import TunedThresholdClassifierCV

    from equipoise.advisor.treatments._class_share_fallback import ClassShareFallback

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.repeat([0, 1], [24, 6])  # too few rows for a leaf of 20
    model = ClassShareFallback(TunedThresholdClassifierCV(HistGradientBoostingClassifier(), cv=2))
    with pytest.warns(UserWarning, match=r"answers with the class shares: .* constant predictions"):
        model.fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), [[0.8, 0.2]] * 30)
    assert (model.predict(X) == 0).all()


def test_the_wide_study_leaves_out_what_nested_folds_cannot_cut():
    SPEC = study_module("tabular-all").SPEC

    names = {chosen["dataset"] for chosen in SPEC.cells()}
    assert "breast_cancer" in names
    assert not names & {"digits", "wine", "keel-zoo-3"}
    for name in names - {"breast_cancer"}:  # tables that happen to be on this machine
        assert min(data.load(name).class_counts.values()) >= 20


@pytest.mark.parametrize("learner", sorted(all_learners()))
def test_every_learner_works_on_several_classes(learner):
    found = suite.run_cell(**cell(dataset="wine", learner=learner, metrics=["balanced_accuracy"]))
    assert found["balanced_accuracy"] > 0.7


def test_every_method_gets_the_same_number_of_trials_and_the_defaults_first():
    for name in ("plain", "smote"):
        found = suite.run_cell(**cell(method=name, trials=3, max_rows=200))
        assert len(found["trial_scores"]) == 3
        assert max(found["trial_scores"]) >= found["trial_scores"][0]
    for chosen in TABULAR.grid(dataset=["breast_cancer"], folds=1):  # nobody there has nothing to tune
        learner = all_learners().get(chosen["learner"])
        assert all_treatments()[chosen["method"]].space or learner.space


def test_tuning_never_sees_the_test_part(monkeypatch):
    X, y = suite._rows("breast_cancer", None, 0)
    train, test = suite._splits(y, 3, suite.derive_seed(0, "outer", "breast_cancer"))[0]
    seen = []
    real = suite._tune
    monkeypatch.setattr(suite, "_tune", lambda build, X, y, *rest: seen.append(X) or real(build, X, y, *rest))
    suite.run_cell(**cell(trials=1))
    np.testing.assert_array_equal(seen[0], X[train])
    assert not set(train) & set(test)


def test_all_treatments_see_the_same_splits_and_seeds_deal_them_anew():
    _, y = suite._rows("breast_cancer", None, 0)
    seeds = [suite.derive_seed(seed, "outer", "breast_cancer") for seed in (0, 1)]
    first, second = (suite._splits(y, 3, seed)[0][1] for seed in seeds)
    assert set(first) != set(second)
    assert abs(y[first].mean() - y.mean()) < 0.01  # stratified


def test_thinning_keeps_the_class_shares():
    X, y = suite._rows("breast_cancer", 100, 0)
    whole = data.load("breast_cancer").y
    assert len(X) == 100
    assert abs(y.mean() - whole.mean()) < 0.01


def test_parameters_are_axes_for_those_who_take_them(tmp_path):
    (tmp_path / "s.toml").write_text(
        """
        methods = ["plain", "smote", "balanced-forest"]
        datasets = ["breast_cancer"]
        metrics = ["balanced_accuracy"]
        folds = 2
        [parameters]
        k_neighbors = [1, 3]
        [paper]
        seeds = [0, 1]
        """
    )
    spec = spec_from_toml(tmp_path / "s.toml")
    assert spec.name == "s"
    cells = spec.cells()
    given = [c.get("parameters") for c in cells if c["fold"] == 0]
    assert given == [None, {"k_neighbors": 1}, {"k_neighbors": 3}, None]
    assert len(spec.cells("paper")) == 2 * len(cells)
    found = suite.run_cell(
        **{**cell(method="smote", trials=2, max_rows=200), "parameters": {"k_neighbors": 1}}
    )
    assert found["chosen"]["k_neighbors"] == 1


def test_parameters_that_cannot_be_fitted_are_not_chosen(monkeypatch):
    real = suite._inner_score
    calls = []

    def first_fails(*arguments):
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("worse than random")
        return real(*arguments)

    monkeypatch.setattr(suite, "_inner_score", first_fails)
    found = suite.run_cell(**cell(trials=2, max_rows=200))
    assert np.isnan(found["trial_scores"][0])
    assert found["chosen"]["C"] != 1.0  # the defaults were the ones that failed
    monkeypatch.setattr(suite, "_inner_score", lambda *a: (_ for _ in ()).throw(ValueError("never")))
    with pytest.raises(ValueError, match="none of 2 trials could be fitted"):
        suite.run_cell(**cell(trials=2, max_rows=200))


def test_a_tuned_threshold_changes_the_labels_and_not_the_ranking():
    plain = suite.run_cell(**cell())
    tuned = suite.run_cell(**cell(method="threshold"))
    assert tuned["average_precision"] == pytest.approx(plain["average_precision"])
    assert tuned["balanced_accuracy"] != plain["balanced_accuracy"]
