"""A recipe fills in what is left at its default, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from equipoise.classifiers import NeuralClassifier
from equipoise.classifiers.recipes import RECIPES
from equipoise.networks import CosineLinear


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == c))[: 90 if c < 2 else 12] for c in range(4)])
    return X[rows].reshape(-1, 8, 8), y[rows]


def test_the_recipe_is_what_it_says(digits):
    X, y = digits
    params = {"module_params": {"widths": (8, 16)}, "epochs": 5, "random_state": 0, "verbose": False}
    short = NeuralClassifier(recipe="equipoise", **params).fit(X, y)
    assert isinstance(short.network_.head, CosineLinear)
    assert short.loss == "ce"
    assert clone(short).get_params() == short.get_params()
    written = NeuralClassifier(**params, **RECIPES["equipoise"]()).fit(X, y)
    np.testing.assert_array_equal(short.predict_proba(X), written.predict_proba(X))
    np.testing.assert_array_equal(short.training_prior_, written.training_prior_)


def test_what_is_given_stays(digits):
    X, y = digits
    params = {"module_params": {"widths": (8,)}, "epochs": 1, "random_state": 0, "verbose": False}
    own = NeuralClassifier(recipe="equipoise", loss="focal", loss_params={"gamma": 1.0}, **params).fit(X, y)
    assert not isinstance(own.network_.head, CosineLinear)
    with pytest.raises(ValueError, match=r"recipe must be .*'equipoise'.* got 'best'"):
        NeuralClassifier(recipe="best", **params).fit(X, y)
