"""A folder of images, one folder per class."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from equipoise._core.checks import FloatArray
from equipoise._core.extras import optional
from equipoise.datasets.table import DataTable

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"}
_LARGEST_SIDE = 32  # pixels a side that tables of pixels are made with


def image_files(folder: Path) -> list[Path]:
    """All images below ``folder``, in the order of their paths."""
    found = pictures_in(folder)
    if not found:
        raise ValueError(f"{folder} has no images ({', '.join(sorted(SUFFIXES))})")
    return found


def pictures_in(folder: Path) -> list[Path]:
    """The same, or none."""
    return [f for f in sorted(folder.rglob("*")) if f.suffix.lower() in SUFFIXES and f.is_file()]


def pictures_by_class(folder: Path) -> dict[str, list[Path]]:
    """The images below each folder in ``folder``, by its name."""
    classes = sorted(part for part in folder.iterdir() if part.is_dir() and not part.name.startswith("."))
    return {part.name: pictures_in(part) for part in classes}


def open_image(path: Path) -> Any:
    """A Pillow image in gray or in color, eight bits a channel; a damaged file is refused by name."""
    pillow = pillow_image()
    try:
        with pillow.open(path) as opened:
            opened.verify()  # all chunks, also those after the last pixel
        with pillow.open(path) as opened:
            if opened.mode.startswith("I"):  # sixteen bits; Pillow's own conversion would cut them off at 255
                scaled = np.asarray(opened, dtype=np.float64) / 257
                return pillow.fromarray(scaled.clip(0, 255).astype(np.uint8))
            return opened.convert("L" if opened.mode in ("1", "L", "LA", "F") else "RGB")
    except Exception as error:  # Pillow's decoders raise many kinds
        raise ValueError(f"{path} is not a readable image (cut off or damaged?): {error}") from error


def pillow_image() -> Any:
    """Pillow's module ``Image``, or a sentence that says how to get it."""
    return optional("PIL.Image", "images need Pillow")


def read_images(
    files: list[Path], side: int | None = None, *, color: bool | None = None
) -> tuple[FloatArray, tuple[int, int, int]]:
    """Images as rows of pixels in [0, 1], all scaled to ``side``; gray if all are, unless ``color`` says."""
    images = []
    for path in files:
        picture = open_image(path)
        if side is None:
            side = min(_LARGEST_SIDE, max(picture.size))
        images.append(picture.resize((side, side), pillow_image().Resampling.BILINEAR))
    if color is None:
        color = any(image.mode == "RGB" for image in images)
    mode = "RGB" if color else "L"
    rows = np.stack([np.asarray(image.convert(mode), dtype=np.float64) / 255 for image in images])
    assert side is not None
    return rows.reshape(len(rows), -1), (side, side, 3 if color else 1)


def read_image_folder(folder: Path, positive: Any = None, side: int | None = None) -> DataTable:
    """Images under ``folder/CLASS/…`` as a table. The size is that of the first image, at most 32 a side."""
    found = pictures_by_class(folder)
    files = [(name, file) for name, own in found.items() for file in own]
    if not files:
        raise ValueError(
            f"{folder} must hold one folder of images for each class; no sub-folder has an image"
        )
    notes = [f"The folder {name!r} has no images." for name, own in found.items() if not own]
    X, shape = read_images([f for _, f in files], side)
    notes.append(f"{len(X):,} images were scaled to {shape[0]}×{shape[1]} pixels.")
    labels = np.array([name for name, _ in files], dtype=object)
    names = [f"pixel{i}" for i in range(X.shape[1])]
    table = DataTable.from_arrays(X, labels, positive, names=names, name=folder.name, target="folder")
    return replace(
        table, image_shape=shape, ids=np.array([str(f.relative_to(folder)) for _, f in files])
    ).with_notes(*notes)
