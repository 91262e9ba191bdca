"""Tables as people write them: what is read, what is merged or left out, and that it is said."""

from __future__ import annotations

import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score

from equipoise._core import memory
from equipoise.datasets import DataTable, read_table
from equipoise.datasets.encoding import TableEncoder
from equipoise.datasets.reading import read_frame
from equipoise.datasets.schema import Schema

N = 200


def table_of(values, **more) -> DataTable:
    frame = pd.DataFrame({"a": values, "other": np.arange(len(values)) % 7, "y": np.arange(len(values)) % 2})
    return DataTable.from_frame(frame, "y", **more)


def column_of(values) -> np.ndarray:
    table = table_of(values)
    return table.X["a"].to_numpy() if isinstance(table.X, pd.DataFrame) else table.X[:, 0]


def written(sign: str, thousands: str, decimal: str, numbers):
    return [
        sign.format(f"{x:,.2f}".translate(str.maketrans({",": thousands, ".": decimal}))) for x in numbers
    ]


@pytest.mark.parametrize(
    ("sign", "thousands", "decimal"),
    [("{}", ".", ","), ("{} €", ".", ","), ("€ {}", " ", ","), ("{}", ",", "."), ("${}", ",", "."),
     ("CHF {}", "'", "."), ("{} EUR", "", ","), ("-£{}", ",", ".")],
)  # fmt: skip
def test_numbers_are_read_as_people_write_them(sign, thousands, decimal):
    numbers = np.round(np.random.default_rng(0).lognormal(5, 3, N), 2)
    read = column_of(written(sign, thousands, decimal, numbers))
    np.testing.assert_allclose(read, -numbers if sign.startswith("-") else numbers)


def test_percentages_are_fractions():
    np.testing.assert_allclose(column_of([f"{i / 4} %" for i in range(N)]), np.arange(N) / 400)


def test_a_decimal_comma_is_said_and_kept_for_later_rows():
    table = table_of([f"{i},{i % 100:02d}" for i in range(N)])
    assert any("'a' was read with a comma as the decimal sign" in note for note in table.notes)
    later = Schema.from_json(table.schema.to_json()).convert(pd.DataFrame({"a": ["1.234"], "other": [1]}))
    assert later[0, 0] == 1234


def test_stray_text_is_missing_and_said():
    values = [str(i / 3) for i in range(N)]
    values[3], values[70], values[71] = "broken", "see file", "n/a"
    table = table_of(values)
    assert table.kinds == ("number", "number")
    assert np.flatnonzero(np.isnan(table.X[:, 0])).tolist() == [3, 70, 71]
    assert "2 values could not be read as such (for instance 'broken', 'see file')" in " ".join(table.notes)


def test_few_different_answers_are_categories_even_if_most_are_numbers():
    table = table_of((["0", "1", "2", "1", "0", "2", "1", "0", "1", "2", "3+"] * 20)[:N])
    assert table.kinds[0] == "category"


def test_booleans_gaps_and_infinite_values():
    assert column_of([True, False, None, True] * 50)[:4].tolist() == pytest.approx(
        [1, 0, np.nan, 1], nan_ok=True
    )
    table = table_of(np.where(np.arange(N) == 4, np.inf, np.arange(N) / 3))
    assert np.isnan(table.X[4, 0])
    assert "Infinite values in column 'a' were read as missing (1)" in " ".join(table.notes)


@pytest.mark.parametrize(
    ("form", "said"), [("%d.%m.%Y", "day before the month"), ("%m/%d/%Y", "dates."), ("%d/%m/%y", "day before"),
                       ("%Y-%m-%d %H:%M", "dates."), ("%Y-%m-%dT%H:%M:%S", "dates.")],
)  # fmt: skip
def test_dates_are_seconds_since_1970(form, said):
    dates = pd.Series(pd.date_range("2019-01-01", periods=N, freq="37h"))
    table = table_of(dates.dt.strftime(form))
    wanted = dates if "H" in form else dates.dt.normalize()
    assert table.kinds[0] == "date"
    np.testing.assert_array_equal(pd.to_datetime(table.X["a"], unit="s"), wanted)
    assert said in " ".join(table.notes)


