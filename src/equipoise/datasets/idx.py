"""The idx format of MNIST: a header of big-endian sizes, then the values."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.datasets.home import PathLike

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: PathLike) -> npt.NDArray[Any]:
    """Read an idx file, gzipped or not (told by its first bytes, not by its name).

    A file that is cut off, too long or of another kind raises a ``ValueError`` that names it.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    array
        The array, of the type and shape that the file declares.
    """
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"no such file: {source}")
    data = source.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{source} is not a whole gzip file (cut off or damaged?): {error}") from error
    return _parse(data, source)


def _parse(data: bytes, source: Path) -> npt.NDArray[Any]:
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _TYPES:
        raise ValueError(f"{source} is not an idx file: it starts with {data[:4].hex() or 'nothing'}")
    dtype, n_axes = np.dtype(_TYPES[data[2]]), data[3]
    header = 4 + 4 * n_axes
    if len(data) < header:
        raise ValueError(f"{source} is cut off in its header: {len(data)} bytes of {header}")
    shape = struct.unpack(f">{n_axes}I", data[4:header])
    expected = header + dtype.itemsize * int(np.prod(shape, dtype=object))
    if len(data) != expected:
        raise ValueError(f"{source} has {len(data)} bytes where its header promises {expected} (cut off?)")
    values = np.frombuffer(data, dtype=dtype, offset=header).reshape(shape)
    return values.astype(dtype.newbyteorder("="))
