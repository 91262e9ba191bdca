"""Files become problems; what is wrong with a file is one sentence that says what to do."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

from equipoise.datasets.reading import check_classes, check_target, read_frame, read_problem
from equipoise.datasets.schema import Schema


@pytest.fixture
def write(tmp_path):
    def write(text: str, name: str = "data.csv", encoding: str = "utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write


def test_mixed_columns_are_typed(write):
    rows = "".join(
        f"{i},2020-01-{i % 28 + 1:02d},{'ab'[i % 2]},{'' if i == 3 else i / 7},{i % 2}\n" for i in range(20)
    )
    problem = read_problem(write("age,when,kind,gap,ill\n" + rows), "ill")
    assert problem.schema.kinds == ("number", "number", "category", "number")
    assert problem.X["when"].iloc[0] == pytest.approx(18262)
    assert np.isnan(problem.X["gap"].iloc[3])
    assert problem.y.tolist() == [i % 2 for i in range(20)]
    assert any("'when' holds dates" in note for note in problem.notes)


def test_separators_and_compression(write, tmp_path):
    for separator in ",;\t|":
        text = "\n".join(separator.join(row) for row in (["a", "b", "y"], ["1", "2", "0"], ["3", "4", "1"]))
        assert read_problem(write(text), "y").X.tolist() == [[1, 2], [3, 4]]
    (tmp_path / "z.csv").write_bytes(gzip.compress(text.encode()))
    assert read_problem(tmp_path / "z.csv", "y").X.shape == (2, 2)


def test_encodings(write):
    text = "größe,y\n1,ä\n2,b\n"
    assert read_problem(write(text, encoding="utf-8-sig"), "y").schema.columns[0].name == "größe"
    assert read_problem(write(text, encoding="utf-16"), "y").y.tolist() == ["ä", "b"]
    assert read_problem(write(text, encoding="cp1252"), "y", encoding="cp1252").y.tolist() == ["ä", "b"]
    with pytest.raises(ValueError, match=r"not utf-8 \(byte 2\): save it as UTF-8, or name its encoding"):
        read_problem(write(text, encoding="cp1252"), "y")
    with pytest.raises(ValueError, match="there is no encoding 'klingon'"):
        read_problem(write(text), "y", encoding="klingon")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: nothing"),
        ("a,y\n", "has a header but no rows"),
        ("a,y\n1,0\n1,2,3\n", r"line 3 has 3 cells where the header has 2: mend"),
        ("a,b,y\n1,0,1\n1,2\n", r"line 3 has 2 cells where the header has 3"),
        ("a,a,y\n1,2,0\n", "column names must differ, got 'a' more than once"),
        ("a,b\n1,0\n", "there is no column 'y'; there are 'a', 'b'"),
        ("y\n1\n0\n", "no column besides 'y'"),
        ("a,y\n1,0.5\n2,0.25\n", "as in a regression: cut it into classes"),
        ("a,y\n,0\n,1\n", "no column is left to learn from: Column 'a' has no values"),
        ("a\x00,y\n1,0\n", "not a text table"),
        ("\n1,2\n", "empty first line"),
    ],
)
def test_bad_tables_are_named(write, text, message):
    with pytest.raises(ValueError, match=message):
        read_problem(write(text), "y")


def test_no_target_lists_the_columns(write):
    with pytest.raises(ValueError, match="--target; there are 'a', 'y'"):
        read_problem(write("a,y\n1,0\n"))


def test_notes_on_columns(write):
    rows = "".join(f"{i},name {i},,{i % 2},{'' if i == 5 else i % 3 > 0}\n" for i in range(100))
    problem = read_problem(write("n,id,empty,m,y\n" + rows), "y")
    text = " ".join(problem.notes)
    assert [c.name for c in problem.schema.columns] == ["n", "m"]
    assert "'empty' has no values" in text
    assert "'id' has a different text in almost every row" in text
    assert "1 rows have no value in 'y'" in text
    assert len(problem.y) == 99


def test_ten_thousand_categories(write):
    names = [f"shop {i % 10_000}" for i in range(25_000)]
    frame = pd.DataFrame({"shop": names, "x": np.arange(25_000), "y": np.arange(25_000) % 2})
    schema, notes = Schema.infer(frame[["shop", "x"]])
    assert schema.kinds == ("category", "number")
    assert "10,000 categories" in notes[0]


def test_parquet_and_its_damage(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, np.inf], "y": ["u", "v", "u"]})
    frame.to_parquet(tmp_path / "t.parquet")
    problem = read_problem(tmp_path / "t.parquet", "y")
    assert np.isnan(problem.X[2, 0])
    assert "Infinite values in 'a'" in problem.notes[-1]
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:200])
    with pytest.raises(ValueError, match="not readable Parquet"):
        read_problem(tmp_path / "cut.parquet", "y")


def test_npz(tmp_path):
    X, y = np.arange(48.0).reshape(3, 4, 4), np.array([0, 1, 1])
    np.savez(tmp_path / "d.npz", X=X, y=y)
    problem = read_problem(tmp_path / "d.npz")
    assert problem.image_shape == (4, 4, 1)
    assert problem.X.shape == (3, 16)
    with pytest.raises(ValueError, match="no array 'z'; there are 'X', 'y'"):
        read_problem(tmp_path / "d.npz", "z")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "d.npz").read_bytes()[:150])
    with pytest.raises(ValueError, match=r"cut\.npz"):
        read_problem(tmp_path / "cut.npz")
    np.savez(tmp_path / "o.npz", X=np.array([[None]], dtype=object), y=np.array([1]))
    with pytest.raises(ValueError, match=r"o\.npz"):
        read_problem(tmp_path / "o.npz")


def test_image_folders(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name, shade in (("cat", 200), ("dog", 30)):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for i in range(3):
            image.new("L", (10, 8), shade).save(tmp_path / "pets" / name / f"{i}.png")
    problem = read_problem(tmp_path / "pets")
    assert problem.X.shape == (6, 100)
    assert problem.y.tolist() == ["cat"] * 3 + ["dog"] * 3
    assert problem.X[0, 0] == pytest.approx(200 / 255)
    (tmp_path / "pets" / "dog" / "bad.png").write_bytes(b"\x89PNG not")
    with pytest.raises(ValueError, match=r"bad\.png is not a readable image"):
        read_problem(tmp_path / "pets")
    with pytest.raises(ValueError, match="one folder of images for each class"):
        read_problem(tmp_path / "pets" / "cat")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array(["a"] * 9), "has only one class, 'a': there is nothing to tell apart"),
        (np.array(["a"] * 9 + ["b"]), r"too few rows of 'b' \(1\): nested folds need 4"),
    ],
)
def test_classes_that_cannot_be_split(y, message):
    with pytest.raises(ValueError, match=message):
        check_classes(y)


def test_targets():
    assert check_target(np.array([0.0, 1.0])).dtype.kind == "i"
    assert check_target(np.array([True, False])).dtype == bool
    with pytest.raises(ValueError, match="200 different numbers in 400 rows, as in a regression"):
        check_target(np.arange(400) // 2, "price")
    with pytest.raises(ValueError, match="no missing labels"):
        check_target(np.array([1, np.nan]))


def test_a_schema_survives_json_and_refuses_by_name():
    frame = pd.DataFrame({"age": [1, 2], "kind": ["a", None], "when": ["2020-01-01", "2021-01-01"]})
    schema, _ = Schema.infer(frame)
    again = Schema.from_json(schema.to_json())
    assert again == schema
    typed = again.apply(frame[["when", "kind", "age"]])
    assert list(typed.columns) == ["age", "kind", "when"]
    assert typed["kind"].tolist() == ["a", "(missing)"]
    with pytest.raises(ValueError, match="lacks the columns 'kind', 'when'"):
        again.apply(frame[["age"]])
    with pytest.raises(ValueError, match="column 'age' must hold numbers, got 'old'"):
        again.apply(frame.assign(age=["old", 3]))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_problem(tmp_path / "no.csv", "y")
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_frame(tmp_path / "no.csv")
