"""Using a model folder: predictions for a file, and a new operating point without training."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from equipoise.advisor.compare.decisions import decide
from equipoise.advisor.job.model import FittedModel
from equipoise.advisor.job.operating import OperatingPoint, choose, operating_point
from equipoise.datasets.home import load_npz
from equipoise.datasets.reading import read_frame


def predict_file(
    model: FittedModel, path: str | PathLike[str], *, encoding: str = "utf-8"
) -> tuple[pd.DataFrame, list[str]]:
    """Label and class probabilities of every row, and notes about columns that were not used."""
    source = Path(path)
    notes: list[str] = []
    table: Any
    names: dict[str, Any] = {}
    if source.is_dir():
        table, files = _images(model, source)
        names = {"file": files}
    elif source.suffix == ".npz":
        table = _array(model, source)
    else:
        table = read_frame(source, encoding=encoding)
        extra = [n for n in model.schema.unknown(map(str, table.columns)) if n != model.info["target"]]
        if extra:
            notes.append(f"Columns that the model does not use: {', '.join(map(repr, extra[:10]))}.")
    proba = model.predict_proba(table)
    labels = np.array(model.classes, dtype=object)[decide(proba, model.weights)]
    columns = {f"probability of {label}": proba[:, code] for code, label in enumerate(model.classes)}
    return pd.DataFrame({**names, "prediction": labels, **columns}), notes


def _array(model: FittedModel, path: Path) -> Any:
    arrays = load_npz(path)
    rows = {k: v for k, v in arrays.items() if v.ndim >= 2}
    if not rows:
        raise ValueError(f"{path} has no array with rows and columns; there are {', '.join(arrays)}")
    name = next((k for k in ("X", "x", "data", "images") if k in rows), next(iter(rows)))
    return rows[name]


def _images(model: FittedModel, folder: Path) -> tuple[Any, list[str]]:
    from equipoise.datasets.folders import image_files, read_images

    if not model.info.get("image_shape"):
        raise ValueError(
            f"the model takes a table, and {folder} is a folder: give it a CSV, Parquet or npz file"
        )
    files = image_files(folder)
    side, channels = model.info["image_shape"][0], model.info["image_shape"][2]
    return read_images(files, side, color=channels == 3)[0], [str(f.relative_to(folder)) for f in files]


def retune(
    model: FittedModel,
    *,
    cost: tuple[float, float] | None = None,
    recall: float | None = None,
    prior: Sequence[float] | None = None,
) -> tuple[FittedModel, OperatingPoint]:
    """The model with the threshold that suits other costs, a wanted recall, or another prior.

    The threshold is chosen on the out-of-fold predictions kept in the folder; nothing is trained. Under another
    prior the probabilities change too.
    """
    wanted = None if prior is None else np.asarray(prior, dtype=np.float64)
    weights, used, wish = choose(
        model.held_out, model.truth, model.data_prior, cost=cost, recall=recall, prior=wanted
    )
    point = operating_point(model.held_out, model.truth, model.data_prior, weights, used, wish)
    if prior is not None:
        wish += f", at class shares {', '.join(f'{p:.4g}' for p in used)}"
    return model.with_decision(weights, used, wish=wish), point
