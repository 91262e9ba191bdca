"""SVHN, the hair colors of CelebA and ImageNet-100 from the files that their authors give out."""

from __future__ import annotations

from typing import Literal

import numpy as np

from equipoise._core.checks import IntArray, check_choice
from equipoise.datasets.dataset import Dataset
from equipoise.datasets.home import PathLike, data_home, find_file, folders, missing
from equipoise.datasets.image_files import ImageFiles, find_image_files
from equipoise.datasets.images import Pixels, image_dataset

_HAIR_CLASSES = ("Black_Hair", "Brown_Hair", "Blond_Hair", "Gray_Hair", "Bald")
_home = data_home  # the loaders' argument has the same name


def load_svhn(
    split: Literal["train", "test"] = "train",
    *,
    pixels: Pixels = "float32",
    data_home: PathLike | None = None,
) -> Dataset:
    """Load the 73257 training or 26032 test digits of SVHN, (n, 3, 32, 32).

    Parameters
    ----------
    split : {"train", "test"}
        Which of the two sets.
    pixels : {"float32", "uint8"}
        Scaled to [0, 1], or 0 … 255 in a quarter of the memory.
    data_home : path, optional
        Its folder ``svhn`` holds ``train_32x32.mat`` and ``test_32x32.mat`` (the set's format 2).

    Returns
    -------
    Dataset
        The images and their labels.

    Raises
    ------
    FileNotFoundError
        If the file is not there; the message says which one to bring.

    References
    ----------
    Netzer et al. (2011), Reading digits in natural images with unsupervised feature learning.

    Examples
    --------
    >>> load_svhn("train", data_home="nowhere")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    FileNotFoundError: svhn was not found under nowhere (looked for train_32x32.mat). ...
    """
    from scipy.io import loadmat

    check_choice("split", split, ["train", "test"])
    home, name = _home(data_home), f"{split}_32x32.mat"
    path = find_file(folders(home, "svhn"), name)
    if path is None:
        raise missing("svhn", home, name, "Bring it from the home page of SVHN.")
    try:
        held = loadmat(path, variable_names=["X", "y"])
        images, labels = held["X"], held["y"]
    except Exception as error:  # the reader raises many kinds
        raise ValueError(f"{path} is not a readable file of SVHN (cut off or damaged?): {error}") from error
    if images.ndim != 4:
        raise ValueError(f"{path}: X must be (height, width, channels, n), got {images.shape}")
    digits = labels.ravel().astype(np.int64) % 10  # a zero has the label 10
    return image_dataset(np.moveaxis(images, 3, 0), digits, "svhn", tuple("0123456789"), pixels, path)


def find_celeba_hair_files(
    split: Literal["train", "test"] = "train", *, side: int = 32, data_home: PathLike | None = None
) -> tuple[ImageFiles, IntArray]:
    """Find the faces of CelebA with one of five kinds of hair: black, brown, blond, gray, or bald; unread on disk.

    A face that has two of these attributes, or none, is left out.

    Parameters
    ----------
    split : {"train", "test"}
        The authors' parts 0 and 2; their validation part is not used.
    side : int
        Height and width that pictures are scaled to.
    data_home : path, optional
        Its folder ``celeba`` holds ``list_attr_celeba.txt``, ``list_eval_partition.txt`` and, in
        ``img_align_celeba`` beside them, the pictures.

    Returns
    -------
    ImageFiles
        The pictures.
    array of int
        Their class codes, in the order above.

    Raises
    ------
    FileNotFoundError
        If a list is not there; the message says which one to bring.

    References
    ----------
    Liu et al. (2015), Deep learning face attributes in the wild; Mondal et al. (2023), Table 7, for the classes.

    Examples
    --------
    >>> files, codes = find_celeba_hair_files("train")  # doctest: +SKIP
    """
    check_choice("split", split, ["train", "test"])
    home = _home(data_home)
    rows: dict[str, list[list[str]]] = {}
    for name in ("list_attr_celeba.txt", "list_eval_partition.txt"):
        path = find_file(folders(home, "celeba"), name)
        if path is None:
            raise missing("celeba", home, name, "Bring it and img_align_celeba from the home page of CelebA.")
        rows[name] = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        pictures = path.parent / "img_align_celeba"
    _, names, *faces = rows["list_attr_celeba.txt"]
    absent = [name for name in _HAIR_CLASSES if name not in names]
    if absent:
        raise ValueError(f"list_attr_celeba.txt has no attribute {', '.join(absent)}")
    has = np.array([[face[1 + names.index(name)] == "1" for name in _HAIR_CLASSES] for face in faces])
    part = dict(rows["list_eval_partition.txt"])
    wanted = "0" if split == "train" else "2"
    kept = [row for row, face in enumerate(faces) if has[row].sum() == 1 and part.get(face[0]) == wanted]
    return ImageFiles([pictures / faces[row][0] for row in kept], side), has[kept].argmax(axis=1)


def find_imagenet100_files(
    split: Literal["train", "test"] = "train", *, side: int = 32, data_home: PathLike | None = None
) -> tuple[ImageFiles, IntArray]:
    """Find the pictures of 100 classes of ImageNet, unread on disk.

    The paper draws its 100 classes at random and does not name them, so the folder decides.

    Parameters
    ----------
    split : {"train", "test"}
        ``"test"`` is ImageNet's validation part.
    side : int
        Height and width that pictures are scaled to.
    data_home : path, optional
        Its folder ``imagenet100`` holds ``train/CLASS/…`` and ``val/CLASS/…``. Where there are more classes than
        wanted, a file ``classes.txt`` beside them names those to take, one a line.

    Returns
    -------
    ImageFiles
        The pictures.
    array of int
        Their class codes, in the order of the classes' names.

    Raises
    ------
    FileNotFoundError
        If the folder is not there.

    References
    ----------
    Deng et al. (2009), ImageNet; Mondal et al. (2023), Table 9, for the counts.

    Examples
    --------
    >>> files, codes = find_imagenet100_files("train")  # doctest: +SKIP
    """
    check_choice("split", split, ["train", "test"])
    home = _home(data_home)
    root, part = home / "imagenet100", "train" if split == "train" else "val"
    if not (root / part).is_dir():
        raise missing(
            "imagenet100", home, f"imagenet100/{part}", "Unpack the pictures there, a folder a class."
        )
    files, labels = find_image_files(root / part, side=side)
    listed = root / "classes.txt"
    if listed.is_file():
        kept = np.isin(labels.astype(str), listed.read_text(encoding="utf-8").split())
        files, labels = files[kept], labels[kept]
    return files, np.unique(labels.astype(str), return_inverse=True)[1].astype(np.int64)
