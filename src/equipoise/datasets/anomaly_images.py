"""Images of products, faultless and faulty, in the folder layouts of MVTec AD and BTAD."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from equipoise.datasets.folders import SUFFIXES
from equipoise.datasets.home import PathLike
from equipoise.datasets.image_files import ImageFiles

_NORMAL = {"good", "ok"}  # MVTec's and BTAD's name


class AnomalyImages(NamedTuple):
    """Pictures on disk; y is 1 for an anomaly; the kind is the folder's name; the split is "train" or "test".

    Attributes
    ----------
    files : ImageFiles
        The pictures, which are decoded when rows are asked for.
    y : array of int
        1 for an anomaly, 0 for a good product.
    kind : array of str
        The name of each picture's folder.
    split : array of str
        ``"train"`` or ``"test"``.
    """

    files: ImageFiles
    y: npt.NDArray[np.int64]
    kind: npt.NDArray[np.str_]
    split: npt.NDArray[np.str_]


def find_anomaly_images(category: PathLike, *, side: int = 224) -> AnomalyImages:
    """Find the pictures of one product, unread: ``train/good`` and ``test/KIND``, or BTAD's ``ok`` and ``ko``.

    Masks under ``ground_truth`` are left out.

    Parameters
    ----------
    category : path
        The folder of one product, such as ``mvtec/bottle`` or ``btad/01``.
    side : int
        Height and width that pictures are scaled to when they are read.

    Returns
    -------
    AnomalyImages
        The pictures with their labels, kinds and splits.

    Raises
    ------
    ValueError
        If the folder has no such layout, or has pictures of one class only.

    References
    ----------
    Bergmann et al., MVTec AD, CVPR 2019. Mishra et al., VT-ADL (BTAD), ISIE 2021.
    """
    place = Path(category)
    if not place.is_dir():
        raise FileNotFoundError(f"no such folder: {place}")
    rows = [
        (file, part.name, split)
        for split in ("train", "test")
        for part in sorted((place / split).glob("*"))
        for file in sorted(part.glob("*"))
        if file.suffix.lower() in SUFFIXES
    ]
    kinds = {kind.lower() for _, kind, _ in rows}
    if not kinds & _NORMAL or not kinds - _NORMAL:
        inside = ", ".join(sorted(part.name for part in place.iterdir() if part.is_dir())) or "none"
        raise ValueError(
            f"{place} must hold pictures under train/good and test/KIND (MVTec) or train/ok and test/ko (BTAD), "
            f"normal ones and anomalies; its folders are {inside}"
        )
    kind = np.array([name for _, name, _ in rows])
    return AnomalyImages(
        ImageFiles([file for file, _, _ in rows], side),
        np.array([name.lower() not in _NORMAL for name in kind], dtype=np.int64),
        kind,
        np.array([split for _, _, split in rows]),
    )
