"""Images with class labels from whatever holds them: idx files, an npz, or one folder of images per class.

Every image is kept as it is; only ``size`` scales. What is wrong ends in a sentence that names the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import IntArray, check_integer
from equipoise._core.random import derive_seed
from equipoise.datasets.folders import open_image, pictures_by_class, pictures_in, pillow_image
from equipoise.datasets.home import PathLike, load_npz
from equipoise.datasets.idx import read_idx

Pixels = npt.NDArray[np.float32]

_NPZ_PAIRS = [(x, y) for x in ("X", "x", "images", "data") for y in ("y", "target", "label", "labels")]
_NPZ_PAIRS += [("x_train", "y_train"), ("train_images", "train_labels")]


@dataclass(frozen=True)
class LabeledImages:
    """Images (n, channels, height, width), a class code for each, and the names that the codes stand for.

    Attributes
    ----------
    images : array of shape (n, channels, height, width)
        The pixels.
    codes : array of int
        The class code of each image.
    classes : tuple of str
        The names that the codes stand for.
    name : str
        Where the images came from.
    """

    images: Pixels
    codes: IntArray
    classes: tuple[str, ...]
    name: str

    @property
    def counts(self) -> IntArray:
        """The number of images of each class."""
        return np.bincount(self.codes, minlength=len(self.classes))

    @property
    def labels(self) -> npt.NDArray[Any]:
        """The name of each image's class."""
        return np.array(self.classes)[self.codes]

    @property
    def shape(self) -> tuple[int, ...]:
        """Channels, height and width of one image."""
        return tuple(int(side) for side in self.images.shape[1:])

    @property
    def fingerprint(self) -> str:
        """A short name for exactly these images and labels."""
        digest = hashlib.blake2b(digest_size=12)
        for part in (self.images, self.codes):
            digest.update(repr((part.shape, part.dtype.str)).encode())
            digest.update(np.ascontiguousarray(part).data)
        digest.update(repr(self.classes).encode())
        return digest.hexdigest()

    def __str__(self) -> str:
        channels, height, width = self.shape
        counts = ", ".join(f"{c} ({n:,})" for c, n in zip(self.classes, self.counts, strict=True))
        colors = "" if channels == 1 else f" with {channels} channels"
        return f"{len(self.images):,} images of {width}×{height}{colors}: {counts}"


def read_labeled_images(
    path: PathLike,
    *,
    labels: PathLike | None = None,
    size: int | None = None,
    classes: Sequence[str] | Mapping[str, str] | None = None,
    limit: int | Mapping[str, int] | None = None,
    seed: int = 0,
) -> LabeledImages:
    """Read images and their classes.

    Parameters
    ----------
    path : path
        An idx file of images (its labels lie beside it under MNIST's names, or in ``labels``) or a folder with
        such a pair; an ``.npz`` with images ``X`` and labels ``y``; or a folder with a folder of images per class.
    labels : path, optional
        The idx file of the labels, if its name does not follow from that of the images.
    size : int, optional
        Scale all images to this many pixels per side. Without it they must all have one size already.
    classes : sequence or mapping of str, optional
        Only these; a mapping gives them other names. Codes follow the sorted names, as in scikit-learn.
    limit : int or mapping, optional
        Keep at most so many images of each class, drawn at random; a mapping limits single classes.
    seed : int
        Of the draw. A smaller limit gives a subset of a larger one.

    Returns
    -------
    LabeledImages
        The images that were kept, with their classes.

    Raises
    ------
    FileNotFoundError
        If there is nothing at ``path``.
    """
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"no such file or folder: {source}")
    if size is not None:
        check_integer("size", size, low=4)
    wanted = None if classes is None else [str(name) for name in classes]
    if isinstance(classes, Mapping) and isinstance(limit, Mapping):  # by either name
        old = {str(new): str(name) for name, new in classes.items()}
        limit = {old.get(name, name): most for name, most in limit.items()}
    if source.is_dir() and not _idx_images(source):
        found = _read_folder(source, size, wanted, limit, seed)
    else:
        found = _read_arrays(source, labels)
        found = limited(chosen(found, wanted), limit, seed)
        found = replace(found, images=_as_pixels(found.images, str(source), size))
    if isinstance(classes, Mapping):
        found = replace(found, classes=_renamed(found.classes, classes))
    return _in_order(found)