def test_prose_is_kept_and_names_are_left_out():
    assert table_of([f"the {i} th parcel came late" for i in range(N)]).kinds[0] == "text"
    for name in ([f"{i * 7919:08x}q" for i in range(N)], [f"user{i}@example.org" for i in range(N)]):
        table = table_of(name)
        assert table.schema.names == ("other",)
        assert "'a' has a different text in almost every row" in table.notes[0]


@pytest.mark.parametrize("numbers", [True, False])
def test_names_of_some_rows_only_are_kept_for_being_there(numbers):
    """A case number that only fraud has gives the label away: left out as an id, nobody would hear of it."""
    y = np.arange(N) % 3 == 0
    case = [(float(i * 7919) if numbers else f"case {i:x}q") if fraud else None for i, fraud in enumerate(y)]
    table = DataTable.from_arrays(pd.DataFrame({"case_no": case, "other": np.sin(np.arange(N))}), y)
    assert "case_no" in table.schema.names
    for for_trees in (True, False):
        encoded = TableEncoder(table.kinds, for_trees=for_trees).fit_transform(table.X)
        there = [roc_auc_score(table.y, np.nan_to_num(column, nan=-1e9)) for column in encoded.T]
        assert max(max(there), 1 - min(there)) == 1.0


@pytest.mark.parametrize(
    ("name", "values", "kept"),
    [
        ("rank", np.random.default_rng(0).permutation(N), False),  # counts the rows
        ("customer_id", np.random.default_rng(0).choice(10**6, N, replace=False), False),
        ("income", np.random.default_rng(0).choice(10**6, N, replace=False), True),
        ("orderId", np.random.default_rng(0).choice(10**6, N, replace=False), False),
        ("grid", np.random.default_rng(0).choice(10**6, N, replace=False), True),
        ("same", np.full(N, 3), False),
        ("filled", np.where(np.arange(N) % 9, np.nan, 3.0), True),  # the gaps are information
    ],
)
def test_columns_that_only_name_or_repeat_are_left_out(name, values, kept):
    frame = pd.DataFrame({name: values, "other": np.arange(N) % 7, "y": np.arange(N) % 2})
    table = DataTable.from_frame(frame, "y")
    assert (name in table.schema.names) == kept
    assert any(f"{name!r}" in note and "left out" in note for note in table.notes) == (not kept)


