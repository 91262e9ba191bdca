"""AutoencoderClassifier: images and tables, early stop on ACSA, checkpoints, saving, its report."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_classification

from equipoise.classifiers import AutoencoderClassifier
from equipoise.metrics import balanced_accuracy

FAST = {"epochs": 6, "batch_size": 32, "lr": 5e-3, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    return make_classification(300, 6, n_informative=4, weights=[0.85], class_sep=2, random_state=1)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    keep = (y < 3) & ~((y == 2) & (np.arange(len(y)) > 300))
    return X[keep], y[keep]


@pytest.fixture(scope="module")
def fitted(digits):
    return AutoencoderClassifier(image_shape=(8, 8), latent=8, **FAST).fit(*digits)


def test_learns_images_with_few_of_one_class(fitted, digits):
    X, y = load_digits(n_class=3, return_X_y=True)
    assert balanced_accuracy(y, fitted.predict(X)) > 0.9
    assert fitted.latents(X).shape == (len(X), 8)


def test_predict_is_balanced_and_probabilities_follow_the_data(fitted, digits):
    X, y = digits
    assert np.allclose(fitted.training_prior_, 1 / 3)
    assert np.allclose(fitted.data_prior_, np.bincount(y) / len(y))
    assert not np.allclose(fitted.predict_proba(X), fitted.predict_proba(X, prior="train"))


def test_same_seed_same_bits_and_globals_untouched(table):
    before = torch.get_rng_state()
    one, two = (AutoencoderClassifier(**FAST).fit(*table).predict_proba(table[0]) for _ in range(2))
    assert np.array_equal(one, two)
    assert torch.equal(before, torch.get_rng_state())


def test_stops_early_on_acsa(table):
    clf = AutoencoderClassifier(**{**FAST, "epochs": 40}, early_stopping=True, decode=False).fit(*table)
    assert len(clf.history_) < 40
    best = clf.history_["val_balanced_accuracy"].to_numpy().argmax()
    assert len(clf.history_) == best + 1 + 10


class Killed(Exception):
    pass


class Killing:
    """Leaves the inputs as they are, for so many batches; how many is no setting that the run depends on."""

    def __init__(self, batches):
        self._left = batches

    def __call__(self, inputs, generator):
        self._left -= 1
        if self._left < 0:
            raise Killed
        return inputs


def test_a_killed_fit_goes_on_to_the_same_bits(table, tmp_path):
    whole = AutoencoderClassifier(**FAST).fit(*table)
    with pytest.raises(Killed):
        AutoencoderClassifier(**FAST, augment=Killing(35), checkpoint=tmp_path / "run").fit(*table)
    assert list((tmp_path / "run").glob("epoch-*"))
    resumed = AutoencoderClassifier(**FAST, augment=Killing(10**6), checkpoint=tmp_path / "run").fit(*table)
    assert np.array_equal(whole.predict_proba(table[0]), resumed.predict_proba(table[0]))


def test_saved_and_loaded_decides_the_same(fitted, digits, tmp_path):
    fitted.save(tmp_path / "clf")
    again = AutoencoderClassifier.load(tmp_path / "clf")
    assert np.array_equal(again.predict_proba(digits[0]), fitted.predict_proba(digits[0]))


def test_report_measures_the_theory(fitted, digits):
    report = fitted.report(*digits)
    preserved = report.data["preservation"]
    assert min(preserved["mixes that keep the class"]) > 0.9
    for separable, side in zip(preserved["separable"], preserved["on its side"], strict=True):
        assert separable or side < 1, "what the head separates is separable"
    variance = report.data["variance"]
    assert all(np.array(variance["largest ‖α‖² (one loss)"]) <= 1)
    assert (np.array(variance["ratio, low"]) <= np.array(variance["variance ratio"])).all()
    assert (np.array(variance["bias with mixing"]) <= 0.01).all(), "cross-entropy is convex in the latent"
    assert report.data["scatter"]["ratio"] == pytest.approx(np.mean(preserved["within / between scatter"]))
    assert "Lipschitz" in report.to_markdown()
    assert "<svg" in report.pictures[0].svg
    with pytest.raises(ValueError, match="classes that the classifier"):
        fitted.report(digits[0], digits[1] + 7)


def test_report_mixes_as_the_classifier_was_trained(table):
    norms = {}
    for mixing in ("uniform", "beta", "learned"):
        clf = AutoencoderClassifier(**{**FAST, "epochs": 1}, mixing=mixing).fit(*table)
        with torch.no_grad():
            clf.network_.mixer[-1].bias[0] = 50.0  # this mixer takes the first parent alone
        report = clf.report(*table)
        norms[mixing] = report.data["variance"]["mean ‖α‖²"][0]
        told = (
            "smaller or larger than real ones" if mixing == "learned" else "smaller than real ones on average"
        )
        assert told in report.to_markdown(), (
            "Jensen's inequality is for weights that do not follow the latents"
        )
    assert norms["uniform"] == pytest.approx(2 / 3, abs=0.02)
    assert norms["beta"] == pytest.approx(0.6, abs=0.02)
    assert norms["learned"] == pytest.approx(1)


def test_natural_batches_learn_the_data_s_prior(table):
    clf = AutoencoderClassifier(**FAST, batches="natural").fit(*table)
    assert np.allclose(clf.training_prior_, clf.data_prior_)
    assert np.allclose(clf.predict_proba(table[0]), clf.predict_proba(table[0], prior="train"))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"image_shape": (5, 5)}, r"image_shape \(5, 5\) does not fit"),
        ({"mixing": "random"}, "mixing must be one of"),
        ({"n_mixed": 1}, "n_mixed must be at least 2"),
        ({"batches": "even"}, "batches must be one of"),
        ({"plan_params": {"reduction": "none"}}, "reduction must be one of"),
        ({"size": "huge"}, "size must be one of"),
        ({"augment": "flip"}, "augment must be one of"),
        ({"batch_size": 2}, "batch_size must be at least 4"),
        ({"plan_params": {"decode_share": 0}}, "decode_share must lie in"),
    ],
)
def test_bad_settings_get_a_sentence(table, params, message):
    with pytest.raises(ValueError, match=message):
        AutoencoderClassifier(**{**FAST, **params}).fit(*table)


def test_one_sample_class_and_constant_columns_work(table):
    X, y = table
    X = X.copy()
    X[:, 0] = 3.0
    y = np.where(np.arange(len(y)) == 0, 2, y)
    clf = AutoencoderClassifier(**FAST).fit(X, y)
    assert np.isfinite(clf.predict_proba(X)).all()
    with pytest.raises(ValueError, match="NaN"):
        clf.fit(np.where(X > 2.9, np.nan, X), y)


class _Mean(torch.nn.Module):
    """An encoder without a head to replace: the means of the columns."""

    def forward(self, x):
        return x.mean(dim=(1, 2))


def test_an_encoder_of_the_wrong_width_and_unequal_images_are_told():
    encoder = _Mean()
    images, y = np.random.default_rng(0).random((20, 8, 8)), np.arange(20) % 2
    with pytest.raises(ValueError, match=r"into 16 numbers, got the shape \(8,\); set latent to its width"):
        AutoencoderClassifier(module=encoder, latent=16, epochs=1).fit(images, y)
    AutoencoderClassifier(module=encoder, latent=8, epochs=1, random_state=0).fit(images, y)
    with pytest.raises(ValueError, match=r"samples of one shape, got \(8, 8\) and \(7, 8\)"):
        AutoencoderClassifier(epochs=1).fit([images[0], images[1][1:]], [0, 1])
