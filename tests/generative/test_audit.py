"""Audits of samples: planted copies are found, and chance is not mistaken for copying."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from equipoise.cli import main
from equipoise.datasets.labeled_images import LabeledImages
from equipoise.generative.audit import audit_copies
from equipoise.generative.audit_page import build_audit
from equipoise.generative.sample_sources import find_samples

EVIL = "<script>alert(1)</script>"


def training(n=(40, 20), names=("common", "rare"), seed=0):
    rng = np.random.default_rng(seed)
    images = rng.normal(size=(sum(n), 1, 6, 6)).astype(np.float32)
    return LabeledImages(images, np.repeat(np.arange(len(n)), n), names, "made up")


def planted(known, share=0.5, n=60, seed=1):
    """Fresh samples of both classes, of which a share of the last class's are noisy copies."""
    rng = np.random.default_rng(seed)
    fresh = rng.normal(size=(2 * n, 1, 6, 6)).astype(np.float32)
    labels = np.repeat(known.classes, n)
    copied = round(share * n)
    source = known.images[rng.choice(np.flatnonzero(known.codes == 1), copied)]
    fresh[n : n + copied] = source + 0.05 * fresh[n : n + copied]
    return fresh, labels


def test_planted_copies_are_found_in_their_class_and_counted():
    known = training()
    found = audit_copies(*planted(known)[:1], known, planted(known)[1])
    common, rare = found.classes
    assert (common.copies, rare.copies) == (0, 30)
    assert rare.fraction.low < 0.5 < rare.fraction.high
    assert rare.copied
    assert not common.copied
    assert found.most_copied == "rare"
    assert 0 < rare.reproduced <= 20
    assert (found.neighbors.ratio[found.closest(1, 5)] < 1 / 3).all()


def test_no_copies_of_few_samples_is_no_proof():
    known = training()
    found = audit_copies(*planted(known, share=0, n=20)[:1], known, planted(known, share=0, n=20)[1])
    assert found.classes[0].copies == 0
    assert found.classes[0].fraction.high > 0.1  # 0 of 20
    assert found.most_copied is None
    assert "No class is copied" in found.in_words()[0]


def test_exact_duplicates_in_the_data_do_not_hide_a_copy():
    """Both neighbors of a copy would be equally near."""
    known = training()
    twice = LabeledImages(
        np.repeat(known.images, 2, axis=0), np.repeat(known.codes, 2), known.classes, "twice"
    )
    samples, labels = planted(known)
    assert audit_copies(samples, twice, labels).duplicates == 60
    assert audit_copies(samples, twice, labels).classes[1].copies == 30


def test_near_duplicates_in_the_data_are_the_baseline():
    known = training((30, 30))
    rng = np.random.default_rng(2)
    close = known.images[30:] + 0.02 * rng.normal(size=(30, 1, 6, 6)).astype(np.float32)
    doubled = LabeledImages(np.concatenate([known.images, close]), np.r_[known.codes, np.ones(30, int)],
                            known.classes, "near twice")  # fmt: skip
    samples, labels = planted(known, share=0.2)
    found = audit_copies(samples, doubled, labels)
    assert found.classes[1].baseline.value == 1.0
    assert not found.classes[1].copied


def test_classes_of_samples_without_labels_are_assigned_or_refused():
    known = training()
    samples, _ = planted(known)
    with pytest.raises(ValueError, match="no labels: give them"):
        audit_copies(samples, known)
    assert audit_copies(samples, known, assign="nearest").classes[1].copies == 30
    told = audit_copies(samples, known, assign="classifier")
    assert "classifier of balanced accuracy" in told.labels_from
    assert sum(one.n_samples for one in told.classes) == len(samples)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, y, k: (s[:, :, :5], k, y), "must have one shape"),
        (lambda s, y, k: (255 * s, k, y), "bring them to one scale"),
        (lambda s, y, k: (np.full_like(s, np.nan), k, y), "samples"),
        (lambda s, y, k: (s, k, ["other"] * len(s)), "no training images"),
        (lambda s, y, k: (s[:5], k, y[:5]), "too few to say anything"),
        (lambda s, y, k: (s, training((40, 1)), y), "too few to say anything"),
        (lambda s, y, k: (s, k, y[:-1]), "samples"),
    ],
)
def test_bad_input_is_a_sentence(change, message):
    known = training()
    with pytest.raises(ValueError, match=message):
        audit_copies(*change(*planted(known), known))


