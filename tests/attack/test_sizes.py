"""Files that declare far more than they hold are refused before memory is taken for it."""

from __future__ import annotations

import os
import zipfile

import numpy as np
import pytest

import equipoise
from attack.formats import FORMATS, fitted, seal_again
from equipoise._core.files import DamagedFileError
from equipoise.classifiers import NeuralClassifier
from equipoise.generative import DDPM
from equipoise.training import load_state, save_state


@pytest.mark.parametrize("hidden", [(10**6, 10**6), (30_000, 30_000)])
def test_a_network_of_which_few_weights_are_saved(tmp_path, hidden):
    fitted("classifier", 0).save(tmp_path / "x")
    state = load_state(tmp_path / "x")
    state["params"]["module_params"] = {"hidden": hidden}
    save_state(tmp_path / "x", state)
    with pytest.raises(
        DamagedFileError, match=r"declare a network of [0-9,]{11,} weights, and [0-9]+ were saved"
    ):
        NeuralClassifier.load(tmp_path / "x")


def test_a_schedule_of_more_steps_than_any_sampler_takes(tmp_path):
    fitted("diffusion", 0).save(tmp_path / "x")
    state = load_state(tmp_path / "x")
    state["settings"]["noise_steps"] = 10**12
    save_state(tmp_path / "x", state)
    with pytest.raises(DamagedFileError, match="steps must be at most"):
        DDPM.load(tmp_path / "x")


def test_an_archive_that_unfolds_beyond_the_memory(tmp_path, monkeypatch):
    from equipoise._core import memory
    from equipoise._core.sealed import open_sealed, sealing

    with sealing(tmp_path / "x") as temporary:
        np.savez_compressed(temporary / "a.npz", zeros=np.zeros(1_000_000))
    monkeypatch.setattr(memory, "available_memory", lambda: 4_000_000)
    with pytest.raises(DamagedFileError, match=r"a\.npz .*declares 8\.0 MB of data and 4\.0 MB"):
        open_sealed(tmp_path / "x").read_arrays("a.npz", "zeros")


def test_a_part_of_an_advisor_that_unfolds_beyond_the_memory(tmp_path, monkeypatch):
    from equipoise._core import memory

    FORMATS["logistic advisor"].save(tmp_path / "x", 0)
    with zipfile.ZipFile(tmp_path / "x" / "encoders.skops", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("more.npy", bytes(50_000_000))
    seal_again(tmp_path / "x")
    monkeypatch.setattr(memory, "available_memory", lambda: 20_000_000)
    with pytest.raises(DamagedFileError, match=r"encoders\.skops declares 50\.\d MB of data and 20\.0 MB"):
        equipoise.load(tmp_path / "x")


def test_a_file_with_a_hole_of_terabytes_is_not_read(tmp_path, monkeypatch):
    from equipoise._core import memory
    from equipoise._core.sealed import open_sealed, sealing

    with sealing(tmp_path / "x") as temporary:
        (temporary / "a").write_text("text")
    os.truncate(tmp_path / "x" / "a", 10_000_000)
    monkeypatch.setattr(memory, "available_memory", lambda: 4_000_000)
    with pytest.raises(ValueError, match=r"x/a declares 10\.0 MB of data and 4\.0 MB"):
        open_sealed(tmp_path / "x")


def test_a_network_beyond_the_memory_is_refused_before_it_is_made():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    with pytest.raises(ValueError, match=r"weights take 4\.0 TB and .* are free: try smaller layers"):
        NeuralClassifier(module_params={"hidden": (10**6, 10**6)}, epochs=1).fit(X, y)
    with pytest.raises(TypeError, match="hidden must be a list of widths"):
        NeuralClassifier(module_params={"hidden": 10**6}, epochs=1).fit(X, y)
