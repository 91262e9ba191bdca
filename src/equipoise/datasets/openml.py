"""Image sets from OpenML, checked against what they must contain before they are kept."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import check_choice
from equipoise._core.files import replacing

Arrays = dict[str, npt.NDArray[np.uint8]]


@dataclass(frozen=True)
class Source:
    """A set on OpenML: training rows first, one row an image, planes of color one after the other."""

    data_id: int
    shape: tuple[int, int, int]  # channels, height, width
    n_train: int
    sha256: str  # see `content_digest`


SOURCES = {
    "mnist": Source(
        554, (1, 28, 28), 60_000, "06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16"
    ),
    "fashion-mnist": Source(
        40996, (1, 28, 28), 60_000, "ca3ab2a37f845e1b8ae23cab1b51749a3011ba3bf1d9016176d75cbaabac376f"
    ),
    "cifar10": Source(
        40927, (3, 32, 32), 50_000, "80387ddb9a0edf3fc4a964ee3770296169bb26a651050df20035579673099660"
    ),
}


def fetch_image_set(name: str, home: Path) -> Path:
    """Download a set, check its content, and write ``home/name/name.npz`` whole or not at all.

    scikit-learn checks the MD5 sum that OpenML states for the file; the SHA-256 of the pixels and labels is
    then compared with that of the original distribution, so a changed or reordered upload is refused.
    """
    from sklearn.datasets import fetch_openml

    source = SOURCES[check_choice("name", name, SOURCES)]
    try:
        bunch = fetch_openml(
            data_id=source.data_id,
            data_home=str(home),
            as_frame=False,
            parser="pandas",
            read_csv_kwargs={"dtype": "int16"},  # pixels and labels are small whole numbers
            n_retries=2,
        )
    except OSError as error:
        raise OSError(f"could not get {name} (id {source.data_id}) from OpenML: {error}") from error
    arrays = _arrays(bunch.data, bunch.target, source, name)
    found = content_digest(arrays)
    if found != source.sha256:
        raise ValueError(
            f"OpenML's {name} (id {source.data_id}) is not the original: its SHA-256 is {found}, "
            f"not {source.sha256}; nothing was kept"
        )
    path = home / name / f"{name}.npz"
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return path


def content_digest(arrays: Arrays) -> str:
    """SHA-256 over x_train, y_train, x_test, y_test: images as (n, height, width[, channels]) bytes."""
    digest = hashlib.sha256()
    for key in ("x_train", "y_train", "x_test", "y_test"):
        digest.update(np.ascontiguousarray(arrays[key], dtype=np.uint8).tobytes())
    return digest.hexdigest()


def _arrays(data: Any, target: Any, source: Source, name: str) -> Arrays:
    table = np.asarray(data)
    pixels = table.astype(np.uint8)
    channels, height, width = source.shape
    if table.ndim != 2 or table.shape[1] != channels * height * width or len(table) <= source.n_train:
        raise ValueError(
            f"OpenML's {name} must have over {source.n_train} rows of {channels * height * width} pixels, "
            f"got shape {table.shape}"
        )
    if not np.array_equal(pixels, table.astype(np.float64)):
        raise ValueError(f"OpenML's {name} must have whole pixels in 0 … 255")
    images = np.moveaxis(pixels.reshape(-1, channels, height, width), 1, 3)
    images = images[..., 0] if channels == 1 else images
    labels = np.asarray(target).astype(np.int64).astype(np.uint8)
    split = {"train": slice(None, source.n_train), "test": slice(source.n_train, None)}
    return {
        f"{kind}_{part}": values[rows]
        for part, rows in split.items()
        for kind, values in (("x", images), ("y", labels))
    }
