"""Files and folders that are either whole or absent.

Everything is written beside its target under a temporary name, flushed to the disk, and put in place by one
rename. What a killed program leaves behind is completed (:func:`recover`) or removed by the next one.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import hashlib
import json
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # no locks of this kind on Windows: leftovers are then never removed
    fcntl = None  # type: ignore[assignment]

PathLike = str | os.PathLike[str]

_PREFIX, _SUFFIX = ".equipoise-", ".part"
_READY = ".equipoise-ready"


class DamagedFileError(ValueError):
    """A file that was cut off, altered or made up; the message names it."""


@contextlib.contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its name when the block ends well and is removed if not.

    A full disk, an exception or a kill leaves the old file as it was.
    """
    target = Path(path)
    with _temporary(target, folder=False) as temporary:
        yield temporary
        _flush(temporary)
        temporary.replace(target)
        _flush(target.parent)


@contextlib.contextmanager
def replacing_folder(path: PathLike) -> Iterator[Path]:
    """The same for a folder: all of its files appear together, or none, and there is always a whole folder."""
    target = Path(os.path.realpath(path))
    check_no_file(target)
    with _temporary(target, folder=True) as bundle:
        new = bundle / target.name
        new.mkdir()
        yield new
        _flush_all(new)
        _put_in_place(bundle, new, target)
        _flush(target.parent)


@contextlib.contextmanager
def replacing_together(folder: PathLike) -> Iterator[Path]:
    """A temporary folder whose entries replace their namesakes in ``folder``, all of them together.

    Once the block has ended all of them change, even if the program is killed in between: :func:`recover`
    completes it. Other entries of ``folder`` stay as they are.
    """
    parent = Path(os.path.realpath(folder))
    with _temporary(parent / "all", folder=True) as bundle:
        yield bundle
        _flush_all(bundle)
        with settled(parent):
            for entry in filter(Path.is_dir, bundle.iterdir()):
                check_no_file(parent / entry.name)
            _commit(bundle, parent)
        _sweep(parent)


def check_no_file(target: Path) -> None:
    """Refuse a name for a folder that a file has."""
    if target.is_file():
        raise NotADirectoryError(f"{target} is a file: choose the name of a folder")


def check_writable(folder: PathLike) -> None:
    """Try to write into ``folder``, before long work with a result; what had to be made for it is removed."""
    path = Path(folder)
    absent = [place for place in (path, *path.parents) if not place.exists()]
    try:
        with _temporary(path / "file", folder=False):
            pass
    finally:
        for place in absent:
            with contextlib.suppress(OSError):  # never made, or somebody else's by now
                place.rmdir()


def recover(folder: PathLike) -> None:
    """Complete the replacement of entries of ``folder`` that a killed program had begun; remove other leftovers."""
    parent = Path(folder)
    if (parent / _READY).is_dir():
        with settled(parent):
            pass
    _sweep(parent)


@contextlib.contextmanager
def settled(folder: Path) -> Iterator[None]:
    """Nothing is being put in place in ``folder`` until the block ends; a temporary folder has one writer only."""
    lock = None if _is_temporary(folder.name) else _lock(folder, wait=True)
    try:
        _complete(folder)
        yield
    finally:
        _unlock(lock)


# Putting things in their place


def _put_in_place(bundle: Path, new: Path, target: Path) -> None:
    with settled(target.parent):
        if not target.exists():
            new.rename(target)
        elif not _exchange(new, target):
            _commit(bundle, target.parent)
    _sweep(target.parent)


def _commit(bundle: Path, parent: Path) -> None:
    """From the first rename on the replacement counts, and is completed by whoever comes; under the lock."""
    bundle.rename(parent / _READY)
    _flush(parent)
    _complete(parent)


