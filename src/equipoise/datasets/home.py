"""Where data files live, and how they are found."""

from __future__ import annotations

import math
import os
import sys
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from equipoise._core.memory import refuse_if_too_large

DEBIAN_FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")  # Debian's package dataset-fashion-mnist

PathLike = str | os.PathLike[str]


def data_home(path: PathLike | None = None) -> Path:
    """The folder that holds data files; it need not exist.

    The argument, else the environment variable EQUIPOISE_DATA, else ``equipoise`` in the user's cache folder.

    Parameters
    ----------
    path : path, optional
        The folder, if it is not the usual one.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> data_home("my/data").as_posix()
    'my/data'
    """
    if path is not None:
        return Path(path).expanduser()
    if named := os.environ.get("EQUIPOISE_DATA"):
        return Path(named).expanduser()
    return _cache_folder() / "equipoise"


def _cache_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def folders(home: Path, name: str, extra: Iterable[Path] = ()) -> Iterator[Path]:
    """Where files of the set ``name`` may lie: home/name and all under it, home, then ``extra``."""
    root = home / name
    yield root
    if root.is_dir():
        yield from sorted(path for path in root.rglob("*") if path.is_dir())
    yield home
    yield from extra


def find_file(places: Iterable[Path], *names: str) -> Path | None:
    """The first of ``names`` in the first of ``places`` that has one."""
    for place in places:
        for name in names:
            if (place / name).is_file():
                return place / name
    return None


def missing(what: str, home: Path, wanted: str, advice: str) -> FileNotFoundError:
    """The error for a set that is not there: what was looked for, where, and how to get it."""
    return FileNotFoundError(
        f"{what} was not found under {home} (looked for {wanted}). {advice} "
        "Set data_home=… or EQUIPOISE_DATA to the folder that has it."
    )


def load_npz(path: PathLike, *needed: str) -> dict[str, npt.NDArray[np.generic]]:
    """The arrays of an npz file (never pickled objects), or say what is wrong with the file.

    Only ``needed`` are read if any are named.
    """
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"no such file: {source}")
    refuse_if_too_large(source, _declared_npz_bytes(source, needed))
    try:
        if not zipfile.is_zipfile(source):
            raise ValueError("it is no zip archive")
        with np.load(source, allow_pickle=False) as archive:
            absent = [key for key in needed if key not in archive.files]
            if absent:
                raise KeyError(f"{source} lacks {', '.join(absent)}; it has {', '.join(archive.files)}")
            return {key: archive[key] for key in (needed or archive.files)}
    except KeyError as error:
        raise ValueError(str(error.args[0])) from None
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        if "Object arrays" in str(error):
            raise ValueError(
                f"{source} holds Python objects, such as images of different sizes, and not arrays of numbers"
            ) from None
        raise ValueError(f"{source} is not a readable npz file (cut off or damaged?): {error}") from error


def _declared_npz_bytes(path: PathLike, names: Collection[str] = ()) -> int:
    """Bytes that the arrays of an npz file declare in their headers; 0 for a file that is no npz.

    Only ``names`` count if any are given.
    """
    total = 0
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.namelist():
                if not names or entry.removesuffix(".npy") in names:
                    with archive.open(entry) as file:
                        total += _declared_bytes(file)
    except (OSError, ValueError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return 0  # whoever reads it says what is wrong
    return total


def _declared_bytes(file: IO[bytes]) -> int:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return math.prod(shape) * dtype.itemsize