def read_images(path: PathLike, *, size: int | None = None) -> Pixels:
    """Images without classes: an ``.npz`` with ``X``, or a folder of image files.

    Parameters
    ----------
    path
        The file, or the folder (and all folders in it).
    size
        Scale all images to this many pixels per side.

    Returns
    -------
    (n, channels, height, width), bytes as fractions of 255

    Raises
    ------
    ValueError
        If there are no images, they differ in size, or they hold values that are not finite.
    """
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"no such file or folder: {source}")
    if source.is_dir():
        files = pictures_in(source)
        if not files:
            raise ValueError(f"{source} holds no images")
        return _read_files(files, size)
    arrays = load_npz(source)
    name = next((name for name, _ in _NPZ_PAIRS if name in arrays), None)
    if name is None:
        raise ValueError(f"{source} must hold images 'X', it has {', '.join(map(repr, arrays))}")
    if len(arrays[name]) == 0:
        raise ValueError(f"{source} holds no images")
    return _as_pixels(arrays[name], str(source), size)


def chosen(data: LabeledImages, wanted: Sequence[str] | None) -> LabeledImages:
    """Only the classes named; a class without images is refused."""
    empty = [name for name, n in zip(data.classes, data.counts, strict=True) if n == 0]
    if wanted is None:
        if empty:
            raise ValueError(f"class {empty[0]!r} of {data.name} has no images")
        return data
    _check_wanted(wanted, [name for name in data.classes if name not in empty], data.name)
    new = np.full(len(data.classes), -1)
    for code, name in enumerate(wanted):
        new[data.classes.index(name)] = code
    codes = new[data.codes]
    return LabeledImages(data.images[codes >= 0], codes[codes >= 0], tuple(wanted), data.name)


def limited(data: LabeledImages, limit: int | Mapping[str, int] | None, seed: int = 0) -> LabeledImages:
    """At most so many images of each class."""
    rows = _kept(data.codes, data.classes, limit, seed)
    return replace(data, images=data.images[rows], codes=data.codes[rows])


def _check_wanted(wanted: Sequence[str], known: Sequence[str], name: str) -> None:
    for label in wanted:
        if label not in known:
            listed = ", ".join(map(repr, known[:20])) + (" …" if len(known) > 20 else "")
            raise ValueError(f"class {label!r} of {name} has no images; there are images of {listed}")
    if len(set(wanted)) < len(wanted):
        raise ValueError(f"classes must be named once each, got {', '.join(map(repr, wanted))}")


def _renamed(names: tuple[str, ...], new: Mapping[str, str]) -> tuple[str, ...]:
    renamed = tuple(str(new[name]) for name in names)
    if len(set(renamed)) < len(renamed):
        raise ValueError(f"classes must have different names, got {', '.join(map(repr, renamed))}")
    return renamed


def _in_order(data: LabeledImages) -> LabeledImages:
    names = sorted(data.classes)
    new = np.array([names.index(name) for name in data.classes], dtype=np.int64)
    return replace(data, codes=new[data.codes], classes=tuple(names))


def _kept(
    codes: IntArray, names: Sequence[str], limit: int | Mapping[str, int] | None, seed: int
) -> npt.NDArray[np.intp]:
    if limit is None:
        return np.arange(len(codes))
    if isinstance(limit, Mapping):
        _check_wanted(list(limit), names, "limit")
    kept = []
    for code, name in enumerate(names):
        rows = np.flatnonzero(codes == code)
        most = limit.get(name, len(rows)) if isinstance(limit, Mapping) else limit
        check_integer(f"limit of class {name!r}", most, low=1)
        order = np.random.default_rng(derive_seed(seed, "limit", name)).permutation(rows)
        kept.append(order[:most])
    return np.sort(np.concatenate(kept))


def _idx_images(folder: Path) -> Path | None:
    """The idx file of images in a folder, the training one if there are several."""
    found = [f for f in sorted(folder.iterdir()) if f.is_file() and "images" in f.name and "idx" in f.name]
    return min(found, key=lambda f: not f.name.startswith("train"), default=None)


def _labels_of(images: Path) -> Path:
    for name in (
        images.name.replace("images", "labels").replace("idx3", "idx1"),
        images.name.replace("images", "labels"),
    ):
        for other in (name, name.removesuffix(".gz"), f"{name}.gz"):
            if other != images.name and (images.parent / other).is_file():
                return images.parent / other
    raise FileNotFoundError(f"no labels beside {images}: name their file with --labels")


def _read_arrays(source: Path, labels: PathLike | None) -> LabeledImages:
    """With the images as the file has them, so that what is not chosen is never copied."""
    if source.is_file() and source.stat().st_size == 0:
        raise ValueError(f"{source} is empty: nothing to learn from")
    if source.suffix == ".npz":
        images, named = _read_npz(source)
        where = str(source)
    else:
        file = _idx_images(source) if source.is_dir() else source
        assert file is not None
        images = read_idx(file)
        where = str(file)
        other = _labels_of(file) if labels is None else Path(labels)
        named = read_idx(other)
        if named.ndim != 1:
            raise ValueError(f"{other} must hold one label an image, got shape {named.shape}")
    if len(images) != len(named):
        raise ValueError(f"{where} has {len(images):,} images and {len(named):,} labels")
    if len(images) == 0:
        raise ValueError(f"{where} holds no images")
    if named.dtype.kind == "f" and not np.isfinite(named).all():
        raise ValueError(f"{where} holds labels that are not finite numbers")
    values, codes = np.unique(named, return_inverse=True)
    return LabeledImages(
        images,
        codes.astype(np.int64),
        tuple(_label(value) for value in values.tolist()),
        source.name,
    )


