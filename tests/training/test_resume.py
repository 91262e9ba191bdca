"""Killed with -9 at any moment and resumed, a run ends with the same bits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification
from torch import nn

import equipoise
from equipoise.classifiers import NeuralClassifier
from equipoise.losses import available_losses
from equipoise.training import (
    BalancedFineTuning,
    Callback,
    Checkpoint,
    DeferredReweighting,
    FlipAndShift,
    Outcome,
    PlainStep,
    TensorData,
    fit,
    load_state,
    save_state,
)


def test_kill_and_resume(tmp_path):
    script = Path(__file__).with_name("killed.py")
    here = {**os.environ, "PYTHONPATH": str(Path(equipoise.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env=here,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 2  # those at a certain save; how many of the others hit depends on the machine
    whole, resumed = load_state(tmp_path / "whole"), load_state(tmp_path / "resumed")
    assert whole["history"] == resumed["history"]
    for name, tensor in whole["weights"].items():
        assert torch.equal(tensor, resumed["weights"][name]), name
    assert whole["training_prior"] == resumed["training_prior"]
    assert [path.name for path in (tmp_path / "saves").iterdir()] == ["epoch-000024"]


class OwnsThings:
    """A step with a module, an optimizer and a counter of its own."""

    def __init__(self) -> None:
        self.scale = nn.Linear(2, 2)
        self.optimizer = torch.optim.Adam(self.scale.parameters(), lr=0.1)
        self.calls = 0

    def setup(self, run):
        self.scale, self.optimizer = run.fabric.setup(self.scale, self.optimizer)
        self.fabric = run.fabric

    def __call__(self, model, optimizer, batch):
        optimizer.zero_grad()
        self.optimizer.zero_grad()
        noise = torch.randn(len(batch), 2) + torch.rand(1, generator=batch.generator)
        loss = nn.functional.cross_entropy(self.scale(model(batch.inputs) + noise), batch.labels())
        self.fabric.backward(loss)
        optimizer.step()
        self.optimizer.step()
        self.calls += 1
        return Outcome(loss.detach())

    def state_dict(self):
        return {
            "scale": self.scale.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "calls": self.calls,
        }

    def load_state_dict(self, state):
        self.scale.load_state_dict(state["scale"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.calls = state["calls"]


def _own(epochs, folder=None):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net, step = nn.Linear(3, 2), OwnsThings()
        data = TensorData(torch.randn(50, 3), torch.arange(50) % 2)
    callbacks = [] if folder is None else [Checkpoint(folder)]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    run = fit(net, step, data, optimizer=optimizer, epochs=epochs, batch_size=16, seed=3, callbacks=callbacks)
    return run, step


def test_a_step_that_owns_optimizers_is_resumed_whole(tmp_path):
    whole, step = _own(6)
    _own(2, tmp_path)
    resumed, step_again = _own(6, tmp_path)
    assert step.calls == step_again.calls == 24
    assert whole.history == resumed.history
    for one, two in zip(whole.network.parameters(), resumed.network.parameters(), strict=True):
        assert torch.equal(one, two)
    assert torch.equal(step.scale.weight, step_again.scale.weight)


def test_a_finished_run_is_not_run_again(tmp_path):
    X, y = make_classification(100, random_state=0)
    late = [DeferredReweighting([1, 3], start=0.5), BalancedFineTuning(0.5)]
    params = {"epochs": 4, "checkpoint": tmp_path, "random_state": 0, "callbacks": late}
    first = NeuralClassifier(**params).fit(X, y)
    assert first.training_prior_.tolist() == pytest.approx([0.25, 0.75])
    stamp = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    again = NeuralClassifier(**params).fit(X, y)
    assert np.array_equal(again.predict_proba(X), first.predict_proba(X))
    assert np.array_equal(again.training_prior_, first.training_prior_)
    assert stamp == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}


@pytest.mark.parametrize(
    ("change", "named"),
    [({"lr": 0.5}, "lr was 0.001, is 0.5"), ({"random_state": 1}, "seed was 0, is 1")],
)
def test_another_run_is_refused_and_loses_nothing(tmp_path, change, named):
    X, y = make_classification(100, random_state=0)
    params = {"epochs": 2, "checkpoint": tmp_path, "random_state": 0}
    NeuralClassifier(**params).fit(X, y)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match=named):
        NeuralClassifier(**{**params, **change}).fit(X, y)
    with pytest.raises(ValueError, match="holds another run: data was"):
        NeuralClassifier(**params).fit(X + 1e-3 * y[:, None], y)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_state_round_trip(tmp_path):
    state = {
        "tensors": [
            torch.arange(4, dtype=torch.int32),
            torch.tensor(2.5, dtype=torch.bfloat16),
            torch.zeros(0),
        ],
        3: {"odd": (1, None, True, float("inf"), 0.1 + 0.2)},
        "dict": {"tensor": "a name that looks like the format's own"},
        "array": np.arange(3.0),
    }
    state["shared"] = state["tensors"][0]
    state["images"] = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    save_state(tmp_path / "state", state)
    again = load_state(tmp_path / "state")
    assert again[3] == state[3]
    assert torch.equal(again["images"], state["images"])
    assert again["images"].stride() == state["images"].stride()
    assert again["dict"] == state["dict"]
    assert all(
        torch.equal(one, two) and one.dtype == two.dtype
        for one, two in zip(again["tensors"], state["tensors"], strict=True)
    )
    assert again["array"].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("bad", [{"f": print}, {1.5: 1}, {"s": {1, 2}}])
def test_what_cannot_be_saved_is_named(tmp_path, bad):
    with pytest.raises(TypeError, match="checkpoint"):
        save_state(tmp_path / "state", bad)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", ["tensors.safetensors", "tree.json"])
def test_cut_off_files_are_named(tmp_path, file):
    save_state(tmp_path / "state", {"a": torch.arange(100)})
    path = tmp_path / "state" / file
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ValueError, match=rf"{file} is damaged: it was cut off"):
        load_state(tmp_path / "state")
    path.unlink()
    with pytest.raises(ValueError, match=f"{file} is missing"):
        load_state(tmp_path / "state")


def test_a_full_disk_leaves_the_last_save(tmp_path, monkeypatch):
    from equipoise.training import checkpoint

    data = TensorData(torch.randn(8, 3), torch.arange(8) % 2)

    def run(epochs):
        net = nn.Linear(3, 2)
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        step = PlainStep(nn.CrossEntropyLoss())
        return fit(net, step, data, optimizer=sgd, epochs=epochs, callbacks=[Checkpoint(tmp_path)])

    run(1)

    def full(path, value):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_json", full)
        with pytest.raises(OSError, match="No space left"):
            run(3)
    assert [path.name for path in tmp_path.iterdir()] == ["epoch-000001"]
    assert run(3).epoch == 3


class Interrupt(Callback):
    """Stands before the checkpoint: the epoch it breaks was never saved."""

    def __init__(self, at):
        self._at = at  # private: no setting that the run depends on

    def on_epoch_end(self, run, record):
        if run.epoch == self._at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("loss", sorted(available_losses()))
def test_every_loss_is_resumed_whole(loss, tmp_path):
    X, y = make_classification(90, 6, n_informative=4, n_classes=3, weights=[0.6, 0.3], random_state=0)
    params = {
        "module_params": {"hidden": (8,)},
        "loss": loss,
        "epochs": 4,
        "batch_size": 32,
        "random_state": 0,
    }
    whole = NeuralClassifier(**params, callbacks=[Interrupt(9)]).fit(X, y)
    with pytest.raises(KeyboardInterrupt):
        NeuralClassifier(**params, checkpoint=tmp_path, callbacks=[Interrupt(3)]).fit(X, y)
    resumed = NeuralClassifier(**params, checkpoint=tmp_path, callbacks=[Interrupt(9)]).fit(X, y)
    assert np.array_equal(whole.predict_proba(X, prior="train"), resumed.predict_proba(X, prior="train"))
    assert np.array_equal(whole.training_prior_, resumed.training_prior_)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
@pytest.mark.parametrize("module", ["convnet", "resnet8"])
def test_networks_of_images_are_resumed_whole(module, optimizer, tmp_path):
    """Their weights and momenta lie in memory with channels last, and must again after loading."""
    X, y = np.random.default_rng(0).random((60, 3, 8, 8)), np.arange(60) % 3
    params = {"module": module, "optimizer": optimizer, "epochs": 4, "batch_size": 20, "random_state": 0}
    params |= {"augment": FlipAndShift(1), "step_params": {"clip": 0.5}}
    whole = NeuralClassifier(**params, callbacks=[Interrupt(9)]).fit(X, y)
    with pytest.raises(KeyboardInterrupt):
        NeuralClassifier(**params, checkpoint=tmp_path, callbacks=[Interrupt(3)]).fit(X, y)
    resumed = NeuralClassifier(**params, checkpoint=tmp_path, callbacks=[Interrupt(9)]).fit(X, y)
    weights = resumed.network_.state_dict()
    for name, value in whole.network_.state_dict().items():
        assert torch.equal(value, weights[name]), name
