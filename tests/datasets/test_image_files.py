"""Pictures that stay on disk: read by batches, the same training as from memory, the paper's sets by name."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from equipoise.classifiers import (
    AutoencoderClassifier,
    ConditionalClassifier,
    MetaClassifier,
    NeuralClassifier,
)
from equipoise.datasets import (
    Dataset,
    ImageFiles,
    binary_images,
    find_binary_image_files,
    find_image_files,
    load_binary_images,
)
from equipoise.training.inputs import Preparation


@pytest.fixture
def folder(tmp_path):
    """Forty dark and ten bright pictures of 12 × 12."""
    random = np.random.default_rng(0)
    for name, count, level in (("dark", 40, 70), ("light", 10, 160)):
        (tmp_path / name).mkdir()
        for i in range(count):
            pixels = random.integers(level - 40, level + 40, (12, 12, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / f"{i}.png")
    return tmp_path


@pytest.mark.parametrize(
    "wrap",
    [
        lambda base: base,
        lambda base: ConditionalClassifier(estimator=base, random_state=0),
        lambda base: MetaClassifier(estimator=base, meta_set=3, random_state=0),
        lambda _: AutoencoderClassifier(epochs=2, early_stopping=True, random_state=0),
    ],
    ids=["neural", "conditional", "meta", "autoencoder"],
)
def test_training_from_disk_is_training_from_memory(folder, wrap):
    files, y = find_image_files(folder, side=12)
    X = files.read(np.arange(len(files)))
    base = NeuralClassifier("convnet", module_params={"widths": (4, 8)}, epochs=2, random_state=0)
    there, here = wrap(base).fit(files, y), wrap(base).fit(X, y)
    assert np.array_equal(there.predict_proba(files), here.predict_proba(X))


def test_only_a_batch_is_read_at_a_time(folder, monkeypatch):
    files, y = find_image_files(folder, side=12)
    sizes, read = [], ImageFiles.read
    monkeypatch.setattr(ImageFiles, "read", lambda self, rows: sizes.append(len(rows)) or read(self, rows))
    clf = NeuralClassifier(
        "convnet", module_params={"widths": (4, 8)}, epochs=1, batch_size=16, random_state=0
    )
    clf.fit(files, y)
    assert max(sizes[1:]) <= 16, "after one look at some pictures for their mean and spread"


@pytest.fixture
def annotations(folder):
    """The layout of iNaturalist: file names with folders, categories of their own ids, one annotation an image."""
    files = sorted(folder.glob("*/*.png"))
    return {
        "images": [{"id": 100 + i, "file_name": f"{f.parent.name}/{f.name}"} for i, f in enumerate(files)],
        "annotations": [
            {"id": i, "image_id": 100 + i, "category_id": 7 if f.parent.name == "dark" else 3}
            for i, f in enumerate(files)
        ],
        "categories": [{"id": 3, "name": "Aves"}, {"id": 7, "name": "Fungi"}],
    }


def test_annotations_as_inaturalist_has_them(folder, annotations):
    source = folder / "train2018.json"
    source.write_text(json.dumps(annotations), encoding="utf-8")
    files, y = find_image_files(source, side=12)
    assert Counter(y) == {"Fungi": 40, "Aves": 10}
    same, names = find_image_files(folder, side=12)
    order = [same.paths.index(path) for path in files.paths]
    assert np.array_equal(files.read(np.arange(50)), same.read(order))
    assert [{"dark": "Fungi", "light": "Aves"}[names[row]] for row in order] == y.tolist()
    clf = NeuralClassifier(
        "convnet", module_params={"widths": (4, 8)}, loss="la", epochs=15, lr=0.02, random_state=0
    )
    assert clf.fit(files, y).score(files, y) > 0.9
    del annotations["categories"]
    source.write_text(json.dumps(annotations), encoding="utf-8")
    assert Counter(find_image_files(source)[1]) == {7: 40, 3: 10}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found.pop("images"), r"must hold 'images' .* failed with KeyError\('images'\)"),
        (lambda found: found["annotations"].clear(), "must label at least one image, got none"),
        (lambda found: found["annotations"].append(found["annotations"][0]), "once, got 2 of image 100$"),
        (lambda found: found["images"].pop(), "got 1 of image 149, which it does not list"),
    ],
)
def test_annotations_that_do_not_fit_say_so(folder, annotations, change, message):
    change(annotations)
    (folder / "bad.json").write_text(json.dumps(annotations), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        find_image_files(folder / "bad.json")


def test_large_pictures_are_prepared_in_little_memory(monkeypatch):
    """Four hundred pictures of 256² are 80 MB as bytes and 630 MB in double precision."""
    monkeypatch.setattr(
        ImageFiles, "read", lambda self, rows: np.zeros((len(rows), *self.shape[1:]), dtype=np.uint8)
    )
    files = ImageFiles([f"{i}.png" for i in range(400)], side=256)
    tracemalloc.start()
    prepared = Preparation.fit(files)(files)
    blocks = sum(len(block) for block in prepared.split(1024))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert blocks == 400
    assert peak < 250e6


def test_a_table_with_paths(folder):
    frame = pd.DataFrame({"path": ["dark/0.png", "light/3.png"], "label": ["no", "yes"]})
    frame.to_csv(folder / "list.csv", index=False)
    files, y = find_image_files(folder / "list.csv", side=8, color=False)
    assert files.read([0, 1]).shape == (2, 1, 8, 8)
    assert y.tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match="has no column 'target'; its columns are path, label"):
        find_image_files(folder / "list.csv", label="target")
    frame.assign(path=["dark/0.png", "gone.png"]).to_csv(folder / "list.csv", index=False)
    with pytest.raises(FileNotFoundError, match=r"no such file: .*gone\.png"):
        find_image_files(folder / "list.csv")


def test_a_picture_that_cannot_be_read_is_named_and_the_others_go_on(folder):
    (folder / "dark" / "0.png").write_bytes(b"not a picture")
    files, _ = find_image_files(folder, side=12)
    with pytest.warns(UserWarning, match=r"0\.png is not a readable picture and is taken as black"):
        pixels = files.read([0, 1])
    assert not pixels[0].any()
    assert pixels[1].any()


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("automobile/truck", (5000, 50)),
        ("automobile/deer", (5000, 50)),
        ("animal/vehicle", (30_000, 300)),
        ("household", (2500, 25)),
    ],
)
def test_the_papers_sets_have_the_printed_counts(monkeypatch, name, counts):
    def whole(n_classes, each):
        def load(split, *, pixels, data_home):
            y = np.repeat(np.arange(n_classes), each)
            return Dataset(np.zeros((len(y), 1, 1, 1), dtype=np.uint8), y)

        return load

    monkeypatch.setattr(binary_images, "load_cifar10", whole(10, 5000))
    monkeypatch.setattr(binary_images, "load_cifar100", whole(100, 500))
    data = load_binary_images(name, beta=100)
    assert np.bincount(data.y).tolist() == list(counts)
    again = load_binary_images(name, beta=100)
    assert np.array_equal(data.y, again.y)


def test_a_medical_set_is_found_or_says_which_file_to_bring(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"Bring train\.csv and the pictures of the aptos competition"
    ):
        find_binary_image_files("aptos", data_home=tmp_path)
    place = tmp_path / "aptos" / "train_images"
    place.mkdir(parents=True)
    for i in range(50):
        Image.fromarray(np.full((6, 6, 3), i, dtype=np.uint8)).save(place / f"p{i}.png")
    grades = [0] * 30 + [1, 2, 3, 4] * 5
    table = pd.DataFrame({"id_code": [f"p{i}" for i in range(50)], "diagnosis": grades})
    table.to_csv(tmp_path / "aptos" / "train.csv", index=False)
    train, y = find_binary_image_files("aptos", beta=10, side=6, data_home=tmp_path)
    test, y_test = find_binary_image_files("aptos", "test", beta=10, side=6, data_home=tmp_path)
    assert np.bincount(y).tolist() == [24, 2]
    assert np.bincount(y_test).tolist() == [6, 4]
    assert not set(train.paths) & set(test.paths)
