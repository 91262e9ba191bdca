"""Images from idx files, npz and folders: the same images whatever holds them, and a sentence for what is wrong."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest
from PIL import Image

from equipoise.datasets import read_labeled_images

RNG = np.random.default_rng(0)
RAW = RNG.integers(0, 256, (12, 6, 6), dtype=np.uint8)
LABELS = np.array([0, 1, 2] * 4, dtype=np.uint8)


def write_idx(path, values, pack=False):
    header = struct.pack(">BBBB", 0, 0, 8, values.ndim) + struct.pack(f">{values.ndim}I", *values.shape)
    data = header + values.tobytes()
    path.write_bytes(gzip.compress(data) if pack else data)
    return path


@pytest.fixture
def holders(tmp_path):
    """The same twelve images as an idx pair, an npz and a folder."""
    idx = tmp_path / "idx"
    idx.mkdir()
    write_idx(idx / "train-images-idx3-ubyte.gz", RAW, pack=True)
    write_idx(idx / "train-labels-idx1-ubyte.gz", LABELS, pack=True)
    write_idx(idx / "t10k-images-idx3-ubyte", RAW[:1])
    np.savez(tmp_path / "images.npz", X=RAW, y=LABELS)
    for number, (image, label) in enumerate(zip(RAW, LABELS, strict=True)):
        own = tmp_path / "folder" / str(label)
        own.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(own / f"{number:03d}.png")
    return tmp_path


def as_set(data):
    return {(label, image.tobytes()) for label, image in zip(data.labels, data.images, strict=True)}


def test_idx_npz_and_folder_give_the_same_images(holders):
    idx = read_labeled_images(holders / "idx")
    assert idx.shape == (1, 6, 6)
    assert idx.counts.tolist() == [4, 4, 4]
    assert np.array_equal(idx.images[:, 0], RAW / np.float32(255))
    npz = read_labeled_images(holders / "images.npz")
    assert npz.fingerprint == idx.fingerprint
    named = read_labeled_images(holders / "idx" / "train-images-idx3-ubyte.gz")
    assert named.fingerprint == idx.fingerprint
    assert as_set(read_labeled_images(holders / "folder")) == as_set(idx)


@pytest.mark.parametrize(
    "array",
    [RAW, RAW[:, None], RAW[..., None], RAW.reshape(12, -1), RAW / 255.0],
    ids=["nhw", "nchw", "nhwc", "flat", "fractions"],
)
def test_every_usual_layout_is_read(tmp_path, array):
    np.savez(tmp_path / "a.npz", images=array, labels=LABELS)
    found = read_labeled_images(tmp_path / "a.npz")
    assert np.allclose(found.images[:, 0], RAW / 255)


def test_color_stays_color_and_gray_joins_it(tmp_path):
    for name, mode in (("a", "L"), ("b", "RGB")):
        (tmp_path / name).mkdir()
        Image.fromarray(RAW[0]).convert(mode).save(tmp_path / name / "x.png")
    assert read_labeled_images(tmp_path).shape == (3, 6, 6)


def test_sixteen_bit_images_keep_their_range(tmp_path):
    (tmp_path / "a").mkdir()
    Image.fromarray(RAW[0].astype(np.uint16) * 257).save(tmp_path / "a" / "x.png")
    assert np.allclose(read_labeled_images(tmp_path).images[0, 0], RAW[0] / 255)


def test_classes_are_chosen_and_named(holders):
    found = read_labeled_images(holders / "idx", classes={"2": "bag", "0": "shoe"})
    assert found.classes == ("bag", "shoe")
    assert np.array_equal(found.images[found.codes == 0][:, 0], RAW[LABELS == 2] / np.float32(255))
    with pytest.raises(ValueError, match="class '7' of idx has no images; there are images of '0', '1', '2'"):
        read_labeled_images(holders / "idx", classes=["0", "7"])
    with pytest.raises(ValueError, match="different names"):
        read_labeled_images(holders / "idx", classes={"0": "x", "1": "x"})


def test_a_smaller_limit_is_a_subset(holders):
    few = read_labeled_images(holders / "idx", limit=2, seed=3)
    more = read_labeled_images(holders / "idx", limit=3, seed=3)
    assert few.counts.tolist() == [2, 2, 2]
    assert as_set(few) < as_set(more)
    uneven = read_labeled_images(holders / "folder", limit={"1": 1})
    assert uneven.counts.tolist() == [4, 1, 4]
    with pytest.raises(ValueError, match="class '9' of limit"):
        read_labeled_images(holders / "idx", limit={"9": 1})


def test_scaling_averages(holders):
    small = read_labeled_images(holders / "idx", size=4, classes=["0"])
    assert small.shape == (1, 4, 4)
    half = np.kron(RNG.random((1, 5, 5)), np.ones((2, 2))).reshape(1, 10, 10)
    np.savez(holders / "big.npz", X=half.astype(np.float32), y=[0])
    assert np.allclose(read_labeled_images(holders / "big.npz", size=5).images[0, 0], half[0, ::2, ::2])


def test_images_of_different_sizes_are_named(holders):
    odd = holders / "folder" / "1" / "zz.png"
    Image.fromarray(RAW[0]).resize((9, 7)).save(odd)
    with pytest.raises(ValueError, match=r"000\.png is 6×6 and .*zz\.png is 9×7; --size 6"):
        read_labeled_images(holders / "folder")
    assert read_labeled_images(holders / "folder", size=6).counts.tolist() == [4, 5, 4]


def test_an_empty_class_folder_is_named(holders):
    (holders / "folder" / "nothing").mkdir()
    with pytest.raises(ValueError, match=r"the class folder .*nothing has no images"):
        read_labeled_images(holders / "folder")
    assert len(read_labeled_images(holders / "folder", classes=["0", "1"]).images) == 8


@pytest.mark.parametrize(
    "name",
    ["idx/train-images-idx3-ubyte.gz", "idx/train-labels-idx1-ubyte.gz", "images.npz", "folder/1/001.png"],
)
def test_a_cut_off_file_is_named(holders, name):
    path = holders / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=rf"{path.name}.*cut off"):
        read_labeled_images(holders / name.split("/")[0])


def test_other_wrong_input(holders, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        read_labeled_images(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="must hold one folder of images a class"):
        read_labeled_images(tmp_path / "empty")
    np.savez(tmp_path / "a.npz", X=RAW, y=LABELS[:5])
    with pytest.raises(ValueError, match="12 images and 5 labels"):
        read_labeled_images(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", things=RAW)
    with pytest.raises(ValueError, match="must hold images 'X' and labels 'y', it has 'things'"):
        read_labeled_images(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", X=np.full((2, 5, 5), np.nan), y=[0, 1])
    with pytest.raises(ValueError, match="not finite"):
        read_labeled_images(tmp_path / "c.npz")
    (holders / "idx" / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(FileNotFoundError, match="no labels beside"):
        read_labeled_images(holders / "idx")
