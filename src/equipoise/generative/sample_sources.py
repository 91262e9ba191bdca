"""Samples to audit, from whatever holds or makes them: files, a run of Equipoise, a saved model, a pipeline."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from equipoise._core.checks import check_integer
from equipoise.datasets.home import load_npz
from equipoise.datasets.labeled_images import LabeledImages, Pixels, read_images, read_labeled_images
from equipoise.generative.folder import RunFolder

_BATCH = 64


@dataclass(frozen=True)
class Samples:
    """Samples (n, channels, height, width), the names of their classes if these are known, and where they are from.

    ``training`` holds the images that the generator learned from, where the source has them.
    """

    images: Pixels
    labels: list[str] | None
    source: str
    training: LabeledImages | None = None


def find_samples(
    source: str | PathLike[str],
    *,
    n: int = 500,
    stride: int | None = 50,
    step: int | None = None,
    size: int | None = None,
    seed: int = 0,
) -> Samples:
    """Read samples, or draw them from a model.

    Parameters
    ----------
    source : an npz with ``X`` (and ``y``), a folder of images (by class, or all together), the folder of a
        ``diffusion train`` run, one that :meth:`DDPM.save` wrote, or that of a diffusers pipeline
    n, stride, seed : samples to draw from a model, steps of the sampler (None: all) and seed
    step : which checkpoint of a run; the last by default
    size : scale images from files to this many pixels per side

    Returns
    -------
    Samples

    Raises
    ------
    ValueError
        If the source holds neither images nor a model that is known.
    """
    path = Path(source)
    check_integer("samples", n, low=1)
    if not path.exists():
        raise FileNotFoundError(f"no such file or folder: {path}")
    if RunFolder.is_run(path):
        return _from_run(RunFolder.open(path), n, stride, step, seed)
    if (path / "model_index.json").is_file():
        return _from_pipeline(path, n, stride, seed)
    if path.is_dir() and any(path.glob("*.safetensors")):
        from equipoise.generative.ddpm import DDPM

        return _drawn(DDPM.load(path), n, stride, seed, str(path))
    return _from_files(path, size)


def _from_files(path: Path, size: int | None) -> Samples:
    labeled = any(entry.is_dir() for entry in path.iterdir()) if path.is_dir() else _has_labels(path)
    if not labeled:
        return Samples(read_images(path, size=size), None, str(path))
    data = read_labeled_images(path, size=size)
    return Samples(data.images, data.labels.tolist(), str(path))


def _has_labels(path: Path) -> bool:
    return path.suffix != ".npz" or any(name in load_npz(path) for name in ("y", "target", "label", "labels"))


def _from_run(run: RunFolder, n: int, stride: int | None, step: int | None, seed: int) -> Samples:
    from equipoise.generative.ddpm import held_out_rows

    steps = run.checkpoints()
    if not steps:
        raise FileNotFoundError(f"{run.path} has no checkpoints yet")
    if step is not None and step not in steps:
        raise ValueError(f"{run.path} has no checkpoint of step {step}; it has {', '.join(map(str, steps))}")
    chosen = max(steps) if step is None else step
    data = run.images()
    held = held_out_rows(data.codes, run.settings["held_out_fraction"], run.settings["seed"])
    training = LabeledImages(data.images[~held], data.codes[~held], data.classes, data.name)
    drawn = _drawn(run.load(chosen), n, stride, seed, f"step {chosen:,} of {run.path}")
    return Samples(drawn.images, drawn.labels, drawn.source, training)


def _drawn(model: Any, n: int, stride: int | None, seed: int, source: str) -> Samples:
    asked = np.resize(model.classes_, n) if model.conditional else None
    images = model.sample(n, asked, stride=stride, random_state=seed)
    images = images[:, None] if images.ndim == 3 else images
    return Samples(images, None if asked is None else [str(name) for name in asked], source)


def _from_pipeline(path: Path, n: int, stride: int | None, seed: int) -> Samples:
    """Samples of an unconditional diffusers pipeline on this machine; its weights must be safetensors."""
    try:
        diffusers: Any = importlib.import_module("diffusers")
    except ImportError as error:
        raise ImportError(f"{path} is a diffusers pipeline: pip install diffusers") from error
    import torch

    pipeline = diffusers.DiffusionPipeline.from_pretrained(path, use_safetensors=True, local_files_only=True)
    generator = torch.Generator().manual_seed(seed)
    options: dict[str, Any] = {"generator": generator, "output_type": "np"}
    if stride is not None:
        options["num_inference_steps"] = stride
    try:
        parts = [
            np.asarray(pipeline(batch_size=min(_BATCH, n - start), **options).images)
            for start in range(0, n, _BATCH)
        ]
    except TypeError as error:
        raise ValueError(
            f"{path} is not an unconditional pipeline, draw its samples yourself: {error}"
        ) from None
    images = np.concatenate(parts)
    return Samples(np.ascontiguousarray(np.moveaxis(images, 3, 1), dtype=np.float32), None, str(path))