def test_the_page_shows_the_pairs_and_escapes_names():
    known = training(names=("common", EVIL))
    found = audit_copies(*planted(known)[:1], known, planted(known)[1])
    page = build_audit(found, EVIL).to_html()
    assert EVIL not in page
    assert page.count("data:image/svg+xml") == 2
    markdown = build_audit(found, "samples").to_markdown()
    assert "30" in markdown


@pytest.fixture
def files(tmp_path):
    known = training()
    samples, labels = planted(known)
    np.savez(tmp_path / "train.npz", X=known.images[:, 0], y=known.labels)
    np.savez(tmp_path / "drawn.npz", X=samples[:, 0], y=labels)
    np.savez(tmp_path / "bare.npz", X=samples[:, 0])
    return tmp_path


def test_the_command_tells_and_writes(files, capsys):
    out = files / "audit.html"
    arguments = ["diffusion", "audit", str(files / "drawn.npz"), "--train", str(files / "train.npz")]
    assert main([*arguments, "--out", str(out)]) == 0
    assert "'rare' is copied more than every other class" in capsys.readouterr().out
    assert "Copies found" in out.read_text()


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["bare.npz", "--train", "train.npz"], "have no labels"),
        (["drawn.npz"], "--train DATA"),
        (["missing.npz", "--train", "train.npz"], "no such file"),
    ],
)
def test_the_command_refuses_in_a_sentence(files, capsys, extra, message):
    out = files / "audit.html"
    arguments = [str(files / part) if part.endswith(".npz") else part for part in extra]
    assert main(["diffusion", "audit", *arguments, "--out", str(out)]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_folders_of_images_with_and_without_classes(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 255, size=(6, 8, 8)).astype(np.uint8)
    for number, picture in enumerate(pixels):
        for folder in (tmp_path / "flat", tmp_path / "classes" / "ab"[number % 2]):
            folder.mkdir(parents=True, exist_ok=True)
            image.fromarray(picture).save(folder / f"{number}.png")
    flat, sorted_ = find_samples(tmp_path / "flat"), find_samples(tmp_path / "classes")
    assert flat.labels is None
    assert flat.images.shape == sorted_.images.shape == (6, 1, 8, 8)
    assert sorted(sorted_.labels) == ["a"] * 3 + ["b"] * 3


def test_a_saved_model_and_a_pipeline_are_drawn_from(tmp_path, monkeypatch):
    from equipoise.generative import DDPM

    known = training()
    model = DDPM("tiny", conditional=True, steps=2, batch_size=20, n_samples=4, stride=2, random_state=0)
    model.fit(np.repeat(np.repeat(known.images[:, 0], 2, 1), 2, 2), known.labels).save(tmp_path / "model")
    drawn = find_samples(tmp_path / "model", n=5, stride=2)
    assert drawn.images.shape == (5, 1, 12, 12)
    assert drawn.labels == ["common", "rare", "common", "rare", "common"]

    (tmp_path / "pipe").mkdir()
    (tmp_path / "pipe" / "model_index.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "diffusers", None)
    with pytest.raises(ImportError, match="pip install diffusers"):
        find_samples(tmp_path / "pipe")
    asked = []

    def pipeline(batch_size, **options):
        asked.append(options["num_inference_steps"])
        return SimpleNamespace(images=np.zeros((batch_size, 4, 4, 3)))

    loader = SimpleNamespace(from_pretrained=lambda path, **options: pipeline)
    monkeypatch.setitem(sys.modules, "diffusers", SimpleNamespace(DiffusionPipeline=loader))
    assert find_samples(tmp_path / "pipe", n=70, stride=9).images.shape == (70, 3, 4, 4)
    assert asked == [9, 9]
