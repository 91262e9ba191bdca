"""Read pickled numpy arrays without running anything that the file names.

A pickle is a program. This one may only build plain Python values and arrays of numbers: each global that
it asks for is answered by a stand-in of ours that records, and every other global is refused.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.datasets.home import PathLike


class _Type:
    """Stands in for ``numpy.dtype``: keeps the code, takes the byte order from the state."""

    def __init__(self, code: Any = None, *_: Any) -> None:
        self.code = code.decode("ascii") if isinstance(code, bytes) else code
        self.order = "="

    def __setstate__(self, state: Any) -> None:
        order = state[1]
        self.order = order.decode("ascii") if isinstance(order, bytes) else order

    def dtype(self) -> np.dtype[Any]:
        dtype = np.dtype(self.code) if isinstance(self.code, str) else None
        if dtype is None or dtype.kind not in "biuf" or self.order not in ("=", "|", "<", ">"):
            raise pickle.UnpicklingError(f"arrays of type {self.code!r} are refused")
        return np.dtype(("" if self.order == "|" else self.order) + dtype.str[1:])


class _Array:
    """Stands in for ``numpy.ndarray``: keeps shape, type and bytes until `build`.

    They come as the state or, from protocol 5 on, as the four arguments of numpy's ``_frombuffer``.
    """

    def __init__(self, *given: Any) -> None:
        self.state: tuple[Any, ...] = ()
        if len(given) == 4:
            data, kind, shape, order = given
            self.state = (1, shape, kind, order in ("F", b"F"), data)

    def __setstate__(self, state: Any) -> None:
        self.state = tuple(state)

    def build(self) -> npt.NDArray[Any]:
        if len(self.state) != 5 or not isinstance(self.state[2], _Type):
            raise pickle.UnpicklingError("an array without shape, type and bytes")
        _, shape, kind, fortran, data = self.state
        raw = data.encode("latin1") if isinstance(data, str) else data
        return np.frombuffer(raw, dtype=kind.dtype()).reshape(shape, order="F" if fortran else "C").copy()


class _Latin1:
    """Stands in for ``_codecs.encode``, by which Python 3 writes bytes into a pickle of protocol 2."""

    def __new__(cls, text: Any, encoding: Any = "latin1") -> Any:
        if not isinstance(text, str) or encoding not in ("latin1", b"latin1"):
            raise pickle.UnpicklingError("only text in latin1 is encoded")
        return text.encode("latin1")

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("bytes have no state")


# Classes, not functions: a pickle could set attributes on a function; a class with a __setstate__ refuses.
_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy.core.numeric", "_frombuffer"): _Array,
    ("numpy._core.numeric", "_frombuffer"): _Array,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _Latin1,
}


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _STAND_INS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is refused") from None

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("persistent ids are refused")


def read_array_pickle(path: PathLike) -> Any:
    """Plain values and arrays from a pickle; anything else raises a ``ValueError`` and runs nothing."""
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"no such file: {source}")
    try:
        return loads_arrays(source.read_bytes())
    except Exception as error:  # a damaged pickle can fail in any operation
        raise ValueError(f"{source} is not a readable batch of arrays: {error}") from error


def loads_arrays(data: bytes) -> Any:
    """The same from bytes; a refused or damaged pickle raises one of many exceptions."""
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > len(data):
            raise pickle.UnpicklingError("its memo is larger than the file")  # would allocate gigabytes
    return _built(_ArrayUnpickler(io.BytesIO(data), encoding="bytes").load())


def _built(value: Any, depth: int = 0) -> Any:
    if depth > 20:
        raise pickle.UnpicklingError("nested too deeply")
    if isinstance(value, _Array):
        return value.build()
    if isinstance(value, _Type) or callable(value):
        raise pickle.UnpicklingError("a type where a value should be")
    if isinstance(value, dict):
        return {key: _built(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_built(item, depth + 1) for item in value)
    return value
