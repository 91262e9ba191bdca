"""Predictions for a file."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from equipoise.advisor._advisor import Advisor
from equipoise.datasets.home import load_npz
from equipoise.datasets.reading import read_frame


def predict_file(
    advisor: Advisor, path: str | PathLike[str], *, id: str | None = None, encoding: str = "utf-8"
) -> tuple[pd.DataFrame, list[str]]:
    """The label and the probabilities of every row of a file.

    Parameters
    ----------
    advisor : Advisor
    path : path
        CSV, Parquet, npz or a folder of images.
    id : str, optional
        The column that names the rows; by default the one of the table that the model was fitted to.
    encoding : str
        Of a text file.

    Returns
    -------
    DataFrame, list of str
        The predictions, and notes about columns that were not used.
    """
    source, info = Path(path), advisor.info_
    notes: list[str] = []
    names: dict[str, Any] = {}
    table: Any
    if source.is_dir() and info.get("image_shape"):
        table, names["file"] = _images(info["image_shape"], source)
    elif source.suffix == ".npz":
        table = _array(source)
    else:
        table = read_frame(source, encoding=encoding)
        named = id or info.get("id")
        if named is not None and named in table.columns:
            names[named] = table[named].to_numpy()
        known = {info.get("target"), named, *advisor.decision_.wish.columns}
        extra = [n for n in advisor.schema_.unknown(map(str, table.columns)) if n not in known]
        if extra:
            notes.append(f"Columns that the model does not use: {', '.join(map(repr, extra[:10]))}.")
    proba = advisor.predict_proba(table)
    columns = {f"probability of {label}": proba[:, code] for code, label in enumerate(advisor.classes_)}
    return pd.DataFrame({**names, "prediction": advisor.predict(table), **columns}), notes


def _array(path: Path) -> Any:
    arrays = load_npz(path)
    rows = {k: v for k, v in arrays.items() if v.ndim >= 2}
    if not rows:
        raise ValueError(f"{path} has no array with rows and columns; there are {', '.join(arrays)}")
    name = next((k for k in ("X", "x", "data", "images") if k in rows), next(iter(rows)))
    return rows[name].reshape(len(rows[name]), -1).astype(np.float64)


def _images(shape: list[int], folder: Path) -> tuple[Any, list[str]]:
    from equipoise.datasets.folders import image_files, read_images

    files = image_files(folder)
    return read_images(files, shape[0], color=shape[2] == 3)[0], [str(f.relative_to(folder)) for f in files]
