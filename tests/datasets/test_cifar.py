"""CIFAR-10 in its three forms, a pickle that tries to do harm, and OpenML's small stand-in."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import pickle
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise import datasets
from equipoise.datasets import openml
from equipoise.datasets.cifar import read_cifar_batch, read_png_strip
from equipoise.datasets.unpickle import loads_arrays, read_array_pickle

RNG = np.random.default_rng(0)
TRAIN = RNG.integers(0, 256, (10, 3, 32, 32), dtype=np.uint8)
TRAIN_LABELS = np.arange(10)
TEST = RNG.integers(0, 256, (3, 3, 32, 32), dtype=np.uint8)
TEST_LABELS = np.array([9, 0, 4])


def batches():
    for i in range(5):
        yield f"data_batch_{i + 1}", TRAIN[2 * i : 2 * i + 2], TRAIN_LABELS[2 * i : 2 * i + 2]
    yield "test_batch", TEST, TEST_LABELS


def write_npz(folder: Path) -> None:
    channels_last = {"x_train": np.moveaxis(TRAIN, 1, 3), "x_test": np.moveaxis(TEST, 1, 3)}
    np.savez(folder / "cifar10.npz", y_train=TRAIN_LABELS[:, None], y_test=TEST_LABELS, **channels_last)


def write_npz_planes(folder: Path) -> None:
    np.savez(folder / "cifar10.npz", x_train=TRAIN, y_train=TRAIN_LABELS, x_test=TEST, y_test=TEST_LABELS)


def write_pickles(folder: Path, protocol: int = 2) -> None:
    for name, images, labels in batches():
        batch = {b"data": images.reshape(len(images), -1), b"labels": labels.tolist(), b"batch_label": b"one"}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=protocol))


def write_strips(folder: Path) -> None:
    from PIL import Image

    for name, images, _ in batches():
        rows = np.moveaxis(images, 1, 3).reshape(len(images), 1024, 3)
        Image.fromarray(rows).save(folder / f"{name}.png")
    (folder / "train_lables.json").write_text(json.dumps(TRAIN_LABELS.tolist()))
    (folder / "test_lables.json").write_text(json.dumps(TEST_LABELS.tolist()))


@pytest.mark.parametrize("form", ["npz", "pickles"])
@pytest.mark.parametrize("folder", ["cifar100", "cifar100/cifar-100-python", "cifar-100-python"])
def test_cifar100_has_fine_labels(tmp_path, form, folder):
    place = tmp_path / folder
    place.mkdir(parents=True)
    splits = {"train": (TRAIN, 11 * TRAIN_LABELS), "test": (TEST, 11 * TEST_LABELS)}
    if form == "npz":
        (X, y), (X_test, y_test) = splits.values()
        np.savez(place / "cifar100.npz", x_train=X, y_train=y, x_test=X_test, y_test=y_test)
    else:
        for split, (images, labels) in splits.items():
            flat = images.reshape(len(images), -1)
            batch = {b"data": flat, b"fine_labels": labels.tolist(), b"coarse_labels": [0] * len(labels)}
            (place / split).write_bytes(pickle.dumps(batch, protocol=2))
    for split, (images, labels) in splits.items():
        data = datasets.load_cifar100(split, pixels="uint8", data_home=tmp_path)
        assert np.array_equal(data.X, images)
        assert np.array_equal(data.y, labels)
        assert len(data.target_names) == 100
        assert data.target_names[99] == "worm"


def test_cifar100_that_is_not_here_says_what_to_put_where(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cifar100\.npz.*cifar-100-python"):
        datasets.load_cifar100(data_home=tmp_path)


@pytest.mark.parametrize("write", [write_npz, write_npz_planes, write_pickles, write_strips])
@pytest.mark.parametrize("folder", ["cifar10", "cifar10/package"])
def test_three_forms_of_one_set(tmp_path, write, folder):
    if write is write_strips:
        pytest.importorskip("PIL")
    place = tmp_path / folder
    place.mkdir(parents=True)
    write(place)
    for split, images, labels in (("train", TRAIN, TRAIN_LABELS), ("test", TEST, TEST_LABELS)):
        data = datasets.load_cifar10(split, pixels="uint8", data_home=tmp_path)
        assert np.array_equal(data.X, images)
        assert np.array_equal(data.y, labels)
        assert data.image_shape == (3, 32, 32)
        scaled = datasets.load_cifar10(split, data_home=tmp_path)
        assert np.array_equal(data.scaled().X, scaled.X)
        assert scaled.X.dtype == np.float32
        assert scaled.scaled() is scaled


@pytest.mark.parametrize("protocol", [0, 1, 2, 4, 5])
@pytest.mark.parametrize("dtype", ["u1", "<i4", ">i4", "<f8", ">f8", "?"])
def test_arrays_survive_every_protocol(tmp_path, protocol, dtype):
    array = (np.arange(12) % 5).astype(dtype).reshape(3, 4)
    path = tmp_path / "p"
    for value in (array, np.asfortranarray(array)):
        path.write_bytes(pickle.dumps({"a": [value], "n": (1, 2.5, None, True, "é", b"\xff")}, protocol))
        read = read_array_pickle(path)
        np.testing.assert_array_equal(read["a"][0] if "a" in read else read[b"a"][0], value)


def test_the_original_python_2_form(tmp_path):
    """As Python 2 wrote them: protocol 2, str keys and data as 8-bit strings."""
    raw = TRAIN[:1].reshape(1, -1)
    stream = io.BytesIO()
    stream.write(
        b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04"
    )
    stream.write(
        b"K\x00\x85U\x01b\x87Rq\x05(K\x01K\x01M\x00\x0c\x86cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87R"
    )
    stream.write(b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T\x00\x0c\x00\x00")
    stream.write(raw.tobytes() + b"tbU\x06labels]q\x07K\x06au.")
    (tmp_path / "b").write_bytes(stream.getvalue())
    images, labels = read_cifar_batch(tmp_path / "b")
    assert np.array_equal(np.moveaxis(images, 3, 1), TRAIN[:1])
    assert labels.tolist() == [6]


class Harm:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_cannot_run_code(tmp_path, protocol):
    path, mark = tmp_path / "data_batch_1", tmp_path / "harm"
    path.write_bytes(pickle.dumps({"data": Harm(mark), "labels": []}, protocol))
    with pytest.raises(ValueError, match=r"data_batch_1 .*mkdir, which is refused"):
        read_cifar_batch(path)
    assert not mark.exists()


@pytest.mark.parametrize(
    "attack",
    [
        b"cnumpy\nndarray\n(N}S'state'\nI1\nstb.",  # state set on the class
        b"c_codecs\nencode\n(N}S'__new__'\nI1\nstb.",
        b"cnumpy\ndtype\n}S'dtype'\nI1\nsb.",
        b"cnumpy\nndarray\n.",  # a type as the value
        b"cnumpy\ndtype\n(S'O'\ntR.",
        b"Pid\n.",  # persistent id
        b"cbuiltins\neval\n.",
        b"cnumpy\nload\n.",
        b"Nr\xff\xff\xff\x7f.",  # a memo of two thousand million entries
    ],
)
def test_stand_ins_cannot_be_bent(tmp_path, attack):
    path = tmp_path / "p"
    path.write_bytes(attack)
    with pytest.raises(ValueError, match="p is not a readable batch"):
        read_array_pickle(path)
    good = np.arange(3, dtype=np.uint8)
    path.write_bytes(pickle.dumps([good], 2))  # the next file is read as ever
    assert np.array_equal(read_array_pickle(path)[0], good)


def test_object_arrays_are_refused(tmp_path):
    (tmp_path / "p").write_bytes(pickle.dumps(np.array([{}, 1], dtype=object), 2))
    with pytest.raises(ValueError, match="'O8' are refused"):
        read_array_pickle(tmp_path / "p")


@settings(max_examples=200)
@given(st.data())
def test_damaged_pickles_raise_or_give_plain_values(data):
    whole = bytearray(pickle.dumps({"data": np.arange(4, dtype=np.uint8), "labels": [1]}, 2))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        value = loads_arrays(bytes(whole))
    except Exception:
        return
    assert isinstance(value, (dict, list, tuple, int, float, str, bytes, np.ndarray, type(None), set))


def test_truncated_batches_are_named(tmp_path):
    write_pickles(tmp_path)
    path = tmp_path / "test_batch"
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(ValueError, match="test_batch is not a readable batch"):
        datasets.load_cifar10("test", data_home=tmp_path)
    path.write_bytes(pickle.dumps({"data": np.zeros((1, 7), np.uint8), "labels": [1]}))
    with pytest.raises(ValueError, match=r"3072 columns, got \(1, 7\)"):
        datasets.load_cifar10("test", data_home=tmp_path)
    path.write_bytes(pickle.dumps({"fine_labels": []}))
    with pytest.raises(ValueError, match="lacks data or labels; it has fine_labels"):
        datasets.load_cifar10("test", data_home=tmp_path)
    path.write_bytes(pickle.dumps([1]))
    with pytest.raises(ValueError, match="must hold a dictionary, got list"):
        datasets.load_cifar10("test", data_home=tmp_path)
    (tmp_path / "data_batch_4").unlink()
    with pytest.raises(FileNotFoundError, match="data_batch_4"):
        datasets.load_cifar10("train", data_home=tmp_path)


def test_truncated_strips_are_named(tmp_path):
    image = pytest.importorskip("PIL.Image")
    write_strips(tmp_path)
    path = tmp_path / "test_batch.png"
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ValueError, match=r"test_batch\.png is not a readable image"):
        datasets.load_cifar10("test", data_home=tmp_path)
    path.write_bytes(b"not a picture")
    with pytest.raises(ValueError, match=r"test_batch\.png is not a readable image"):
        read_png_strip(path)
    image.fromarray(np.zeros((2, 9, 3), np.uint8)).save(path)
    with pytest.raises(ValueError, match="1024 pixels wide, one image a row, got 9"):
        read_png_strip(path)
    (tmp_path / "train_lables.json").write_text("[1, 2")
    with pytest.raises(ValueError, match=r"train_lables\.json is not readable JSON"):
        datasets.load_cifar10("train", data_home=tmp_path)
    (tmp_path / "train_lables.json").write_text('["cat"]')
    with pytest.raises(ValueError, match="labels must be integers"):
        datasets.load_cifar10("train", data_home=tmp_path)
    (tmp_path / "train_lables.json").unlink()
    with pytest.raises(FileNotFoundError, match="cifar10's labels"):
        datasets.load_cifar10("train", data_home=tmp_path)


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="download=True"):
        datasets.load_cifar10(data_home=tmp_path)
    with pytest.raises(FileNotFoundError, match="class_counts"):
        datasets.load_cifar10_lt_indices(100, data_home=tmp_path)


def test_long_tail_lists(tmp_path):
    path = tmp_path / "train_indices_seed0.npz"
    np.savez(path, exp_ir10=np.array([5, 3]), exp_ir50=np.array([50_000]))
    assert datasets.load_cifar10_lt_indices(10, data_home=tmp_path).tolist() == [5, 3]
    with pytest.raises(ValueError, match=r"\[0, 49999\], got 50000"):
        datasets.load_cifar10_lt_indices(50, data_home=tmp_path)
    with pytest.raises(ValueError, match="lacks exp_ir7; it has exp_ir10, exp_ir50"):
        datasets.load_cifar10_lt_indices(7, data_home=tmp_path)


# ---- OpenML: scikit-learn's cache filled with a small set, so that the real code runs without a network


def fill_openml_cache(home: Path, data_id: int, table: np.ndarray, labels: np.ndarray) -> Path:
    columns = [f"pixel{i}" for i in range(table.shape[1])]
    lines = ["@RELATION small", *(f"@ATTRIBUTE {c} INTEGER" for c in columns)]
    classes = ",".join(map(str, range(10)))
    lines += [f"@ATTRIBUTE class {{{classes}}}", "@DATA"]
    lines += [",".join(map(str, [*row, label])) for row, label in zip(table, labels, strict=True)]
    arff = ("\n".join(lines) + "\n").encode()
    features = [
        {"index": str(i), "name": name, "data_type": kind, "is_target": target, "is_ignore": "false",
         "is_row_identifier": "false", "number_of_missing_values": "0"}
        for i, (name, kind, target) in enumerate(
            [*((c, "numeric", "false") for c in columns), ("class", "nominal", "true")]
        )
    ]  # fmt: skip
    features[-1]["nominal_value"] = list(map(str, range(10)))
    description = {
        "id": str(data_id), "name": "small", "version": "1", "description": "small", "format": "ARFF",
        "status": "active", "file_id": "7", "url": "https://www.openml.org/data/v1/download/7/small.arff",
        "md5_checksum": hashlib.md5(arff).hexdigest(),
    }  # fmt: skip
    quality = [{"name": "NumberOfInstances", "value": str(len(table))}]
    base = home / "openml" / "openml.org"
    for path, content in (
        (f"api/v1/json/data/{data_id}", {"data_set_description": description}),
        (f"api/v1/json/data/features/{data_id}", {"data_features": {"feature": features}}),
        (f"api/v1/json/data/qualities/{data_id}", {"data_qualities": {"quality": quality}}),
    ):
        write_gz(base / f"{path}.gz", json.dumps(content).encode())
    write_gz(base / "data/v1/download/7/small.arff.gz", arff)
    return base / "data/v1/download/7/small.arff.gz"


def write_gz(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data))


def small_source(monkeypatch, name: str, arrays: openml.Arrays, **changes) -> None:
    real = openml.SOURCES[name]
    settings = {"n_train": len(arrays["y_train"]), "sha256": openml.content_digest(arrays)} | changes
    source = openml.Source(real.data_id, real.shape, **settings)
    monkeypatch.setitem(openml.SOURCES, name, source)


def test_openml_cifar_is_checked_and_kept(tmp_path, monkeypatch):
    table = np.concatenate([TRAIN, TEST]).reshape(13, -1)
    labels = np.concatenate([TRAIN_LABELS, TEST_LABELS])
    fill_openml_cache(tmp_path, 40927, table, labels)
    arrays = {
        "x_train": np.moveaxis(TRAIN, 1, 3),
        "y_train": TRAIN_LABELS,
        "x_test": np.moveaxis(TEST, 1, 3),
        "y_test": TEST_LABELS,
    }
    small_source(monkeypatch, "cifar10", arrays)
    data = datasets.load_cifar10("test", pixels="uint8", data_home=tmp_path, download=True)
    assert np.array_equal(data.X, TEST)
    assert data.y.tolist() == TEST_LABELS.tolist()
    assert (tmp_path / "cifar10" / "cifar10.npz").is_file()
    assert np.array_equal(datasets.load_cifar10(data_home=tmp_path).y, TRAIN_LABELS)


def test_openml_mnist_and_another_content(tmp_path, monkeypatch):
    images = RNG.integers(0, 256, (5, 28, 28), dtype=np.uint8)
    labels = np.array([0, 1, 2, 3, 9])
    fill_openml_cache(tmp_path, 554, images.reshape(5, -1), labels)
    arrays = {"x_train": images[:4], "y_train": labels[:4], "x_test": images[4:], "y_test": labels[4:]}
    small_source(monkeypatch, "mnist", arrays, sha256="0" * 64)
    with pytest.raises(ValueError, match=r"OpenML's mnist \(id 554\) is not the original.*nothing was kept"):
        datasets.load_mnist(data_home=tmp_path, download=True)
    assert not (tmp_path / "mnist").exists()
    small_source(monkeypatch, "mnist", arrays, n_train=9)
    with pytest.raises(ValueError, match=r"over 9 rows of 784 pixels, got shape \(5, 784\)"):
        datasets.load_mnist(data_home=tmp_path, download=True)
    small_source(monkeypatch, "mnist", arrays)
    assert np.array_equal(
        datasets.load_mnist(pixels="uint8", data_home=tmp_path, download=True).X[:, 0], images[:4]
    )


def test_a_broken_connection_is_named(tmp_path, monkeypatch):
    def fail(**_):
        raise URLError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fail)
    with pytest.raises(OSError, match=r"could not get mnist \(id 554\) from OpenML.*no route"):
        datasets.load_mnist(data_home=tmp_path, download=True)


def load_or_skip(load, *args, **kwargs):
    try:
        return load(*args, **kwargs)
    except FileNotFoundError as error:
        pytest.skip(f"not on this machine: {error}")


def test_real_cifar10():
    data = load_or_skip(datasets.load_cifar10, "test", pixels="uint8")
    assert data.X.shape == (10_000, 3, 32, 32)
    assert set(data.class_counts.values()) == {1000}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "cifar10"])
def test_real_files_have_the_digest_that_openml_is_held_to(name):
    load = getattr(datasets, f"load_{name}")
    arrays = {}
    for split in ("train", "test"):
        data = load_or_skip(load, split, pixels="uint8")
        images = np.moveaxis(data.images, 1, 3)
        arrays[f"x_{split}"], arrays[f"y_{split}"] = images, data.y
    assert openml.content_digest(arrays) == openml.SOURCES[name.replace("_", "-")].sha256


def test_real_long_tail_lists_follow_the_profile():
    data = load_or_skip(datasets.load_cifar10, "train", pixels="uint8")
    for ratio in (10, 50, 100, 200):
        indices = load_or_skip(datasets.load_cifar10_lt_indices, ratio)
        counts = np.bincount(data.y[indices], minlength=10)
        assert counts.tolist() == datasets.class_counts(f"cifar10-lt-{ratio}").tolist()
