"""Files become tables; what is wrong with a file is one sentence that says what to do."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

from equipoise.datasets import DataTable, read_table
from equipoise.datasets.labels import check_target
from equipoise.datasets.reading import read_frame
from equipoise.datasets.schema import Schema, read_columns


@pytest.fixture
def write(tmp_path):
    def write(text: str, name: str = "data.csv", encoding: str = "utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write


def test_mixed_columns_are_typed(write):
    rows = "".join(
        f"{i * i},2020-01-{i % 28 + 1:02d},{'ab'[i % 2]},{'' if i == 3 else i / 7},{i % 2}\n"
        for i in range(20)
    )
    table = read_table(write("age,when,kind,gap,ill\n" + rows), "ill")
    assert table.kinds == ("number", "date", "category", "number")
    assert table.X["when"].iloc[0] == 18262 * 86400
    assert np.isnan(table.X["gap"].iloc[3])
    assert table.y.tolist() == [i % 2 for i in range(20)]
    assert any("'when' holds dates" in note for note in table.notes)


def test_separators_and_compression(write, tmp_path):
    for separator in ",;\t|":
        text = "\n".join(separator.join(row) for row in (["a", "b", "y"], ["1", "2", "0"], ["3", "4", "1"]))
        assert read_table(write(text), "y").X.tolist() == [[1, 2], [3, 4]]
    (tmp_path / "z.csv").write_bytes(gzip.compress(text.encode()))
    assert read_table(tmp_path / "z.csv", "y").X.shape == (2, 2)


def test_encodings(write):
    text = "größe,y\n1,ä\n2,b\n"
    assert read_table(write(text, encoding="utf-8-sig"), "y").schema.columns[0].name == "größe"
    assert read_table(write(text, encoding="utf-16"), "y").classes == ("b", "ä")
    assert read_table(write(text, encoding="cp1252"), "y", encoding="cp1252").classes == ("b", "ä")
    with pytest.raises(ValueError, match=r"not utf-8 \(byte 2\): save it as UTF-8, or name its encoding"):
        read_table(write(text, encoding="cp1252"), "y")
    with pytest.raises(ValueError, match="there is no encoding 'klingon'"):
        read_table(write(text), "y", encoding="klingon")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: nothing"),
        ("a,y\n", "has a header but no rows"),
        ("a,y\n1,0\n1,2,3\n", r"line 3 has 3 cells where the header has 2: mend"),
        ("a,b,y\n1,0,1\n1,2\n", r"line 3 has 2 cells where the header has 3"),
        ("a,a,y\n1,2,0\n", "column names must differ, got 'a' more than once"),
        ("a,b\n1,0\n", "there is no column 'y'; there are 'a', 'b'"),
        ("y\n1\n0\n", "no column besides 'y': nothing"),
        ("a,y\n1,0.5\n2,0.25\n", "as in a regression: cut it into classes"),
        ("a,y\n,0\n,1\n", "no column is left to learn from: Column 'a' has no values"),
        ("a\x00,y\n1,0\n", "not a text table"),
        ("\n1,2\n", "empty first line"),
    ],
)
def test_bad_tables_are_named(write, text, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(text), "y")


def test_no_target_lists_the_columns(write):
    with pytest.raises(ValueError, match="--target; there are 'a', 'y'"):
        read_table(write("a,y\n1,0\n"))


def test_notes_on_columns(write):
    rows = "".join(f"{i},name {i},,{i % 2},7,{'' if i == 5 else i % 3 > 0}\n" for i in range(100))
    table = read_table(write("n,id,empty,m,same,y\n" + rows), "y")
    text = " ".join(table.notes)
    assert table.schema.names == ("m",)
    assert "'n' numbers the rows: it was left out" in text
    assert "'same' has the same value in every row (7)" in text
    assert "'empty' has no values" in text
    assert "'id' has a different text in almost every row" in text
    assert "1 rows have no value in 'y'" in text
    assert len(table.y) == 99


def test_ten_thousand_categories():
    names = [f"shop {i % 10_000}" for i in range(25_000)]
    schema, rows, _ = read_columns(pd.DataFrame({"shop": names, "x": np.arange(25_000) ** 2}))
    assert schema.kinds == ("category", "number")
    assert rows["shop"].nunique() == 10_000


def test_parquet_and_its_damage(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, np.inf], "y": ["u", "v", "u"]})
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", "y")
    assert np.isnan(table.X[2, 0])
    assert "Infinite values in column 'a'" in table.notes[-1]
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:200])
    with pytest.raises(ValueError, match="not readable Parquet"):
        read_table(tmp_path / "cut.parquet", "y")


def test_npz(tmp_path):
    X, y = np.arange(48.0).reshape(3, 4, 4), np.array([0, 1, 1])
    np.savez(tmp_path / "d.npz", X=X, y=y)
    table = read_table(tmp_path / "d.npz")
    assert table.image_shape == (4, 4, 1)
    assert table.X.shape == (3, 16)
    with pytest.raises(ValueError, match="no array 'z'; there are 'X', 'y'"):
        read_table(tmp_path / "d.npz", "z")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "d.npz").read_bytes()[:150])
    with pytest.raises(ValueError, match=r"cut\.npz"):
        read_table(tmp_path / "cut.npz")
    np.savez(tmp_path / "o.npz", X=np.array([[None]], dtype=object), y=np.array([1]))
    with pytest.raises(ValueError, match=r"o\.npz"):
        read_table(tmp_path / "o.npz")


def test_image_folders(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name, shade in (("cat", 200), ("dog", 30)):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for i in range(3):
            image.new("L", (10, 8), shade).save(tmp_path / "pets" / name / f"{i}.png")
    table = read_table(tmp_path / "pets")
    assert table.X.shape == (6, 100)
    assert [table.classes[code] for code in table.y] == ["cat"] * 3 + ["dog"] * 3
    assert table.ids[0] == "cat/0.png"
    assert table.X[0, 0] == pytest.approx(200 / 255)
    (tmp_path / "pets" / "dog" / "bad.png").write_bytes(b"\x89PNG not")
    with pytest.raises(ValueError, match=r"bad\.png is not a readable image"):
        read_table(tmp_path / "pets")
    with pytest.raises(ValueError, match="one folder of images for each class"):
        read_table(tmp_path / "pets" / "cat")


def test_sixteen_bits_are_not_cut_off(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name, shade in (("dark", 1000), ("light", 60_000)):
        (tmp_path / "gray" / name).mkdir(parents=True)
        image.fromarray(np.full((8, 8), shade, dtype=np.uint16)).save(tmp_path / "gray" / name / "0.png")
    table = read_table(tmp_path / "gray")
    np.testing.assert_allclose(table.X[:, 0], [1000 / 65535, 60_000 / 65535], atol=1 / 255)


def test_classes_that_cannot_be_split():
    with pytest.raises(ValueError, match="has only one class, 'a': there is nothing to tell apart"):
        DataTable.from_arrays(np.zeros((9, 1)), ["a"] * 9)


def test_targets():
    assert check_target(np.array([0.0, 1.0])).dtype.kind == "i"
    assert check_target(np.array([True, False])).dtype == bool
    with pytest.raises(ValueError, match="200 different numbers in 400 rows, as in a regression"):
        check_target(np.arange(400) // 2, "price")
    with pytest.raises(ValueError, match="no missing labels"):
        check_target(np.array([1, np.nan]))


def test_a_schema_survives_json_and_refuses_by_name():
    frame = pd.DataFrame({"age": [1, 2], "kind": ["a", None], "when": ["2020-01-01", "2021-01-01"]})
    schema, rows, _ = read_columns(frame)
    again = Schema.from_json(schema.to_json())
    assert again == schema
    typed = again.convert(frame[["when", "kind", "age"]])
    pd.testing.assert_frame_equal(typed, rows)
    assert typed["kind"].tolist() == ["a", "(missing)"]
    with pytest.raises(ValueError, match="lacks the columns 'kind', 'when'"):
        again.convert(frame[["age"]])
    with pytest.raises(ValueError, match="column 'age' must hold numbers, got 'old'"):
        again.convert(frame.assign(age=["old", "young"]))
    assert np.isnan(again.convert(frame.assign(age=["n/a", 3]))["age"][0])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_table(tmp_path / "no.csv", "y")
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_frame(tmp_path / "no.csv")
