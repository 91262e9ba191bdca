"""Features of images by a network whose weights the user brings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from equipoise._core.checks import check_integer
from equipoise._core.progress import track
from equipoise.datasets.image_files import ImageFiles
from equipoise.networks.base import build_network

_MEAN, _SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's channels


def extract_features(
    images: ImageFiles | npt.NDArray[Any],
    weights: str | os.PathLike[str] | Mapping[str, Tensor],
    module: str | Callable[..., nn.Module] | nn.Module = "resnet50",
    *,
    batch_size: int = 32,
    device: str = "cpu",
    verbose: bool | None = None,
) -> npt.NDArray[np.float32]:
    """Compute what a pretrained network sees in images: the input of its last layer.

    Parameters
    ----------
    images : ImageFiles or array of shape (n, 3, height, width)
        Pictures on disk, which are read by batches, or pixels: bytes, or fractions of one.
    weights : path or mapping
        The network's weights: a safetensors file, or a state dict. Nothing is downloaded.
    module : str, callable or nn.Module
        ``"resnet50"``, ``"resnet34"``, ``"resnet18"``, or whatever
        :func:`~equipoise.networks.build_network` takes weights for.
    batch_size : int
        Pictures at a time.
    device : str
        Where to compute, such as ``"cpu"`` or ``"cuda"``.
    verbose : bool, optional
        Show a progress bar; by default where somebody is looking.

    Returns
    -------
    array of shape (n, n_features), float32
        The features of each image.

    Raises
    ------
    ValueError
        If the images have not three channels, or the weights do not fit the network.

    References
    ----------
    Pezzicoli et al., appendix G.3: ResNet-50's 2048 features of BTAD and MVTec.

    Examples
    --------
    >>> network = build_network("resnet18", (3, 32, 32), 1000, width=4)
    >>> pictures = np.zeros((2, 3, 32, 32), dtype=np.uint8)
    >>> extract_features(pictures, network.state_dict(), network).shape
    (2, 32)
    """
    shape = tuple(getattr(images, "shape", ()))
    if len(shape) != 4 or shape[1] != 3:
        raise ValueError(f"images must be (n, 3, height, width), got shape {shape}")
    check_integer("batch_size", batch_size, low=1)
    network = build_network(module, images.shape[1:], 1, weights=weights, frozen=True).to(device).eval()
    starts = range(0, len(images), batch_size)
    found = []
    with torch.inference_mode():
        for start in track(starts, "features", verbose=verbose):
            rows = np.arange(start, min(start + batch_size, len(images)))
            found.append(network.features(_scaled(images, rows).to(device)).float().cpu().numpy())  # type: ignore[operator]
    return np.concatenate(found)


def _scaled(images: ImageFiles | npt.NDArray[Any], rows: npt.NDArray[np.int64]) -> Tensor:
    """A batch as networks of ImageNet expect it."""
    raw = images.read(rows) if isinstance(images, ImageFiles) else images[rows]
    pixels = torch.as_tensor(np.asarray(raw, dtype=np.float32)) / (255 if raw.dtype == np.uint8 else 1)
    mean, spread = (torch.tensor(each).reshape(1, 3, 1, 1) for each in (_MEAN, _SPREAD))
    return (pixels - mean) / spread
