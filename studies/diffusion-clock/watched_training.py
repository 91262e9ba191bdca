"""One pair's training, watched: the per-class clock of a small diffusion model, stopped when both have struck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from equipoise.generative import DDPM
from equipoise.generative.monitor import Look, log_spaced
from equipoise.metrics import balls, frechet_distance

_EPOCH = 10  # steps
_SHOWN = 6

Labeled = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Seen:
    """The looks, a line a class and look, with the quality of the samples; how good the assigner is; the last loss;
    samples by their neighbors.
    """

    table: pd.DataFrame
    assigner_accuracy: float
    assigner_macro_f1: float
    loss: float
    gallery: list[dict[str, Any]]


def watch(
    images: npt.NDArray[np.float64],
    codes: npt.NDArray[np.int64],
    *,
    pool: Labeled,
    real: Labeled,
    judged: int,
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
    codes: from the few of the training alone it calls half of the sandals sneakers. In its features the first
    ``judged`` samples of a class are set beside the ``real`` test images of it.
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
        model.monitor_.table.join(pd.DataFrame(_quality(looks, model, real, judged))),
        model.assigner_accuracy_,
        model.assigner_macro_f1_,
        float(model.history_["loss"].iloc[-1]),
        _gallery(looks[-1], model, images),
    )


def _quality(looks: list[Look], model: DDPM, real: Labeled, judged: int) -> list[dict[str, float]]:
    """Density, coverage and Fréchet distance of each class at each look, in the order of the monitor's table.

    Each needs the same number of samples; a class with fewer at a look has none of the three.
    """
    judge: Any = model.monitor_.assign

    @torch.inference_mode()
    def features(images: Tensor) -> npt.NDArray[Any]:
        return np.asarray(judge.network.features(images))

    scaled = torch.tensor((real[0] - model.mean_) / model.scale_, dtype=torch.float32)
    known = features(scaled)
    rows = []
    for look in looks:
        seen = features(look.samples)
        for code in range(2):
            ours, theirs = known[real[1] == code], seen[look.labels == code][:judged]
            row = {}
            if len(theirs) == judged:
                found = balls(ours, theirs)
                row = {"density": found.density, "coverage": found.coverage}
                row["frechet"] = frechet_distance(ours, theirs)
            rows.append(row)
    return rows


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
        for code in range(2)
        for row in np.flatnonzero(look.labels == code)[:_SHOWN]
    ]
