"""Pictures that stay on disk: read a batch at a time from a folder, or from a table with their paths."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import IntArray, check_integer
from equipoise.datasets.folders import pictures_by_class, pillow_image
from equipoise.datasets.home import PathLike


class ImageFiles:
    """Pictures by their paths, all scaled to one size, that are decoded when rows are asked for.

    It takes the place of an array of images in the networks' ``fit`` and ``predict``: a batch is in memory, not the
    set. A picture that cannot be decoded is named in a warning and is black; the others go on.

    Parameters
    ----------
    paths : sequence of paths
        The files, one a row.
    side : int
        Height and width that pictures are scaled to.
    color : bool
        Three channels, or one.

    Examples
    --------
    >>> files = ImageFiles(["a.png", "b.png"], side=64)
    >>> files.shape, files[[1]].shape
    ((2, 3, 64, 64), (1, 3, 64, 64))
    """

    def __init__(self, paths: Sequence[PathLike], side: int = 256, color: bool = True) -> None:
        self.paths = [str(path) for path in paths]
        self.side = check_integer("side", side, low=1)
        self.color = bool(color)

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """As an array of the pictures would have it: (n, channels, height, width)."""
        return len(self.paths), 3 if self.color else 1, self.side, self.side

    def __getitem__(self, rows: Any) -> ImageFiles:
        """The files of some rows, a slice, a mask or numbers, still unread."""
        chosen = np.arange(len(self.paths))[rows]
        return ImageFiles([self.paths[row] for row in chosen], self.side, self.color)

    def read(self, rows: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """The pixels of some rows, (n, channels, height, width).

        Parameters
        ----------
        rows : array of int
            Row numbers.

        Returns
        -------
        array of uint8
            The pixels.
        """
        found = np.asarray(rows, dtype=np.int64)
        out = np.zeros((len(found), *self.shape[1:]), dtype=np.uint8)
        for place, row in enumerate(found.tolist()):
            picture = self._decode(self.paths[row])
            if picture is not None:
                out[place] = picture
        return out

    def _decode(self, path: str) -> npt.NDArray[np.uint8] | None:
        pillow, mode, shape = pillow_image(), "RGB" if self.color else "L", (self.side, self.side)
        try:
            with pillow.open(path) as opened:
                opened.draft(mode, shape)  # JPEG: decode small at once
                scaled = opened.convert(mode).resize(shape, pillow.Resampling.BILINEAR)
        except Exception as error:  # Pillow's decoders raise many kinds
            message = f"{path} is not a readable picture and is taken as black: {error}"
            warnings.warn(message, UserWarning, stacklevel=3)
            return None
        pixels = np.asarray(scaled)
        return np.moveaxis(pixels, 2, 0) if self.color else pixels[None]


def find_image_files(
    source: PathLike,
    *,
    side: int = 256,
    color: bool = True,
    path: str = "path",
    label: str = "label",
    root: Any = None,
) -> tuple[ImageFiles, npt.NDArray[Any]]:
    """Pictures and their labels, unread: a folder with one folder for each class, or a list of paths.

    Parameters
    ----------
    source : path
        A folder ``source/CLASS/…``, a CSV file, or a JSON file of annotations as iNaturalist has them: ``images``
        with ``id`` and ``file_name``, ``annotations`` with ``image_id`` and ``category_id``, and, for labels with
        names, ``categories`` with ``id`` and ``name``.
    side, color : int, bool
        As for :class:`ImageFiles`.
    path, label : str
        Columns of a CSV file.
    root : path, optional
        What the paths in a file are relative to; by default the file's own folder.

    Returns
    -------
    ImageFiles
        The pictures.
    array
        Their labels.

    Raises
    ------
    FileNotFoundError
        If a file that the list names is missing; the message names the first.
    ValueError
        If a column, or a part of the annotations, is missing, or an image has several labels.
    """
    place = Path(source)
    if place.is_dir():
        named = [(name, file) for name, own in pictures_by_class(place).items() for file in own]
        if not named:
            raise ValueError(
                f"{place} must hold one folder of images for each class; no sub-folder has an image"
            )
        labels: npt.NDArray[Any] = np.array([name for name, _ in named], dtype=object)
        return ImageFiles([file for _, file in named], side, color), labels
    names, labels = _annotated(place) if place.suffix == ".json" else _listed(place, path, label)
    base = place.parent if root is None else Path(root)
    files = [base / name for name in names]
    absent = next((file for file in files if not file.is_file()), None)
    if absent is not None:
        raise FileNotFoundError(f"no such file: {absent}, which {place} names")
    return ImageFiles(files, side, color), labels


def _listed(place: Path, path: str, label: str) -> tuple[list[str], npt.NDArray[Any]]:
    """Paths and labels from the columns of a table."""
    from equipoise.datasets.reading import read_frame

    frame = read_frame(place)
    for column in (path, label):
        if column not in frame:
            raise ValueError(
                f"{place} has no column {column!r}; its columns are {', '.join(map(str, frame.columns))}"
            )
    return [str(name) for name in frame[path]], frame[label].to_numpy()


def _annotated(place: Path) -> tuple[list[str], npt.NDArray[Any]]:
    """Paths and labels from annotations in the layout of COCO, with one label for an image."""
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        images = {image["id"]: str(image["file_name"]) for image in found["images"]}
        names = {one["id"]: str(one["name"]) for one in found.get("categories", ())}
        marks = [(mark["image_id"], mark["category_id"]) for mark in found["annotations"]]
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        wanted = "'images' (id, file_name) and 'annotations' (image_id, category_id)"
        raise ValueError(f"{place} must hold {wanted}; reading it failed with {error!r}") from None
    counted = Counter(image for image, _ in marks)
    odd = next((image for image, _ in marks if counted[image] > 1 or image not in images), None)
    if odd is not None:
        listed = "" if odd in images else ", which it does not list"
        raise ValueError(f"{place} must label each image once, got {counted[odd]} of image {odd!r}{listed}")
    if not marks:
        raise ValueError(f"{place} must label at least one image, got none")
    labels = np.array([names.get(category, category) for _, category in marks], dtype=object)
    return [images[image] for image, _ in marks], labels


def evenly_spaced(total: int, most: int) -> IntArray:
    """At most ``most`` of ``total`` rows, evenly spaced."""
    return np.unique(np.linspace(0, total - 1, min(total, most)).astype(np.int64))