def _label(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _read_npz(source: Path) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    arrays = load_npz(source)
    for images, labels in _NPZ_PAIRS:
        if images in arrays and labels in arrays:
            return arrays[images], np.ravel(arrays[labels])
    have = ", ".join(map(repr, arrays))
    raise ValueError(f"{source} must hold images 'X' and labels 'y', it has {have}")


def _as_pixels(raw: npt.NDArray[Any], where: str, size: int | None = None) -> Pixels:
    """Any usual layout as (n, channels, height, width); bytes become fractions of 255."""
    if raw.dtype.kind not in "biuf":
        raise ValueError(f"{where}: images must be numbers, got {raw.dtype}")
    if raw.ndim == 2 and int(raw.shape[1] ** 0.5) ** 2 == raw.shape[1]:
        side = int(raw.shape[1] ** 0.5)
        raw = raw.reshape(-1, side, side)
    if raw.ndim == 3:
        raw = raw[:, None]
    elif raw.ndim == 4 and raw.shape[3] in (1, 3) and raw.shape[1] not in (1, 3):
        raw = np.moveaxis(raw, 3, 1)
    if raw.ndim != 4 or raw.shape[1] not in (1, 3):
        raise ValueError(
            f"{where}: images must be (n, height, width), (n, 1 or 3, height, width) or "
            f"(n, height, width, 1 or 3), got shape {raw.shape}"
        )
    scale = 255 if raw.dtype == np.uint8 else 1
    images = np.ascontiguousarray(raw, dtype=np.float32) / np.float32(scale)
    if not np.isfinite(images).all():
        raise ValueError(f"{where} holds pixels that are not finite numbers")
    return images if size is None or images.shape[2:] == (size, size) else _scaled(images, size)


def _scaled(images: Pixels, size: int) -> Pixels:
    """Scaled by averaging (and linear growth), channel by channel."""
    image = pillow_image()
    flat = images.reshape(-1, *images.shape[2:])
    rule = image.Resampling.BOX if min(images.shape[2:]) >= size else image.Resampling.BILINEAR
    small = [np.asarray(image.fromarray(plane).resize((size, size), rule)) for plane in flat]
    return np.stack(small).reshape(len(images), images.shape[1], size, size)


def _read_folder(
    folder: Path,
    size: int | None,
    wanted: list[str] | None,
    limit: int | Mapping[str, int] | None,
    seed: int,
) -> LabeledImages:
    files = pictures_by_class(folder)
    if not files:
        raise ValueError(f"{folder} must hold one folder of images a class, or a pair of idx files")
    if wanted is None:
        empty = [name for name, own in files.items() if not own]
        if empty:
            raise ValueError(f"the class folder {folder / empty[0]} has no images")
        wanted = list(files)
    _check_wanted(wanted, [name for name, own in files.items() if own], folder.name)
    paths = [path for name in wanted for path in files[name]]
    codes = np.repeat(np.arange(len(wanted)), [len(files[name]) for name in wanted])
    rows = _kept(codes, wanted, limit, seed)
    images = _read_files([paths[row] for row in rows], size)
    return LabeledImages(images, codes[rows], tuple(wanted), folder.name)


def _read_files(paths: list[Path], size: int | None) -> Pixels:
    """All files as they are, or scaled; gray if all are gray, otherwise in color."""
    image = pillow_image()
    pictures: list[Any] = []
    for path in paths:
        picture = open_image(path)
        if size is None and pictures and picture.size != pictures[0].size:
            (w, h), (w0, h0) = picture.size, pictures[0].size
            raise ValueError(
                f"images must all have one size: {paths[0]} is {w0}×{h0} and {path} is {w}×{h}; "
                f"--size {min(w, h, w0, h0)} would scale all of them"
            )
        if size is not None and picture.size != (size, size):
            picture = picture.resize((size, size), image.Resampling.BOX)
        pictures.append(picture)
    mode = "L" if all(picture.mode == "L" for picture in pictures) else "RGB"
    raw = np.stack([np.asarray(picture.convert(mode)) for picture in pictures])
    return _as_pixels(raw[:, None] if mode == "L" else np.moveaxis(raw, 3, 1), "images")