def test_a_repeated_id_asks_for_groups():
    frame = pd.DataFrame({"patient_id": np.arange(N) // 8 * 13, "x": np.arange(N) / 3, "y": np.arange(N) % 2})
    assert "name it with --group" in " ".join(DataTable.from_frame(frame, "y").notes)
    assert "--group" not in " ".join(DataTable.from_frame(frame, "y", group="patient_id").notes)


def test_spellings_of_a_label_are_merged_and_said():
    table = DataTable.from_arrays(np.zeros((6, 1)), ["Yes", "no", "yes ", "No", "no", "YES"], positive="yes")
    assert table.classes == ("no", "Yes")
    assert table.y.tolist() == [1, 0, 1, 0, 0, 1]
    assert "'No' was read as 'no'" in table.notes[0]
    assert DataTable.from_arrays(np.zeros((4, 1)), [" a", "b", " a", " a"]).classes == ("a", "b")


@pytest.mark.parametrize(
    ("labels", "positive", "classes", "codes"),
    [
        ([0, 1, 1, 1], None, (1, 0), [1, 0, 0, 0]),  # the rarer one
        ([0, 1, 1, 0], None, (0, 1), [0, 1, 1, 0]),
        ([0, 1, 1, 1], 1, (0, 1), [0, 1, 1, 1]),
        ([0, 1, 1, 1], "1", (0, 1), [0, 1, 1, 1]),  # as the command writes it
        ([True, False, False], None, (False, True), [1, 0, 0]),
        (["a", "b", "c"], "b", ("not b", "b"), [0, 1, 0]),
        (["a", "b", "c"], None, ("a", "b", "c"), [0, 1, 2]),
        ([0.0, 2.0, 0.0], None, (0, 2), [0, 1, 0]),
    ],
)
def test_labels_and_the_positive_class(labels, positive, classes, codes):
    table = DataTable.from_arrays(np.zeros((len(labels), 1)), labels, positive)
    assert table.classes == classes
    assert table.y.tolist() == codes
    assert table.counts.sum() == len(table)
    assert table.prior.sum() == pytest.approx(1)


def test_columns_aside_and_their_rows_are_carried_along():
    frame = pd.DataFrame({
        "loan": [f"L{i}" for i in range(N)], "who": np.repeat(np.arange(N // 4), 4), "x": np.arange(N) / 3,
        "when": pd.date_range("2020-01-01", periods=N).astype(str), "amount": np.arange(N) * 1.5,
        "leak": np.arange(N) % 2, "y": np.arange(N) % 2,
    })  # fmt: skip
    frame.loc[5, "y"] = np.nan
    table = DataTable.from_frame(
        frame, "y", group="who", time="when", id="loan", drop=["leak"], keep_values=["amount"]
    )
    assert table.schema.names == ("x", "amount")
    part = table.take(np.arange(len(table)) % 2 == 1)
    kept = frame.drop(index=5).iloc[1::2]
    assert part.ids.tolist() == kept["loan"].tolist()
    np.testing.assert_array_equal(part.row_values["amount"], kept["amount"])
    np.testing.assert_array_equal(part.X[:, 0], kept["x"])
    assert (np.diff(part.time) > 0).all()
    assert pd.Series(part.groups).groupby(kept["who"].to_numpy()).nunique().max() == 1
    assert "1 rows have no value in 'y'" in table.notes[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"group": "nobody"}, "there is no column 'nobody'; there are 'a', 'other', 'y'"),
        ({"drop": ["nothing"]}, "there is no column 'nothing'"),
        ({"id": "y"}, "the target 'y' cannot be a group, a time, an id or dropped as well"),
        ({"drop": ["a", "other"]}, "nothing to learn from"),
        ({"keep_values": ["a"]}, "'a' must hold a number in every row, got 'u' in row 1"),
        ({"time": "a"}, "'a' must hold a date or a number in every row, got 'u'"),
        ({"positive": "maybe"}, "the positive label 'maybe' is not among the labels 0, 1"),
    ],
)
def test_wrong_columns_are_refused_by_name(settings, message):
    with pytest.raises(ValueError, match=message):
        table_of(["u", "v"] * 20, **settings)


def test_arrays_keep_their_precision_and_all_columns():
    X = np.zeros((6, 3), dtype=np.float32)
    table = DataTable.from_arrays(X, [0, 1] * 3, names=["a", "b", "c"])
    assert table.X.dtype == np.float32
    assert table.schema.names == ("a", "b", "c")
    assert DataTable.from_arrays(X.astype(np.uint8), [0, 1] * 3).X.dtype == np.float64
    with pytest.raises(ValueError, match="names must name all 3 columns, got 1"):
        DataTable.from_arrays(X, [0, 1] * 3, names=["a"])
    with pytest.raises(TypeError, match="X must be dense, got a sparse matrix"):
        DataTable.from_arrays(csr_array(X), [0, 1] * 3)


def test_the_users_data_are_not_changed():
    frame = pd.DataFrame({"a": [1.0, np.inf, 3.0, 4.5], "y": [0, 1, 0, 1]})
    before = frame.copy()
    table = DataTable.from_frame(frame, "y")
    table.X[:] = 0
    pd.testing.assert_frame_equal(frame, before)


def test_the_word_none_may_be_a_label(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,y\n1,x,None\n2,None,minor\n3,z,None\n")
    table = read_table(tmp_path / "t.csv", "y")
    assert table.classes == ("None", "minor")
    assert table.X["b"].tolist() == ["x", "(missing)", "z"]


@pytest.mark.parametrize(("row", "cells"), [("1,2", 2), ("1,2,3,4", 4)])
def test_a_ragged_row_far_down_is_named(tmp_path, row, cells):
    rows = ["a,b,y"] + [f"{i},{i % 5},{i % 2}" for i in range(5000)]
    rows[4000] = row
    (tmp_path / "t.csv").write_text("\n".join(rows))
    with pytest.raises(ValueError, match=f"line 4,001 has {cells} cells where the header has 3"):
        read_frame(tmp_path / "t.csv")


def test_cells_may_hold_separators_and_lines(tmp_path):
    rows = ["note,y"] + [f'"one, {i}\ntwo",{i % 2}' for i in range(300)]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    assert len(read_frame(tmp_path / "t.csv")) == 300


@pytest.mark.parametrize("text", [False, True])
def test_a_folder_of_parquet_parts_is_one_table(tmp_path, text):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(
        {
            "a": np.arange(N) / 3,
            "n": np.arange(N) % 9,
            "same": 1.0,
            "id": np.arange(N) * 3,
            "y": np.arange(N) % 3 == 0,
        }
    )
    if text:
        frame["town"] = np.where(frame["n"] > 4, "Ulm", "Bonn")
    for part in range(4):
        (tmp_path / "parts").mkdir(exist_ok=True)
        frame.iloc[part * 50 : part * 50 + 50].to_parquet(
            tmp_path / "parts" / f"{part}.parquet", row_group_size=20
        )
    table, wanted = read_table(tmp_path / "parts", "y"), DataTable.from_frame(frame, "y")
    assert (table.schema.names, table.kinds) == (wanted.schema.names, wanted.kinds)
    np.testing.assert_array_equal(np.asarray(table.X), np.asarray(wanted.X))
    np.testing.assert_array_equal(table.y, wanted.y)
    assert table.notes == wanted.notes
    assert "'same' has the same value" in " ".join(table.notes)
    assert "'id' numbers the rows" in " ".join(table.notes)
    frame.iloc[:50, :2].to_parquet(tmp_path / "parts" / "9.parquet")
    with pytest.raises(ValueError, match=r"9\.parquet has other columns than"):
        read_table(tmp_path / "parts", "y")


def test_single_precision_parquet_stays_single(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(
        np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32), columns=list("abc")
    )
    frame.assign(y=np.arange(50) % 2).to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", "y").X.dtype == np.float32


def test_an_npz_that_declares_more_than_there_is_is_refused_unread(tmp_path):
    header = tmp_path / "X.npy"
    with header.open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"shape": (10**6, 10**6), "fortran_order": False, "descr": "<f8"}
        )
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as archive:
        archive.write(header, "X.npy")
    with pytest.raises(ValueError, match=r"bomb\.npz declares 8\.0 TB of data and .* of memory are free"):
        read_table(tmp_path / "bomb.npz")


def test_a_parquet_file_that_declares_more_than_there_is_is_refused_unread(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({f"c{i}": np.zeros(100_000) for i in range(20)}).assign(y=np.arange(100_000) % 2)
    frame.to_parquet(tmp_path / "bomb.parquet")
    assert (tmp_path / "bomb.parquet").stat().st_size < 1_000_000
    monkeypatch.setattr(memory, "available_memory", lambda: 4_000_000)
    with pytest.raises(
        ValueError, match=r"bomb\.parquet declares .* MB of data and 4\.0 MB of memory are free"
    ):
        read_table(tmp_path / "bomb.parquet", "y")


def test_options_that_need_columns_are_refused_for_arrays(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.zeros((8, 2)), y=np.arange(8) % 2, who=np.arange(8) // 2)
    assert read_table(tmp_path / "t.npz", group="who").groups.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    with pytest.raises(ValueError, match="--drop needs a table with named columns"):
        read_table(tmp_path / "t.npz", drop=["X"])
    with pytest.raises(ValueError, match="no array 'whom'"):
        read_table(tmp_path / "t.npz", group="whom")
