"""SVHN, CelebA's hair and ImageNet-100 from tiny files in their authors' layouts."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from equipoise.datasets import find_celeba_hair_files, find_imagenet100_files, load_svhn


def picture(path, level):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((20, 16, 3), level, dtype=np.uint8)).save(path)


def test_svhn_has_its_zeros_and_its_axes_in_place(tmp_path):
    (tmp_path / "svhn").mkdir()
    images = np.random.default_rng(0).integers(0, 256, (32, 32, 3, 4), dtype=np.uint8)
    savemat(tmp_path / "svhn" / "test_32x32.mat", {"X": images, "y": np.array([[10], [1], [9], [10]])})
    data = load_svhn("test", pixels="uint8", data_home=tmp_path)
    assert data.y.tolist() == [0, 1, 9, 0]
    assert np.array_equal(data.X[2, 1], images[:, :, 1, 2])
    with pytest.raises(FileNotFoundError, match=r"looked for train_32x32\.mat"):
        load_svhn("train", data_home=tmp_path)
    (tmp_path / "svhn" / "train_32x32.mat").write_bytes(b"no matrix")
    with pytest.raises(ValueError, match=r"train_32x32\.mat is not a readable file of SVHN"):
        load_svhn("train", data_home=tmp_path)


@pytest.fixture
def celeba(tmp_path):
    """Five faces: black, blond, black and bald, none, and a bald one of the test part."""
    folder = tmp_path / "celeba"
    names = "Bald Black_Hair Blond_Hair Brown_Hair Gray_Hair Smiling"
    faces = ["-1 1 -1 -1 -1 1", "-1 -1 1 -1 -1 -1", "1 1 -1 -1 -1 1", "-1 -1 -1 -1 -1 1", "1 -1 -1 -1 -1 1"]
    for i in range(5):
        picture(folder / "img_align_celeba" / f"{i}.jpg", 50 * i)
    lines = ["5", names, *(f"{i}.jpg  {face}" for i, face in enumerate(faces))]
    (folder / "list_attr_celeba.txt").write_text("\n".join(lines))
    (folder / "list_eval_partition.txt").write_text("\n".join(f"{i}.jpg {2 * (i == 4)}" for i in range(5)))
    return tmp_path


def test_celeba_faces_have_one_kind_of_hair(celeba):
    files, codes = find_celeba_hair_files("train", data_home=celeba)
    assert codes.tolist() == [0, 2], "black, blond; not black and bald, and not without any"
    assert files.read([0, 1]).shape == (2, 3, 32, 32)
    files, codes = find_celeba_hair_files("test", data_home=celeba)
    assert codes.tolist() == [4]
    assert files.paths[0].endswith("4.jpg")


def test_celeba_says_which_list_to_bring(celeba):
    (celeba / "celeba" / "list_eval_partition.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"looked for list_eval_partition\.txt"):
        find_celeba_hair_files("train", data_home=celeba)
    (celeba / "celeba" / "list_attr_celeba.txt").write_text("1\nSmiling\n0.jpg 1\n")
    (celeba / "celeba" / "list_eval_partition.txt").write_text("0.jpg 0\n")
    with pytest.raises(ValueError, match="has no attribute Black_Hair"):
        find_celeba_hair_files("train", data_home=celeba)


def test_imagenet_takes_the_listed_classes(tmp_path):
    for name in ("n03", "n01", "n02"):
        picture(tmp_path / "imagenet100" / "train" / name / "a.JPEG", 100)
    files, codes = find_imagenet100_files("train", data_home=tmp_path)
    assert codes.tolist() == [0, 1, 2]
    (tmp_path / "imagenet100" / "classes.txt").write_text("n01\nn03\n")
    files, codes = find_imagenet100_files("train", data_home=tmp_path)
    assert codes.tolist() == [0, 1]
    assert "n03" in files.paths[1]
    with pytest.raises(FileNotFoundError, match="looked for imagenet100/val"):
        find_imagenet100_files("test", data_home=tmp_path)
