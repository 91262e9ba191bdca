"""One pair's training, watched: the per-class clock of a small diffusion model, stopped when both have struck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from equipoise._core.random import derive_seed
from equipoise.generative import Assigner, MemorizationMonitor, NoiseSchedule, nearest_two, sample
from equipoise.generative.ddpm import DenoisingStep
from equipoise.generative.monitor import log_spaced
from equipoise.networks.unet import UNet
from equipoise.training import Callback, ClassSampler, Run, TensorData, fit

_EPOCH = 10  # steps
_DECAY = 0.99
_SHOWN = 6


@dataclass(frozen=True)
class Seen:
    """The looks, a line a class and look; how good the assigner is; the last loss; samples by their neighbors."""

    table: pd.DataFrame
    assigner_accuracy: float
    loss: float
    gallery: list[dict[str, Any]]


class _Clock(Callback):
    """Looks at the running mean of the weights, and ends the run when every class has been memorized."""

    def __init__(self, monitor: MemorizationMonitor, network: UNet) -> None:
        self.monitor = monitor
        self.average = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(_DECAY))  # type: ignore[no-untyped-call]

    def on_step_start(self, run: Run) -> None:
        self.average.update_parameters(run.network)

    def on_epoch_end(self, run: Run, record: dict[str, float]) -> bool | None:
        if run.epoch not in self.monitor.marks:
            return None
        self.average.eval()
        looked = self.monitor.look(self.average, derive_seed(run.seed, "look", run.epoch))
        rows: list[Any] = looked.to_dict("records")
        self.monitor.records += [{"step": run.epoch * run.batches, **row} for row in rows]
        return all(np.isfinite(time) for time in self.monitor.crossing_times().values())


def watch(
    images: npt.NDArray[np.float64],
    codes: npt.NDArray[np.int64],
    pool: tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]],
    *,
    shares: npt.ArrayLike,
    preset: str,
    batch_size: int,
    lr: float,
    steps: int,
    first_look: int,
    looks_per_decade: int,
    n_samples: int,
    stride: int | None,
    seed: int,
) -> Seen:
    """Train on the images, classes drawn in the given shares, and look at log-spaced steps.

    The classifier that tells the samples' classes learns from ``pool``, more images of the two classes and their
    codes: from forty alone it calls half of the sandals sneakers.
    """

    def seen_by_network(raw: npt.NDArray[np.float64]) -> torch.Tensor:
        return torch.tensor((raw - images.mean(axis=0)) / images.std(), dtype=torch.float32)

    scaled = seen_by_network(images)
    targets = torch.from_numpy(codes)
    schedule = NoiseSchedule()
    assigner = Assigner(seen_by_network(pool[0]), pool[1], seed=derive_seed(seed, "assigner"))
    marks = log_spaced(max(1, steps // _EPOCH), looks_per_decade, first=max(1, first_look // _EPOCH))
    monitor = MemorizationMonitor(
        scaled, codes, assigner, schedule, marks, n_samples=n_samples, stride=stride
    )
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derive_seed(seed, "network"))
        network = UNet(tuple(scaled.shape[1:]), preset)
    clock = _Clock(monitor, network)
    run = fit(
        network,
        DenoisingStep(schedule, conditional=False),
        TensorData(scaled, targets),
        optimizer=torch.optim.Adam(network.parameters(), lr=lr, fused=True),
        epochs=marks[-1],
        batch_size=batch_size,
        seed=seed,
        sampler=ClassSampler(targets, shares, n_draws=_EPOCH * batch_size),
        callbacks=[clock],
        verbose=False,
    )
    gallery = _gallery(clock.average, scaled, images, assigner, schedule, stride, seed)
    return Seen(monitor.table, assigner.balanced_accuracy, float(run.history[-1]["loss"]), gallery)


def _gallery(
    network: Any,
    scaled: torch.Tensor,
    images: npt.NDArray[np.float64],
    assigner: Assigner,
    schedule: NoiseSchedule,
    stride: int | None,
    seed: int,
) -> list[dict[str, Any]]:
    """A few samples of each class with their two nearest training images, in whole gray values."""
    generator = torch.Generator().manual_seed(derive_seed(seed, "gallery"))
    drawn = sample(network, 48, tuple(scaled.shape[1:]), schedule, generator, stride=stride, verbose=False)
    labels, found = assigner(drawn), nearest_two(drawn.numpy(), scaled.numpy())
    pictures = drawn.numpy() * images.std() + images.mean(axis=0)

    def gray(image: npt.NDArray[Any]) -> list[Any]:
        whole: list[Any] = np.clip(np.round(image), 0, 255).astype(int).tolist()
        return whole

    return [
        {
            "label": int(code),
            "ratio": float(found.ratio[row]),
            "sample": gray(pictures[row]),
            "nearest": [gray(images[index]) for index in found.index[row]],
        }
        for code in (0, 1)
        for row in np.flatnonzero(labels == code)[:_SHOWN]
    ]
