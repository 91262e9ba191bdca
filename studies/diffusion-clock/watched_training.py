"""One pair's training, watched: the per-class clock of a small diffusion model, stopped when both have struck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from equipoise.generative import DDPM
from equipoise.generative.monitor import Look, log_spaced
from equipoise.metrics import coverage, density, frechet_distance

from .images import Labeled

if TYPE_CHECKING:
    from equipoise.generative.assignment import Assigner
    from equipoise.generative.monitor import MemorizationMonitor

_EPOCH = 10  # steps
_SHOWN = 6


@dataclass(frozen=True)
class Seen:
    """The looks, a line a class and look; the samples' quality at each; how good the assigner is; the last loss;
    samples by their neighbors."""

    table: pd.DataFrame
    quality: dict[str, list[float]]
    assigner_accuracy: float
    assigner_macro_f1: float
    loss: float
    gallery: list[dict[str, Any]]


def watch(
    images: npt.NDArray[np.float64],
    codes: npt.NDArray[np.int64],
    pool: Labeled,
    *,
    shares: npt.ArrayLike,
    steps: int,
    first_look: int,
    looks_per_decade: int,
    seed: int,
    stop: str | None = "all memorized",
    **settings: Any,
) -> Seen:
    """Train on the images, classes drawn in the given shares, and look at log-spaced steps.

    The classifier that tells the samples' classes learns from ``pool``, more images of the two classes and their
    codes: from forty alone it calls half of the sandals sneakers.
    """
    marks = log_spaced(max(1, steps // _EPOCH), looks_per_decade, first=max(1, first_look // _EPOCH))
    looks: list[Look] = []
    model = DDPM(
        class_shares=shares,
        epoch_steps=_EPOCH,
        steps=_EPOCH * marks[-1],
        looks=[_EPOCH * mark for mark in marks],
        held_out_fraction=0.0,
        stop=stop,
        keep=lambda _, look: looks.append(look),
        random_state=seed,
        verbose=False,
        **settings,
    ).fit(images, codes, assigner_data=pool)
    return Seen(
        model.monitor_.table,
        _quality(looks, model, pool, len(images)),
        model.assigner_accuracy_,
        model.assigner_macro_f1_,
        float(model.history_["loss"].iloc[-1]),
        _gallery(looks[-1], model, images),
    )


def _quality(looks: list[Look], model: DDPM, pool: Labeled, trained_on: int) -> dict[str, list[float]]:
    """Density, coverage and Fréchet distance of each look's samples in the classifier's features.

    They are compared with as many images that were not trained on, in equal shares: the pool of each class begins
    with the images of the training set. Where it holds no others, there is no comparison.
    """
    monitor = cast("MemorizationMonitor", model.monitor_)
    network = cast("Assigner", monitor.assign).network
    images, codes = pool
    count = monitor.n_samples // 2
    fresh = np.concatenate([np.flatnonzero(codes == code)[trained_on:][:count] for code in (0, 1)])
    if len(fresh) < 2 * count:
        return {}
    scaled = torch.tensor((images[fresh] - model.mean_) / model.scale_, dtype=torch.float32)

    def seen(batch: torch.Tensor) -> npt.NDArray[Any]:
        with torch.inference_mode():
            found: npt.NDArray[Any] = network.features(batch).double().numpy()
        return found

    real = seen(scaled)
    drawn = [seen(look.samples) for look in looks]
    return {
        "density": [density(real, fake) for fake in drawn],
        "coverage": [coverage(real, fake) for fake in drawn],
        "frechet": [frechet_distance(real, fake) for fake in drawn],
    }


def _gallery(look: Look, model: DDPM, images: npt.NDArray[np.float64]) -> list[dict[str, Any]]:
    """A few samples of each class with their two nearest training images, in whole gray values."""
    pictures = look.samples.numpy() * model.scale_ + model.mean_

    def gray(image: npt.NDArray[Any]) -> list[Any]:
        whole: list[Any] = np.clip(np.round(image), 0, 255).astype(int).tolist()
        return whole

    return [
        {
            "label": int(code),
            "ratio": float(look.neighbors.ratio[row]),
            "sample": gray(pictures[row]),
            "nearest": [gray(images[index]) for index in look.neighbors.index[row]],
        }
        for code in (0, 1)
        for row in np.flatnonzero(look.labels == code)[:_SHOWN]
    ]
