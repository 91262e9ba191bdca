"""KEEL's tables, on a file of our own."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.datasets import available_keel, load_keel

TEXT = """@relation tiny
@attribute Sex {M, F}
@attribute Length real [0.0, 1.0]
@attribute Rings integer [1, 9]
@attribute Class {positive, negative}
@data
M, 0.5, 3,  negative
F, 0.25, 1, negative
F , <null>, 2, positive
?, 0.75, 2, negative
M, 1.0, 9, positive \n"""


def put(home, text, name="tiny"):
    folder = home / "keel" / name
    folder.mkdir(parents=True)
    (folder / f"{name}.dat").write_text(text)


def test_attributes_become_columns_and_incomplete_rows_go(tmp_path):
    put(tmp_path, TEXT)
    assert "tiny" in available_keel(tmp_path)
    data = load_keel("tiny", data_home=tmp_path)
    assert data.feature_names == ("Sex=M", "Sex=F", "Length", "Rings")
    np.testing.assert_array_equal(data.X, [[1, 0, 0.5, 3], [0, 1, 0.25, 1], [1, 0, 1.0, 9]])
    assert data.y.tolist() == [0, 0, 1]
    assert data.name == "keel-tiny"


def test_what_is_wrong_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"KEEL's 'none' was not found under"):
        load_keel("none", data_home=tmp_path)
    put(tmp_path, TEXT.replace("0.25, 1, negative", "0.25, negative"), "cut")
    with pytest.raises(ValueError, match=r"cut.dat is not a readable KEEL file"):
        load_keel("cut", data_home=tmp_path)
    put(tmp_path, TEXT.replace(" positive", " negative").replace("{negative", "{positive"), "one")
    with pytest.raises(ValueError, match=r"classes must be positive and negative, got \['negative'\]"):
        load_keel("one", data_home=tmp_path)
    put(tmp_path, TEXT.replace("positive", "yes"), "other")
    assert "other" not in available_keel(tmp_path)
