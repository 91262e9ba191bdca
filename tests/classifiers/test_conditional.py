"""Loss-conditional training: distributions, modulation, tuning after training, keeping, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import integrate
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import average_precision_score, get_scorer
from sklearn.model_selection import GridSearchCV

from equipoise.classifiers import ConditionalClassifier, NeuralClassifier, plot_map
from equipoise.classifiers._lambda_search import default_of
from equipoise.classifiers.regression import ConditionalRegressor, errors_by_target
from equipoise.losses import get_loss
from equipoise.losses.functional import balanced_mse
from equipoise.metrics import brier, precision_at_recall
from equipoise.networks import ConditionalNetwork, build_network
from equipoise.training import ConditionedLoss, FamilyLoss, Linear, LogUniform, Point, Uniform
from equipoise.training.distributions import draw, from_dict, to_dict

LAWS = [
    Linear(0, 0.3, 0),
    Linear(0, 3, 0.33),
    Linear(1, 4, 1 / 3),
    Linear(0, 0.2, 10),
    Uniform(-1, 2),
    LogUniform(0.1, 10),
]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_quantiles_invert_the_integral_of_the_density(law):
    assert integrate.quad(lambda x: float(law.density(x)), law.low, law.high)[0] == pytest.approx(1)
    for u in (0.0, 0.2, 0.5, 0.9, 1.0):
        x = float(law.quantile(u))
        assert integrate.quad(lambda t: float(law.density(t)), law.low, x)[0] == pytest.approx(u, abs=1e-8)
        assert law.cdf(x) == pytest.approx(u, abs=1e-9)


def test_the_sampled_law_is_what_the_authors_formula_draws():
    """a + (−h_a + √(h_a² + 2mu))/m with slope m = (h_b − h_a)/(b − a), whether or not h_a is negative."""
    u = np.linspace(0, 1, 11)
    for low, high, height in [(1, 3, 2), (1, 3, 0.75), (0, 0.2, 9)]:
        start = 2 / (high - low) - height
        slope = (height - start) / (high - low)
        drawn = low + (-start + np.sqrt(start**2 + 2 * slope * u)) / slope
        assert Linear.as_sampled(low, high, height).quantile(u) == pytest.approx(drawn)
    middle = (np.arange(5000) + 0.5) / 5000
    assert Linear.as_sampled(1, 3, 2).quantile(middle).mean() == pytest.approx(2.70, abs=0.005)


def test_linear_limits():
    u = np.linspace(0, 1, 7)
    assert Linear(0, 2, 0.5).quantile(u) == pytest.approx(Uniform(0, 2).quantile(u))
    assert Linear(0, 2, 0.5 + 1e-13).quantile(u) == pytest.approx(2 * u), "a slope near zero is the uniform"
    assert Linear(0, 1, 2).quantile(u) == pytest.approx(np.sqrt(u))
    assert Linear(0, 1, 0).cdf(0.5) == pytest.approx(0.75)


@pytest.mark.parametrize("law", [*LAWS, Point(2.0)], ids=repr)
def test_draws_follow_the_seed_and_the_law(law):
    values = draw(law, torch.Generator().manual_seed(1), 4000)
    assert np.array_equal(values, draw(law, torch.Generator().manual_seed(1), 4000))
    assert from_dict(to_dict(law)) == law
    u = (np.arange(2000) + 0.5) / 2000
    assert values.mean() == pytest.approx(law.quantile(u).mean(), abs=4 * values.std() / 60 + 1e-9)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_where_nobody_chose_lambda_is_as_likely_above_as_below(law):
    assert law.cdf(default_of(law)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Linear(1, 3, 2), r"height must lie in \[0, 1\]"),
        (lambda: Linear(0, 1, -0.1), "height"),
        (lambda: Linear(2, 1, 0), "low must be below high"),
        (lambda: LogUniform(0, 1), "low must be positive"),
    ],
)
def test_what_is_no_density_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def data(n=500, seed=0):
    return make_classification(
        n, 8, n_informative=4, weights=[0.9], class_sep=1.2, flip_y=0.02, random_state=seed
    )


def small(loss="vs", **params):
    base = NeuralClassifier(module_params={"hidden": (16,)}, epochs=12, lr=0.01)
    return ConditionalClassifier(loss, estimator=base, random_state=0, **params)


@pytest.fixture(scope="module")
def fitted():
    X, y = data()
    return small().fit(X, y)


def test_untrained_modulation_is_the_plain_network():
    network = build_network("mlp", (4,), 3)
    conditional, x = ConditionalNetwork(network, [0.1, 2.0]), torch.randn(5, 4)
    assert torch.equal(conditional(x), network(x))
    assert torch.equal(conditional((x, torch.tensor([9.0, 9.0]))), network(x))


def test_one_lambda_equals_the_same_lambda_for_each_row():
    logits, target = torch.randn(6, 2), torch.tensor([0, 1, 0, 0, 1, 0])
    for name, params in (("vs", {"gamma": 0.2, "tau": 1.5}), ("focal", {"phi": 1.3, "alpha": 0.3})):
        plain = get_loss(name, [9, 1], **params)(logits, target)
        rowwise = ConditionedLoss(FamilyLoss(name, (9.0, 1.0)), **params)
        rowwise.set_rows(params, {key: torch.full((6,), value) for key, value in params.items()})
        assert torch.allclose(rowwise(logits, target), plain)


def test_a_point_mass_is_ordinary_training():
    """With a fixed λ and no modulation nothing is left but the plain loss: the same bits."""
    X, y = data()
    base = NeuralClassifier(module_params={"hidden": (8,)}, epochs=3)
    point = ConditionalClassifier(
        "vs", distribution={"gamma": 0.1, "tau": 1.0}, estimator=base, film=False, random_state=3
    ).fit(X, y)
    plain = NeuralClassifier(
        module_params={"hidden": (8,)},
        epochs=3,
        loss="vs",
        loss_params={"gamma": 0.1, "tau": 1.0},
        random_state=3,
    ).fit(X, y)
    assert np.allclose(point.predict_proba(X), plain.predict_proba(X), atol=1e-6)


def test_lambda_matters_and_tau_shifts_towards_the_minority(fitted):
    X, _ = data(seed=1)
    raw = [
        fitted.predict_proba(X, {"gamma": 0.1, "tau": tau}, prior="train")[:, 1].mean() for tau in (0, 1, 2)
    ]
    assert raw[0] < raw[1] < raw[2]


def test_the_ledger_brings_lambdas_to_one_prior(fitted):
    X, y = data(2000, seed=0)
    for tau in (0.0, 1.0):
        proba = fitted.predict_proba(X, {"gamma": 0.0, "tau": tau})
        assert proba[:, 1].mean() == pytest.approx(y.mean(), abs=0.08)
    assert fitted.training_prior({"tau": 1.0}) == pytest.approx([0.5, 0.5])


def test_tuning_finds_the_best_of_its_table_in_one_backbone_pass(fitted, monkeypatch):
    X, y = data(seed=2)
    passes = []
    backbone = ConditionalClassifier.backbone
    monkeypatch.setattr(
        ConditionalClassifier, "backbone", lambda self, X: passes.append(1) or backbone(self, X)
    )
    grid = {"gamma": [0, 0.1, 0.2, 0.3], "tau": [0, 1, 2, 3]}
    found = fitted.tune(X, y, "average_precision", params=grid)
    assert len(passes) == 1
    assert len(found.table) == 16
    assert found.value == found.table["value"].max()
    again = fitted.predict_proba(X, found.params)[:, 1]
    assert average_precision_score(y, again) == pytest.approx(found.value)


def test_each_metric_gets_its_own_best(fitted):
    X, y = data(seed=2)
    found = fitted.tune(X, y, "brier")
    assert found.value == found.table["value"].min() == pytest.approx(brier(y, fitted.predict_proba(X)))
    fitted.tune(X, y, recall=0.9)
    assert (fitted.predict(X)[y == 1] == 1).mean() > 0.9, "a promise for new rows needs more on these"
    cost = fitted.tune(X, y, "cost", cost_matrix=[[0, 1], [20, 0]])
    paid = np.array([[0, 1], [20, 0]])[y, fitted.predict(X)].mean()
    assert paid == pytest.approx(cost.value)
    assert fitted.tune(X, y, "f1").value <= 1


def test_continuous_search_is_no_worse_than_the_grid(fitted):
    X, y = data(seed=2)
    grid = fitted.tune(X, y, "log_loss").value
    assert fitted.tune(X, y, "log_loss", search="continuous").value <= grid + 1e-3


def test_scorers_of_scikit_learn_work(fitted):
    X, y = data(seed=2)
    found = fitted.tune(X, y, get_scorer("roc_auc"))
    assert found.value == pytest.approx(get_scorer("roc_auc")(fitted, X, y))


def test_frontier_is_above_every_lambda(fitted):
    X, y = data(seed=2)
    front = fitted.frontier(X, y, recalls=[0.5, 0.9, 0.99])
    scores = fitted.predict_proba(X, {"gamma": 0.15, "tau": 1.5})[:, 1]
    for row in front.itertuples():
        assert row.precision >= precision_at_recall(y, scores, min_recall=row.recall) - 1e-9
    assert front["precision"].is_monotonic_decreasing


@pytest.mark.parametrize(
    ("loss", "distribution", "options"),
    [
        ("focal", {"alpha": Linear(0.25, 0.75, 2), "phi": Linear(1, 3, 0.5)}, {}),
        ("vs", {"tau": Linear(0, 3, 0.33)}, {"loss_params": {"gamma": 0.1}}),
        ("vs", {"gamma": Linear(0, 0.3, 0)}, {"loss_params": {"tau": 1.0}}),
        ("vs", None, {"step": "sam", "step_params": {"rho": 0.05}}),
        ("vs", None, {"per_sample": True}),
        ("vs", None, {"film": False}),
        ("lq", {"q": Uniform(0.1, 0.7)}, {}),
        ("class_balanced", {"beta": Uniform(0.9, 0.999)}, {}),
    ],
)
def test_any_loss_with_numbers_can_be_conditioned(loss, distribution, options):
    X, y = data(200)
    clf = small(loss, distribution=distribution, **options).fit(X, y)
    assert np.isfinite(clf.predict_proba(X)).all()
    assert average_precision_score(y, clf.predict_proba(X)[:, 1]) > 3 * y.mean()


def test_many_classes():
    X, y = load_iris(return_X_y=True)
    keep = np.r_[0:50, 50:70, 100:110]
    clf = small().fit(X[keep], y[keep])
    assert clf.tune(X, y, "balanced_accuracy").value > 0.85
    matrix = 1 - np.eye(3)
    assert clf.tune(X, y, "cost", cost_matrix=matrix).value < 0.2
    with pytest.raises(ValueError, match="two classes"):
        clf.frontier(X, y)


def test_images():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [60, 12])
    X = rng.normal(size=(72, 12, 12)) + y[:, None, None]
    base = NeuralClassifier(epochs=3)
    clf = ConditionalClassifier(estimator=base, random_state=0).fit(X, y)
    assert clf.predict_proba(X, {"tau": 2.0}).shape == (72, 2)


def test_saved_and_loaded_answers_alike(fitted, tmp_path):
    X, y = data(seed=3)
    fitted.tune(X, y, "precision_at_recall", recall=0.8)
    fitted.save(tmp_path / "model")
    back = ConditionalClassifier.load(tmp_path / "model")
    assert np.array_equal(back.predict_proba(X), fitted.predict_proba(X))
    assert np.array_equal(back.predict_proba(X, {"tau": 2.5}), fitted.predict_proba(X, {"tau": 2.5}))
    assert np.array_equal(back.predict(X), fitted.predict(X))
    assert not list((tmp_path / "model").rglob("*.pkl"))


def test_grid_search_over_distributions():
    X, y = data(240)
    grid = {"distribution": [{"tau": Linear(0, 3, 0)}, {"tau": Linear(1, 4, 1 / 3)}]}
    search = GridSearchCV(small(loss="la"), grid, cv=2, scoring="average_precision").fit(X, y)
    assert search.best_estimator_.distribution_["tau"] == search.best_params_["distribution"]["tau"]
    first, second = search.cv_results_["mean_test_score"]
    assert first != second  # each candidate was trained over its own distribution


def test_outside_the_range_warns_and_still_answers(fitted):
    X, _ = data(20)
    with pytest.warns(UserWarning, match=r"tau = 9 lies outside the trained range \[0, 3\]"):
        assert fitted.predict_proba(X, {"tau": 9}).shape == (20, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda clf, X, y: clf.predict_proba(X, {"rho": 1}), "unknown rho; there are gamma, tau"),
        (lambda clf, X, y: clf.tune(X, y, "f9"), "metric must be one of"),
        (lambda clf, X, y: clf.tune(X, y, "cost"), "needs cost_matrix"),
        (
            lambda clf, X, y: clf.tune(X, y, "recall_at_precision", precision=1.01),
            "precision must lie between 0 and 1",
        ),
        (lambda clf, X, y: clf.tune(X, y, prior=1.2), "prior must lie between 0 and 1"),
        (lambda clf, X, y: clf.tune(X, y, prior=[0.5, 0.3, 0.2]), "prior must be 2 shares, got 3"),
        (lambda clf, X, y: clf.tune(X, y, recall=0.9, alerts=0.1), "one wish, got recall and alerts"),
        (lambda clf, X, y: clf.tune(X, y, pos_label=7), "pos_label must be one of"),
        (lambda clf, X, y: clf.tune(X, y + 1), "the class 2, which was not trained on"),
        (lambda clf, X, y: clf.tune(X[y == 0], y[y == 0], "average_precision"), "class"),
        (lambda clf, X, y: clf.tune(X, y, search="luck"), "search must be one of"),
    ],
)
def test_bad_input_gets_a_sentence(fitted, call, message):
    X, y = data(seed=2)
    with pytest.raises(ValueError, match=message):
        call(fitted, X, y)


def test_a_precision_that_no_threshold_reaches_is_said(fitted):
    X, _ = data(seed=4)
    at = {"gamma": 0.1, "tau": 1.0}
    scores = fitted.predict_proba(X, at)[:, 1]
    wrong = (scores < np.quantile(scores, 0.1)).astype(int)
    with pytest.raises(ValueError, match="cannot be promised from 50 held-out positives"):
        fitted.tune(X, wrong, "recall_at_precision", precision=0.999, params=[at])


def test_losses_with_memory_are_refused():
    X, y = data(60)
    with pytest.raises(ValueError, match="cannot be conditioned"):
        small("isda", distribution={"strength": Uniform(0.1, 1)}).fit(X, y)
    with pytest.raises(ValueError, match="no such hyper-parameters"):
        small("vs", distribution={"rho": Uniform(1, 2)}).fit(X, y)
    with pytest.raises(TypeError, match="distribution must be a dict"):
        small("vs", distribution=Uniform(1, 2)).fit(X, y)


def skewed(n=800, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.exponential(size=n)
    return np.c_[y + rng.normal(size=n), rng.normal(size=n)], y


def test_balanced_mse_limits():
    rng = torch.Generator().manual_seed(0)
    prediction, target = torch.randn(9, generator=rng), torch.randn(9, generator=rng)
    assert torch.allclose(balanced_mse(prediction, target, tau=0.0), (prediction - target).square().mean())
    # As a classification of each answer among the batch's targets, times 2σ² (Ren et al. 2022, Eq 10).
    sigma = 0.7
    logits = -(prediction[:, None] - target[None]).square() / (2 * sigma**2)
    entropy = torch.nn.functional.cross_entropy(logits, torch.arange(9)) - np.log(9)
    assert torch.allclose(balanced_mse(prediction, target, sigma=sigma), 2 * sigma**2 * entropy)


def test_more_balancing_helps_the_rare_targets():
    X, y = skewed()
    reg = ConditionalRegressor(epochs=30, lr=0.01, random_state=0).fit(X, y)
    X_new, y_new = skewed(seed=1)
    errors = [errors_by_target(y_new, reg.predict(X_new, tau), bins=4) for tau in (0.0, 1.0)]
    assert errors[1][2] < errors[0][2], "the rare large targets"
    assert errors[1][0] > errors[0][0], "at the frequent ones' expense"
    assert reg.tune(X_new, y_new, "mse").params["tau"] < reg.tune(X_new, y_new, "balanced_mae").params["tau"]
    with pytest.raises(ValueError, match="metric must be one of"):
        reg.tune(X_new, y_new, "r3")


def test_a_survey_says_what_each_lambda_gives():
    X, y = make_classification(300, weights=[0.8], class_sep=1.5, random_state=0)
    base = NeuralClassifier(epochs=3, lr=0.01)
    clf = ConditionalClassifier("vs", estimator=base, random_state=0).fit(X[:200], y[:200])
    grid = {"gamma": [0.0, 0.2], "tau": [0.0, 1.0, 2.0]}
    table = clf.survey(X[200:], y[200:], ["auc", "brier", "f1"], params=grid)
    assert list(table) == ["gamma", "tau", "auc", "brier", "f1"]
    assert len(table) == 6
    tuned = clf.tune(X[200:], y[200:], "brier", params=grid)
    assert table["brier"].min() == pytest.approx(tuned.value)
    told = [{"gamma": 0.0, "tau": 1.0}, {"gamma": 0.2, "tau": 2.0}]
    many = clf.predict_proba(X[200:], told)
    assert many.shape == (2, 100, 2)
    np.testing.assert_array_equal(many[1], clf.predict_proba(X[200:], told[1]))
    figure = plot_map(table, "auc", rows="gamma", columns="tau")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["0", "0.2"]


def test_a_regressor_in_half_precision_answers_nearly_the_same():
    rng = np.random.default_rng(0)
    y = rng.exponential(size=200)
    X = np.c_[y + 0.3 * rng.normal(size=200), rng.normal(size=200)]
    whole, half = (
        ConditionalRegressor(epochs=10, lr=0.01, precision=precision, random_state=0)
        .fit(X, y)
        .predict(X, tau=0.5)
        for precision in ("32-true", "bf16-mixed")
    )
    assert half.dtype == whole.dtype
    assert 0 < np.abs(half - whole).max() < 0.2 * y.std()
