"""A conditional model is tuned anew by the command, on a table of labeled rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification

from equipoise.classifiers import ConditionalClassifier, NeuralClassifier
from equipoise.cli import main
from equipoise.metrics import expected_cost


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("conditional")
    X, y = make_classification(900, 5, n_redundant=0, weights=[0.8], flip_y=0.1, random_state=0)
    names, labels = [f"x{i}" for i in range(5)], np.array(["no", "yes"])[y]
    base = NeuralClassifier(module_params={"hidden": (8,)}, epochs=5, lr=0.02)
    frame = pd.DataFrame(X, columns=names)
    model = ConditionalClassifier(estimator=base, random_state=0).fit(frame[:400], labels[:400])
    model.save(folder / "model")
    frame[400:].assign(bought=labels[400:]).to_csv(folder / "valid.csv", index=False)
    return folder, frame[400:], labels[400:]


def test_the_command_does_what_tune_does(saved, capsys):
    folder, X, y = saved
    command = ["retune", str(folder / "model"), "--data", str(folder / "valid.csv"), "--target", "bought"]
    assert main([*command, "--cost", "fp=1,fn=9", "--prior", "0.4", "--out", str(folder / "new")]) == 0
    told = capsys.readouterr().out
    model = ConditionalClassifier.load(folder / "new")
    weight = np.where(y == "yes", 0.4 / np.mean(y == "yes"), 0.6 / np.mean(y == "no"))
    paid = expected_cost(y, model.predict(X), cost_matrix=[[0, 1], [9, 0]], sample_weight=weight)
    assert model.tuning_.value == pytest.approx(paid, abs=1e-3), "read back from text"
    assert f"{model.tuning_.value:.3f}" in told
    assert main([*command, "--recall", "0.8", "--in-place"]) == 0
    assert (ConditionalClassifier.load(folder / "model").predict(X)[y == "yes"] == "yes").mean() > 0.8


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "holds no labeled rows: name a table of new ones with --data"),
        (["--data", "{}/short.csv", "--target", "bought"], "lacks the column 'x3'"),
        (["--data", "{}/other.csv", "--target", "bought"], "holds the class 'maybe'"),
        (["--data", "{}/valid.csv", "--target", "bought", "--prior", "1.5"], "between 0 and 1"),
        (["--data", "{}/valid.csv", "--target", "bought", "--threshold", "0.3"], "no fixed threshold to set"),
    ],
)
def test_bad_input_gets_a_sentence(saved, capsys, more, message):
    folder, _, _ = saved
    frame = pd.read_csv(folder / "valid.csv")
    frame.drop(columns="x3").to_csv(folder / "short.csv", index=False)
    frame.replace({"bought": {"yes": "maybe"}}).to_csv(folder / "other.csv", index=False)
    command = ["retune", str(folder / "model"), "--recall", "0.8", *(part.format(folder) for part in more)]
    assert main(command) == 2
    assert message in capsys.readouterr().err
