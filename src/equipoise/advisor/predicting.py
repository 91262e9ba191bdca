"""Predictions for a file."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from equipoise.advisor._advisor import Advisor
from equipoise.datasets.home import load_npz
from equipoise.datasets.image_features import pixel_rows
from equipoise.datasets.reading import read_frames
from equipoise.datasets.table import listed


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
    source, shape = Path(path), advisor.info_.get("image_shape")
    if source.is_dir() and shape:
        table, files = _images(shape, source)
        return _predicted(advisor, table, {"file": files}), []
    if source.suffix == ".npz":
        return _predicted(advisor, _array(source), {}), []
    named = id or advisor.info_.get("id")
    done: list[pd.DataFrame] = []
    notes: list[str] = []
    for frame in read_frames(source, encoding=encoding):  # Parquet comes part by part
        if id is not None and id not in frame.columns:
            raise ValueError(f"there is no column {id!r}; there are {listed(frame.columns)}")
        names = {named: frame[named].to_numpy()} if named in frame.columns else {}
        done.append(_predicted(advisor, frame, names))
        notes = notes or _unused(advisor, frame, named)
    return pd.concat(done, ignore_index=True), notes


def _predicted(advisor: Advisor, table: Any, names: dict[Any, Any]) -> pd.DataFrame:
    proba = advisor.predict_proba(table)
    columns = {f"probability of {label}": proba[:, code] for code, label in enumerate(advisor.classes_)}
    return pd.DataFrame({**names, "prediction": advisor.predict(table), **columns})


def _unused(advisor: Advisor, frame: pd.DataFrame, named: str | None) -> list[str]:
    known = {advisor.info_.get("target"), named, *advisor.decision_.wish.columns}
    extra = [n for n in advisor.schema_.unknown(map(str, frame.columns)) if n not in known]
    return [f"Columns that the model does not use: {', '.join(map(repr, extra[:10]))}."] if extra else []


def _array(path: Path) -> Any:
    arrays = load_npz(path)
    rows = {k: v for k, v in arrays.items() if v.ndim >= 2}
    if not rows:
        raise ValueError(f"{path} has no array with rows and columns; there are {', '.join(arrays)}")
    name = next((k for k in ("X", "x", "data", "images") if k in rows), next(iter(rows)))
    found = pixel_rows(rows[name])[0] if rows[name].ndim in (3, 4) else rows[name]
    return found.reshape(len(found), -1).astype(np.float64)


def _images(shape: list[int], folder: Path) -> tuple[Any, list[str]]:
    from equipoise.datasets.folders import image_files, read_images

    files = image_files(folder)
    return read_images(files, shape[0], color=shape[2] == 3)[0], [str(f.relative_to(folder)) for f in files]
