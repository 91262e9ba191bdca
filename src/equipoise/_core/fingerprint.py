"""What a saved piece of work belongs to: one digest of data, method and settings, and the machine it ran on."""

from __future__ import annotations

import functools
import hashlib
import inspect
import platform
from collections.abc import Mapping
from dataclasses import is_dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, complex, str, bytes)
_LONGEST = 200
_PACKAGES = ("equipoise", "numpy", "scipy", "scikit-learn", "torch")


def fingerprint(value: Any) -> str:
    """A digest that changes with anything inside a value and is the same in every process.

    Takes numbers, texts, arrays, tensors, containers, functions (their code and what they enclose) and objects
    (their type and attributes), nested in any way. A private attribute of an object does not count, except a
    network's parameters, buffers and parts.

    >>> fingerprint({"a": np.arange(3)}) == fingerprint({"a": np.arange(3)}) != fingerprint({"a": np.arange(4)})
    True
    """
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest, value, ())
    return digest.hexdigest()


def describe(value: Any) -> str:
    """A short value or record as it is written, anything else as its type and its digest.

    >>> describe(0.1), describe(np.zeros(2))[:8]
    ('0.1', 'ndarray ')
    """
    if value is None or isinstance(value, _PLAIN) or is_dataclass(value):
        text = repr(value)
        if len(text) <= _LONGEST and not any(word in text for word in (" at 0x", "array(", "tensor(")):
            return text
    return f"{type(value).__qualname__} {fingerprint(value)}"


@functools.cache
def environment(packages: tuple[str, ...] = _PACKAGES) -> dict[str, str]:
    """The CPU and the versions (of the packages that are here) on which trained numbers depend.

    >>> sorted(environment())[:2]
    ['cpu', 'equipoise']
    """
    found = {"cpu": cpu_model(), "python": platform.python_version()}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return dict(sorted(found.items()))


@functools.cache
def cpu_model() -> str:
    """The name of the processor, as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _feed(digest: Any, value: Any, above: tuple[int, ...]) -> None:
    if id(value) in above:  # an object that holds itself
        digest.update(b"again;")
        return
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        value = value.detach().cpu().numpy()
    if value is None or isinstance(value, _PLAIN):
        digest.update(f"{type(value).__name__}:{value!r};".encode())
    elif isinstance(value, (np.ndarray, np.generic)) and np.asarray(value).dtype != object:
        array = np.ascontiguousarray(value)
        digest.update(f"array:{array.dtype.str}:{np.shape(value)};".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    else:
        digest.update(f"{type(value).__module__}.{type(value).__qualname__}[".encode())
        for part in _parts(value):
            _feed(digest, part, (*above, id(value)))
        digest.update(b"]")


def _parts(value: Any) -> list[Any]:
    """What is inside: items (of a set in a fixed order), a function's code, an object's attributes."""
    if isinstance(value, Mapping):
        return [part for item in value.items() for part in item]
    if isinstance(value, (set, frozenset)):
        return sorted(map(fingerprint, value))
    if isinstance(value, (list, tuple, np.ndarray)):
        return list(value)
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if inspect.isclass(value) or inspect.isbuiltin(value):
        return [value.__module__, value.__qualname__]
    if inspect.ismethod(value):
        return [value.__func__, value.__self__]
    if inspect.isfunction(value):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return [value.__module__, value.__qualname__, value.__code__.co_code, value.__defaults__, cells]
    counted = {"_parameters", "_buffers", "_modules"}
    found = {k: v for k, v in getattr(value, "__dict__", {}).items() if k[0] != "_" or k in counted}
    found.update({k: getattr(value, k, None) for k in getattr(value, "__slots__", ())})
    return [found]
