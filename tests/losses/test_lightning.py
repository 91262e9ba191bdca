"""Losses and the class sampler inside a LightningModule."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from equipoise.losses import get_loss
from equipoise.training import ClassSampler

lightning = pytest.importorskip("pytorch_lightning")


class Module(lightning.LightningModule):
    """The ten lines that Lightning asks for; two hooks tell losses with a memory of the epochs."""

    def __init__(self, loss):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
        self.loss = loss.attach(self.net)

    def training_step(self, batch, number):
        inputs, targets = batch
        return self.loss(self.net(inputs), targets)

    def on_train_epoch_start(self):
        self.loss.start_epoch(self.current_epoch, self.trainer.max_epochs)

    def on_train_epoch_end(self):
        self.loss.end_epoch()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.02)


@pytest.mark.filterwarnings("ignore")  # Lightning's own, on loaders and deprecated calls
@pytest.mark.parametrize(("name", "sampled"), [("la", False), ("nenum", True), ("combined", False)])
def test_a_lightning_module_learns(name, sampled, tmp_path):
    rng = np.random.default_rng(0)
    y = (rng.random(600) < 0.1).astype(np.int64)
    X = (rng.normal(size=(600, 2)) + 3 * y[:, None]).astype(np.float32)
    sampler = ClassSampler(y, "balanced") if sampled else None
    data = TensorDataset(torch.from_numpy(X), torch.from_numpy(y))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = Module(get_loss(name, np.bincount(y)))
        trainer = lightning.Trainer(
            max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
        )  # fmt: skip
        trainer.fit(module, DataLoader(data, batch_size=60, sampler=sampler, shuffle=not sampled))
    predicted = module.net(torch.from_numpy(X)).argmax(1).numpy()
    assert min((predicted == y)[y == c].mean() for c in (0, 1)) > 0.85
    assert not any("_attached" in key for key in module.state_dict())
