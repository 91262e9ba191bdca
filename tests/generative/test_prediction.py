"""``equipoise diffusion predict``: an order for images and tables, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from equipoise.cli import main
from equipoise.generative.prediction_page import build_prediction
from equipoise.theory.diffusion import predict_order

QUICK = ["--dimension", "12", "--instances", "2", "--bootstrap", "3"]
EVIL = "<script>alert(1)</script>"
VARIED = np.random.default_rng(0).normal(size=(20, 8, 8))


def images(names=("calm", "wild"), n=60):
    rng = np.random.default_rng(0)
    y = np.repeat(names, n)
    return rng.normal(size=(2 * n, 8, 8)) * np.where(y == names[1], 1.0, 0.4)[:, None, None] + 1, y


def test_images_are_given_an_order_and_a_page(tmp_path, capsys):
    X, y = images()
    np.savez(tmp_path / "data.npz", X=X, y=y)
    out = tmp_path / "page.html"
    assert main(["diffusion", "predict", str(tmp_path / "data.npz"), *QUICK, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "wild → calm" in said
    assert "centroid norm" in said
    assert "Cosines between the centroids" in out.read_text()


def test_a_table_is_given_an_order(tmp_path, capsys):
    X, y = images()
    frame = pd.DataFrame(X.reshape(len(X), -1)[:, :6], columns=list("abcdef"))
    frame["text"] = "same"
    frame["kind"] = y
    frame.loc[0, "a"] = np.nan
    frame.loc[1, "kind"] = None
    frame.to_csv(tmp_path / "data.csv", index=False)
    assert main(["diffusion", "predict", str(tmp_path / "data.csv"), "--target", "kind", *QUICK]) == 0
    said = capsys.readouterr().out
    assert "118 rows of 6 columns" in said
    assert "1 rows have no value in 'kind'" in said
    assert "wild" in said


@pytest.mark.parametrize(
    ("X", "y", "extra", "message"),
    [
        (np.ones((20, 8, 8)), np.repeat([0, 1], 10), [], "does not vary"),
        (VARIED, np.zeros(20), [], "at least two classes"),
        (VARIED, np.r_[0, np.ones(19)], [], "0' has 1"),
        (VARIED, np.repeat([0, 1], [15, 5]), [], "a class needs at least 8 samples"),
        (VARIED, np.repeat([0, np.nan], 10), [], "labels that are not finite"),
        (
            np.where(np.arange(20)[:, None, None] < 10, 1.1, VARIED),
            np.repeat([0, 1], 10),
            [],
            "does not vary",
        ),
        (np.full((20, 8, 8), np.nan), np.repeat([0, 1], 10), [], "finite"),
        (*images(), ["--pairs", "calm"], "--pairs must be"),
        (*images(), ["--pairs", "calm:odd"], "unknown"),
        (*images(), ["--pairs", "calm:calm"], "must name two classes"),
        (*images(), ["--classes", ""], "class '' of"),
        (np.array([[1.0], [1.0, 2.0]], dtype=object), [0, 1], [], "images of different sizes"),
    ],
)
def test_bad_data_end_in_a_sentence(tmp_path, capsys, X, y, extra, message):
    np.savez(tmp_path / "data.npz", X=X, y=y)
    out = tmp_path / "pages" / "page.html"
    assert main(["diffusion", "predict", str(tmp_path / "data.npz"), *QUICK, *extra, "--out", str(out)]) == 2
    assert message in capsys.readouterr().err
    assert not out.parent.exists(), "nothing is written, nor a folder for it made"


def test_the_page_escapes_names():
    X, y = images(names=("calm", EVIL))
    found = predict_order(X, y, dimension=12, n_instances=2, n_bootstrap=2, random_state=0)
    page = build_prediction(found, EVIL).to_html()
    assert EVIL not in page
    assert "Expected order of memorization" in page