def _complete(parent: Path) -> None:
    ready = parent / _READY
    if not ready.is_dir():
        return
    for entry in sorted(ready.iterdir()):
        target = parent / entry.name
        if target.is_symlink():
            target.unlink()
        elif target.is_dir():
            target.rename(_hidden_name(parent))
        entry.replace(target)
    _flush(parent)
    ready.rmdir()


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step; False where the system cannot."""
    swap = _system_exchange()
    if swap is None:
        return False
    if swap(os.fsencode(one), os.fsencode(other)) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM):
        return False
    raise OSError(number, os.strerror(number), str(other))


@functools.cache
def _system_exchange() -> Any:
    if sys.platform == "win32":
        return None
    library = ctypes.CDLL(None, use_errno=True)
    if hasattr(library, "renameat2"):
        here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
        return lambda one, other: library.renameat2(here, one, here, other, exchange)
    if hasattr(library, "renamex_np"):
        return lambda one, other: library.renamex_np(one, other, 2)  # RENAME_SWAP
    return None


# Temporary names, and whose they are


@contextlib.contextmanager
def _temporary(target: Path, *, folder: bool) -> Iterator[Path]:
    """A hidden name beside ``target``, locked while it is in use so that others can tell it from a leftover."""
    temporary: Path | None = None
    lock: int | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        temporary, lock = _new_temporary(target.parent, folder)
        yield temporary
    except OSError as error:
        raise _about(error, temporary, target) from error
    finally:
        if temporary is not None:
            _remove(temporary)
        _unlock(lock)


def _about(error: OSError, temporary: Path | None, target: Path) -> OSError:
    """The same error about the file that the user knows: a full disk names no file, or a hidden one."""
    if error.errno is None or error.strerror is None:
        return error
    name = str(target)
    if error.filename is not None:
        hidden = str(temporary or target.parent / _PREFIX)
        if not str(error.filename).startswith(hidden):
            return error
        inside = str(error.filename)[len(hidden) :].lstrip(os.sep)
        name = str(target.parent / inside) if temporary and inside else name
    return OSError(error.errno, error.strerror, name)


def _new_temporary(parent: Path, folder: bool) -> tuple[Path, int | None]:
    while True:
        path = _hidden_name(parent)
        if folder:
            path.mkdir(mode=0o700)
        else:
            path.touch(exist_ok=False)
        lock = _lock(path, wait=True)
        if path.exists():  # else another program took it for a leftover before it was locked, and removed it
            return path, lock
        _unlock(lock)


def _hidden_name(parent: Path) -> Path:
    return parent / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"


def _lock(path: Path, *, wait: bool) -> int | None:
    """A lock that ends with the program that holds it; None if another holds it or there are no locks here."""
    if fcntl is None:
        return None
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(handle)
        return None
    return handle


def _unlock(lock: int | None) -> None:
    if lock is not None:
        assert fcntl is not None
        fcntl.flock(lock, fcntl.LOCK_UN)  # closing is not enough if another thread has forked meanwhile
        os.close(lock)


def _is_temporary(name: str) -> bool:
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def _sweep(parent: Path) -> None:
    """Remove what killed programs left."""
    for name in os.listdir(parent):
        if _is_temporary(name):
            lock = _lock(parent / name, wait=False)
            if lock is not None:
                _remove(parent / name)
                _unlock(lock)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Have the disk hold a file's bytes, or a folder's names, before going on."""
    if sys.platform == "win32" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot
            raise
    finally:
        os.close(handle)


def _flush_all(folder: Path) -> None:
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            if stat.S_ISREG(os.lstat(os.path.join(place, name)).st_mode):
                _flush(Path(place, name))
        _flush(Path(place))


# Text and JSON


def write_text(path: PathLike, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(path: PathLike, data: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_json(path: PathLike, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, sort_keys=True) + "\n")


def parse_json(data: bytes, source: PathLike) -> Any:
    """The JSON in ``data``, or say that ``source`` is damaged."""
    try:
        return json.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise DamagedFileError(f"{source} is not readable JSON (cut off or damaged?): {error}") from error


def existing(path: PathLike) -> Path:
    """The path, if there is a folder or a file with content at it; a device may never end."""
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"no such file or folder: {source}")
    if source.is_char_device() or source.is_block_device():
        raise ValueError(f"{source} is a device: name a file, or - for the standard input")
    if source.is_file() and source.stat().st_size == 0:
        raise ValueError(f"{source} is empty: nothing to read")
    return source


def read_toml(path: PathLike) -> dict[str, Any]:
    """The content of a TOML file; what is wrong with it is said in a sentence."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(existing(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not readable TOML: {error}") from error


def read_json(path: PathLike) -> Any:
    """Read JSON, or say which file is unreadable or cut off."""
    source = Path(path)
    try:
        data = source.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"no such file: {source}") from None
    return parse_json(data, source)


def write_checked_json(path: PathLike, value: dict[str, Any]) -> None:
    """Write JSON with its own SHA-256, for a file that no seal covers."""
    write_json(path, {**value, "sha256": _checksum(value)})


def check_json(value: Any, source: PathLike) -> dict[str, Any]:
    """What :func:`write_checked_json` wrote, as read from ``source``, or say that it is damaged."""
    found = value.pop("sha256", None) if isinstance(value, dict) else None
    if found is None or found != _checksum(value):
        raise DamagedFileError(f"{source} is damaged: it is not what was saved")
    return value


def read_checked_json(path: PathLike) -> dict[str, Any]:
    return check_json(read_json(path), path)


def _checksum(value: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
