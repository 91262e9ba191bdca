"""What the data scatter does to NENum's class weights where one class is rare: it gives the weight back."""

from __future__ import annotations

import pytest
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score

pytest.importorskip("torch")

from equipoise.classifiers import NeuralClassifier


def test_on_two_classes_the_scatter_undoes_the_weights_and_can_be_left_out():
    X, y = make_classification(
        1600, 8, n_informative=5, weights=[0.96], class_sep=0.9, flip_y=0, random_state=2
    )
    train, test = slice(0, 800), slice(800, None)
    shares, scores = {}, {}
    for scatter in (True, False, "auto"):
        model = NeuralClassifier(
            loss="nenum", loss_params={"scatter": scatter}, epochs=30, lr=3e-3, random_state=0, verbose=False
        ).fit(X[train], y[train])
        shares[scatter] = model.training_prior_[1]
        scores[scatter] = balanced_accuracy_score(y[test], model.predict(X[test]))
    assert shares[False] == pytest.approx(0.5, abs=0.02)
    assert shares[True] < 0.5 * shares[False]  # the frequent class scatters more and takes the weight
    assert scores[False] > scores[True]
    assert scores["auto"] == scores[False]
