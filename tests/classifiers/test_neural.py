"""NeuralClassifier: labels of every kind, tables and images, the prior ledger, saving."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_classification
from torch import nn

from equipoise.classifiers import NeuralClassifier
from equipoise.training import EarlyStopping

FAST = {"module_params": {"hidden": (16,)}, "epochs": 12, "lr": 0.02, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    return make_classification(300, 6, n_informative=4, weights=[0.8], class_sep=1.5, random_state=1)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array([False, True]),
        np.array([-3, 40]),
        np.array(["a", "b"], dtype=object),
    ],
)
def test_labels_of_any_kind(table, labels):
    X, y = table
    clf = NeuralClassifier(**FAST).fit(X, labels[y])
    assert list(clf.classes_) == sorted(labels.tolist())
    assert clf.score(X, labels[y]) > 0.85
    assert set(clf.predict(X).tolist()) <= set(labels.tolist())


@pytest.mark.parametrize("layout", ["gray", "first", "last", "flat"])
def test_images_in_every_layout(layout):
    X, y = load_digits(return_X_y=True)
    X, y = X[y < 3], y[y < 3]
    images = X.reshape(-1, 8, 8)
    shaped = {"gray": images, "first": images[:, None], "last": images[..., None], "flat": X}[layout]
    params = {"image_shape": (8, 8)} if layout == "flat" else {}
    clf = NeuralClassifier(
        "convnet", module_params={"widths": (8, 16)}, epochs=8, lr=0.02, random_state=0, **params
    )
    assert clf.fit(shaped, y).score(shaped, y) > 0.95


def test_same_seed_same_bits_and_globals_untouched(table):
    X, y = table
    before = torch.get_rng_state()
    params = {**FAST, "module_params": {"hidden": (16,), "dropout": 0.5}}
    one, two = (NeuralClassifier(**params).fit(X, y).predict_proba(X) for _ in range(2))
    assert np.array_equal(one, two)
    assert torch.equal(before, torch.get_rng_state())


def test_save_and_load(table, tmp_path):
    X, y = table
    names = np.array(["common", "rare"])
    clf = NeuralClassifier(sampler="balanced", early_stopping=True, **FAST).fit(X, names[y])
    clf.save(tmp_path / "model")
    again = NeuralClassifier.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert np.array_equal(again.predict(X), clf.predict(X))
    assert again.history_.equals(clf.history_)
    assert {file.suffix for file in (tmp_path / "model").iterdir()} == {".safetensors", ".json"}
    assert again.get_params() == clf.get_params()


def _factory(shape, n_classes, width=8):
    return nn.Sequential(nn.Linear(shape[0], width), nn.ReLU(), nn.Linear(width, n_classes))


def test_a_factory_is_asked_for_again(table, tmp_path):
    X, y = table
    clf = NeuralClassifier(_factory, epochs=2, random_state=0).fit(X, y)
    clf.save(tmp_path / "model")
    with pytest.raises(ValueError, match="pass it to load as module"):
        NeuralClassifier.load(tmp_path / "model")
    again = NeuralClassifier.load(tmp_path / "model", module=_factory)
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))


def test_the_decision_is_the_trained_one_unless_asked(table):
    X, y = table
    clf = NeuralClassifier(sampler="balanced", **FAST).fit(X, y)
    assert np.array_equal(clf.predict(X), clf.predict_proba(X, prior="train").argmax(axis=1))
    clf.set_params(decision_prior="data")
    assert np.array_equal(clf.predict(X), clf.predict_proba(X).argmax(axis=1))
    assert np.array_equal(clf.decision_function(X) > 0, clf.predict(X) == 1)


def test_weight_zero_is_no_row(table):
    X, y = table
    weight = np.ones(len(y))
    weight[:50] = 0
    left_out = NeuralClassifier(**FAST).fit(X[50:], y[50:])
    assert np.allclose(NeuralClassifier(**FAST).fit(X, y, weight).predict_proba(X), left_out.predict_proba(X))


def test_early_stopping_keeps_the_best(table):
    X, y = table
    clf = NeuralClassifier(early_stopping=EarlyStopping(patience=2), **{**FAST, "epochs": 60, "lr": 0.1}).fit(
        X, y
    )
    assert len(clf.history_) < 60
    assert clf.history_["val_loss"].idxmin() == len(clf.history_) - 3


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "no-such"}, "no-such"),
        ({"module": "alexnet"}, "module must be one of .* got 'alexnet'"),
        ({"step": "leap"}, "step must be one of .* got 'leap'"),
        ({"optimizer": "magic"}, "optimizer must be one of .* got 'magic'"),
        ({"sampler": "odd"}, "sampler must be one of .* got 'odd'"),
        ({"sampler": [0.5, 0.2]}, "sampler must be a vector that sums to 1"),
        ({"sampler": [0.2, 0.3, 0.5]}, "sampler must give a share for each of 2 classes, got 3"),
        ({"epochs": -1}, "epochs must be at least 0, got -1"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"lr": 0}, "lr must be positive, got 0"),
        ({"image_shape": (2, 2)}, r"image_shape \(2, 2\) does not fit samples of shape \(6,\)"),
        (
            {"early_stopping": True, "validation_fraction": 1.5},
            r"validation_fraction must lie in \(0, 1\), got 1.5",
        ),
        ({"schedule": "zigzag"}, "schedule must be one of .* got 'zigzag'"),
    ],
)
def test_bad_parameters_are_named(table, params, message):
    with pytest.raises(ValueError, match=message):
        NeuralClassifier(**params).fit(*table)


def test_a_class_of_one_cannot_be_split(table):
    X, y = table
    y = np.where(np.arange(len(y)) == 7, 5, y)
    with pytest.raises(ValueError, match="a validation split needs 2 samples of every class; class 5 has 1"):
        NeuralClassifier(early_stopping=True).fit(X, y)


def test_another_prior_must_be_one(table):
    X, y = table
    clf = NeuralClassifier(**{**FAST, "epochs": 1}).fit(X, y)
    with pytest.raises(ValueError, match="prior must be one of 'data', 'train', got 'test'"):
        clf.predict_proba(X, prior="test")
    with pytest.raises(ValueError, match="prior must be a vector that sums to 1"):
        clf.predict_proba(X, prior=[1, 1])
    with pytest.raises(ValueError, match="for each of 2 classes, got 3"):
        clf.predict_proba(X, prior=[0.2, 0.3, 0.5])


def test_wrong_image_size_is_refused():
    X, y = np.random.default_rng(0).random((20, 8, 8)), np.arange(20) % 2
    clf = NeuralClassifier(epochs=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"samples of shape \(8, 8\), got \(8, 9\)"):
        clf.predict(np.zeros((2, 8, 9)))


@pytest.mark.parametrize("precision", ["64-true", "bf16-mixed", "bf16-true"])
def test_every_precision(table, precision):
    X, y = table
    clf = NeuralClassifier(precision=precision, early_stopping=True, **FAST).fit(X, y)
    assert clf.score(X, y) > 0.8
    assert next(clf.network_.parameters()).dtype == torch.float32


def test_large_offsets_keep_their_digits(table):
    X, y = table
    plain, far = (NeuralClassifier(**FAST).fit(Z, y).predict_proba(Z) for Z in (X, X + 1e9))
    assert np.allclose(plain, far, atol=1e-3)


def test_means_by_blocks():
    from equipoise.training.inputs import Preparation

    images = np.random.default_rng(0).integers(0, 255, (5000, 3, 4, 2), dtype=np.uint8)
    prepare = Preparation.fit(images)
    assert np.allclose(prepare.mean, images.mean(axis=(0, 2, 3)))
    assert np.allclose(prepare.scale, images.std(axis=(0, 2, 3)))
    assert prepare(images).mean(dim=(0, 2, 3)).abs().max() < 1e-4


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
def test_gradients_of_another_layout_are_not_mixed_up(optimizer):
    from equipoise.classifiers._training_job import build_optimizer

    start = torch.randn(4, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    gradient = torch.randn(4, 3, 2, 2)
    moved = []
    for layout in (torch.contiguous_format, torch.channels_last):
        parameter = nn.Parameter(start.clone())
        parameter.grad = gradient.contiguous(memory_format=layout)
        build_optimizer(optimizer, [parameter], 0.1, {}).step()
        moved.append(parameter.detach())
    assert torch.equal(*moved)
