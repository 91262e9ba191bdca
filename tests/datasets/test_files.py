"""Loaders on small files that the tests make, and on the real ones where they are present."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from equipoise import datasets
from equipoise.datasets import benchmark
from equipoise.datasets import home as homes
from equipoise.datasets.idx import _parse

IMAGES = (np.arange(6 * 28 * 28) % 251).astype(np.uint8).reshape(6, 28, 28)
LABELS = np.array([0, 1, 2, 3, 9, 0], dtype=np.uint8)


def idx_bytes(values: np.ndarray) -> bytes:
    codes = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}
    big = values.astype(values.dtype.newbyteorder(">"))
    header = bytes([0, 0, codes[values.dtype.str[1:]], values.ndim])
    return header + struct.pack(f">{values.ndim}I", *values.shape) + big.tobytes()


def write_set(folder: Path, packed: bool) -> None:
    folder.mkdir(parents=True)
    for name, values in (("images-idx3", IMAGES), ("labels-idx1", LABELS)):
        data = idx_bytes(values)
        for stem in ("train", "t10k"):
            path = folder / f"{stem}-{name}-ubyte{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(data) if packed else data)


@given(
    hnp.arrays(
        st.sampled_from([np.dtype(t) for t in ("u1", "i1", "i2", "i4", "f4", "f8")]),
        hnp.array_shapes(max_dims=4, max_side=5),
    )
)
def test_idx_round_trip(values):
    read = _parse(idx_bytes(values), Path("x"))
    assert read.dtype == values.dtype
    np.testing.assert_array_equal(read, values)


@given(st.data())
def test_a_cut_idx_file_never_passes(data):
    whole = idx_bytes(IMAGES[:1, :3, :3])
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ValueError, match=r"x is(?: cut| not)|x has"):
        _parse(whole[:cut], Path("x"))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("load", "folder"),
    [
        (datasets.load_mnist, "mnist/package/data"),
        (datasets.load_mnist, "mnist"),
        (datasets.load_fashion_mnist, "fashion-mnist"),
    ],
)
def test_idx_sets(tmp_path, load, folder, packed):
    write_set(tmp_path / folder, packed)
    for split in ("train", "test"):
        data = load(split, data_home=tmp_path)
        assert data.X.shape == (6, 1, 28, 28)
        assert data.X.dtype == np.float32
        assert pytest.approx(IMAGES[:, None] / 255, abs=1e-6) == data.X
        assert data.y.tolist() == LABELS.tolist()
        assert len(data.target_names) == 10
    raw = load(pixels="uint8", data_home=tmp_path)
    assert np.array_equal(raw.images[:, 0], IMAGES)


def test_npz_set(tmp_path):
    np.savez(tmp_path / "mnist.npz", x_train=IMAGES, y_train=LABELS, x_test=IMAGES[:2], y_test=LABELS[:2])
    assert len(datasets.load_mnist("test", data_home=tmp_path)) == 2


def test_the_data_home_is_the_argument_the_variable_or_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("EQUIPOISE_DATA", str(tmp_path))
    assert datasets.data_home() == tmp_path
    assert datasets.data_home("x") == Path("x")
    monkeypatch.delenv("EQUIPOISE_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(homes.sys, "platform", "linux")
    assert datasets.data_home() == tmp_path / "equipoise"


def test_truncated_gzip_is_named(tmp_path):
    write_set(tmp_path / "mnist", packed=True)
    path = tmp_path / "mnist" / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"train-images-idx3-ubyte\.gz is not a whole gzip file"):
        datasets.load_mnist(data_home=tmp_path)


def test_truncated_idx_is_named(tmp_path):
    write_set(tmp_path / "mnist", packed=False)
    path = tmp_path / "mnist" / "train-labels-idx1-ubyte"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="13 bytes where its header promises 14"):
        datasets.load_mnist(data_home=tmp_path)


def test_missing_and_mismatched_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"mnist was not found under .*EQUIPOISE_DATA"):
        datasets.load_mnist(data_home=tmp_path)
    write_set(tmp_path / "mnist", packed=False)
    labels = tmp_path / "mnist" / "train-labels-idx1-ubyte"
    labels.write_bytes(idx_bytes(LABELS[:5]))
    with pytest.raises(ValueError, match="same length, got 6 and 5"):
        datasets.load_mnist(data_home=tmp_path)
    labels.write_bytes(idx_bytes(LABELS + 3))
    with pytest.raises(ValueError, match=r"labels must lie in \[0, 9\], got 3 to 12"):
        datasets.load_mnist(data_home=tmp_path)
    labels.unlink()
    with pytest.raises(FileNotFoundError, match="mnist's labels"):
        datasets.load_mnist(data_home=tmp_path)
    with pytest.raises(ValueError, match="split must be one of"):
        datasets.load_mnist("valid", data_home=tmp_path)


def benchmark_file(home: Path, number: int = 1, label: object = (-1, -1, -1, 1)) -> Path:
    folder = home / "imblearn_benchmark" / "zenodo"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"x{number}data.npz"
    np.savez(path, data=np.arange(8.0).reshape(4, 2), label=np.array(label))
    return path


@pytest.fixture
def small_benchmark(monkeypatch):
    """Tables of four rows, which are no download."""
    monkeypatch.setattr(benchmark, "_SHAPES", dict.fromkeys(benchmark._SHAPES, (4, 2)))


def test_imblearn_benchmark_small(tmp_path, small_benchmark):
    path = benchmark_file(tmp_path)
    data = datasets.load_imblearn_benchmark("ecoli", data_home=tmp_path)
    assert data.class_counts == {0: 3, 1: 1}
    assert datasets.available_imblearn_benchmark(tmp_path) == ["ecoli"]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"x1data\.npz is not a readable npz"):
        datasets.load_imblearn_benchmark("ecoli", data_home=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"satimage .*x3data\.npz.*download=True"):
        datasets.load_imblearn_benchmark("satimage", data_home=tmp_path)
    with pytest.raises(ValueError, match="name must be one of 'ecoli'"):
        datasets.load_imblearn_benchmark("iris", data_home=tmp_path)


def zenodo_archive(shape: tuple[int, int]) -> bytes:
    packed, member = io.BytesIO(), io.BytesIO()
    np.savez(member, data=np.ones(shape), label=np.where(np.arange(shape[0]) < 35, 1, -1))
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        info = tarfile.TarInfo("x1data.npz")
        info.size = len(member.getvalue())
        archive.addfile(info, io.BytesIO(member.getvalue()))
    return packed.getvalue()


def test_the_benchmark_is_downloaded_and_checked(tmp_path, monkeypatch):
    sent = {"data": b""}
    monkeypatch.setattr("imblearn.datasets._zenodo.urlopen", lambda _: io.BytesIO(sent["data"]))
    folder = tmp_path / "imblearn_benchmark" / "zenodo"

    def load(**more: bool) -> datasets.Dataset:
        return datasets.load_imblearn_benchmark("ecoli", data_home=tmp_path, **more)

    sent["data"] = zenodo_archive((336, 7))[:-300]
    with pytest.raises(OSError, match="could not get ecoli of imbalanced-learn's benchmark from Zenodo"):
        load(download=True)
    sent["data"] = zenodo_archive((336, 7))
    with pytest.raises(ValueError, match=r"x1data\.npz as sent by Zenodo .* should be 126f2ec1"):
        load(download=True)
    assert list(folder.iterdir()) == []  # neither left a file that a later call would take for the table
    monkeypatch.setattr(benchmark, "_SHA256", {})
    data = load(download=True)
    assert data.class_counts == {0: 301, 1: 35}
    assert sorted(path.name for path in folder.iterdir()) == ["SHA256SUMS", "x1data.npz"]
    sent["data"] = b""
    assert len(load()) == 336
    np.savez(folder / "x1data.npz", data=np.zeros((336, 7)), label=np.ones(336))
    with pytest.raises(
        ValueError, match=r"x1data\.npz is damaged: its SHA-256 is not the one of its download"
    ):
        load()


def test_a_table_of_another_shape_is_not_the_benchmarks(tmp_path):
    benchmark_file(tmp_path)
    with pytest.raises(ValueError, match=r"must have shape \(336, 7\) .* got \(4, 2\) and \(4,\)"):
        datasets.load_imblearn_benchmark("ecoli", data_home=tmp_path)


def test_our_benchmark_numbers_are_imbalanced_learns(tmp_path, small_benchmark):
    for number, name in enumerate(datasets.IMBLEARN_BENCHMARK, start=1):
        benchmark_file(tmp_path, number)
        assert len(datasets.load_imblearn_benchmark(name, data_home=tmp_path)) == 4
    assert datasets.available_imblearn_benchmark(tmp_path) == list(datasets.IMBLEARN_BENCHMARK)


def test_npz_files_with_objects_are_refused(tmp_path):
    path = benchmark_file(tmp_path)
    np.savez(path, data=np.array([{}, []], dtype=object), label=np.array([1, -1]))
    with pytest.raises(ValueError, match="holds Python objects"):
        datasets.load_imblearn_benchmark("ecoli", data_home=tmp_path)
    np.savez(path, data=np.ones((2, 2)))
    with pytest.raises(ValueError, match="lacks label; it has data"):
        datasets.load_imblearn_benchmark("ecoli", data_home=tmp_path)


def test_medmnist_small(tmp_path):
    (tmp_path / "medmnist").mkdir()
    np.savez(
        tmp_path / "medmnist" / "pneumoniamnist.npz",
        train_images=IMAGES,
        train_labels=np.array([[0], [1], [1], [0], [1], [1]], dtype=np.uint8),
    )
    data = datasets.load_medmnist(data_home=tmp_path)
    assert data.class_counts == {0: 2, 1: 4}
    assert data.target_names == ("normal", "pneumonia")
    with pytest.raises(ValueError, match="lacks test_images"):
        datasets.load_medmnist(split="test", data_home=tmp_path)
    with pytest.raises(FileNotFoundError, match="bloodmnist"):
        datasets.load_medmnist("bloodmnist", data_home=tmp_path)


def test_mvtec_small(tmp_path):
    (tmp_path / "mvtec_features").mkdir()
    np.savez(tmp_path / "mvtec_features" / "MVTec-AD_pill.npz", X=np.ones((3, 4)), y=[0, 0, 1])
    assert datasets.load_mvtec_features("pill", data_home=tmp_path).class_counts == {0: 2, 1: 1}
    with pytest.raises(FileNotFoundError, match="There are: pill"):
        datasets.load_mvtec_features("cable", data_home=tmp_path)


def load_or_skip(load, *args):
    try:
        return load(*args)
    except FileNotFoundError as error:
        pytest.skip(f"not on this machine: {error}")


def test_real_fashion_mnist():
    data = load_or_skip(datasets.load_fashion_mnist, "test")
    assert set(data.class_counts.values()) == {1000}


def test_real_benchmark():
    names = datasets.available_imblearn_benchmark()
    if not names:
        pytest.skip("not on this machine: imbalanced-learn's benchmark")
    for file, known in benchmark._SHA256.items():
        path = benchmark._benchmark_folder(None) / file
        if path.is_file() and zipfile.ZipFile(path).infolist()[0].date_time[0] == 2015:  # not packed anew
            assert benchmark._sha256(path) == known
    for name in names:
        data = datasets.load_imblearn_benchmark(name)
        assert data.y.mean() < 0.12
