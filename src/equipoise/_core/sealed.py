"""Sealed folders: every saved model lies in one, with the SHA-256 of each of its files in ``seal.json``.

A reader takes the bytes that the seal names or none: a damaged file is named, and two saves are never mixed. A
seal shows damage, not origin: whoever makes up a folder can seal it too.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import stat
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.files import (
    DamagedFileError,
    PathLike,
    check_json,
    check_no_file,
    parse_json,
    recover,
    replacing_folder,
    settled,
    write_checked_json,
)
from equipoise._core.memory import refuse_if_too_large

SEAL = "seal.json"
FORMAT = 1


@contextlib.contextmanager
def sealing(folder: PathLike) -> Iterator[Path]:
    """A temporary folder that becomes ``folder``, sealed, when the block ends well.

    Raises
    ------
    FileExistsError
        If ``folder`` holds files that are no sealed folder: they are not overwritten.
    """
    check_replaceable(folder)
    with replacing_folder(folder) as temporary:
        yield temporary
        files = {}
        for place, _, names in os.walk(temporary):
            for name in names:
                path = Path(place, name)
                files[path.relative_to(temporary).as_posix()] = _entry(path.read_bytes())
        write_checked_json(temporary / SEAL, {"format": FORMAT, "files": files})


def check_replaceable(folder: PathLike) -> None:
    """Refuse to save over anything but an empty or a sealed folder."""
    target = Path(os.path.realpath(folder))
    check_no_file(target)
    with settled(target.parent):  # no other save takes the folder away between two looks
        names = os.listdir(target) if target.is_dir() else []
    if names and SEAL not in names:
        raise FileExistsError(f"{folder} holds files that Equipoise did not save: choose another folder")


def open_sealed(folder: PathLike | SealedFolder) -> SealedFolder:
    """Read a sealed folder whole and check every byte of it.

    Raises
    ------
    FileNotFoundError
        If there is no such folder, or it is not sealed.
    DamagedFileError
        If a file is missing, cut off or altered; the message names it.
    """
    if isinstance(folder, SealedFolder):
        return folder
    source = Path(folder)
    parent = Path(os.path.realpath(source)).parent
    with contextlib.suppress(OSError):  # a folder that we may only read, or none
        recover(parent)
    try:
        return SealedFolder(source, _read_files(source))
    except (DamagedFileError, FileNotFoundError):  # unless another save came in between
        with contextlib.ExitStack() as until_read:
            with contextlib.suppress(OSError):
                until_read.enter_context(settled(parent))
            return SealedFolder(source, _read_files(source))


class SealedFolder:
    """The checked content of a sealed folder."""

    def __init__(self, path: Path, files: Mapping[str, bytes]) -> None:
        self.path, self._files = path, files

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def __truediv__(self, name: str) -> SealedFolder:
        """A folder inside of this one, from the same save."""
        start = f"{name}/"
        inside = {k.removeprefix(start): data for k, data in self._files.items() if k.startswith(start)}
        if not inside:
            raise DamagedFileError(f"{self.path} is incomplete: it lacks the folder {name}")
        return SealedFolder(self.path / name, inside)

    def read_bytes(self, name: str) -> bytes:
        try:
            return self._files[name]
        except KeyError:
            raise DamagedFileError(f"{self.path} is incomplete: it lacks {name}") from None

    def read_json(self, name: str, kind: type = dict) -> Any:
        """The JSON of a file, of the type ``kind`` at its top."""
        value = parse_json(self.read_bytes(name), self.path / name)
        if not isinstance(value, kind):
            raise DamagedFileError(f"{self.path / name} must hold a {kind.__name__}, got {value!r:.60}")
        return value

    def read_arrays(self, name: str, *needed: str) -> dict[str, npt.NDArray[Any]]:
        """The arrays of an npz file; nothing is unpickled, and nothing larger than the file declares is made."""
        with self.reading(name), zipfile.ZipFile(io.BytesIO(self.read_bytes(name))) as archive:
            return {key: _read_array(archive, f"{key}.npy") for key in needed}

    @contextlib.contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """Whatever fails in the block is the fault of the file ``name``, and is said so."""
        try:
            yield
        except (DamagedFileError, OSError, ImportError):
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise DamagedFileError(
                f"{self.path / name} is not usable (made up or damaged?): {reason}"
            ) from error


def _entry(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _read_seal(source: Path) -> dict[str, Any]:
    """What the seal lists."""
    if not source.is_dir():
        raise FileNotFoundError(f"no such folder: {source}")
    try:
        data = _read_plain(source / SEAL)
    except FileNotFoundError:
        raise FileNotFoundError(f"{source} is not a folder that Equipoise saved: it has no {SEAL}") from None
    seal = check_json(parse_json(data, source / SEAL), source / SEAL)
    if seal.get("format") != FORMAT:
        raise DamagedFileError(f"{source / SEAL} is not a seal of format {FORMAT}")
    files = seal.get("files")
    if not isinstance(files, dict) or not all(map(_is_inside, files)):
        raise DamagedFileError(f"{source / SEAL} must list the files of the folder, got {files!r:.60}")
    return files


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(name) and "\\" not in name and not path.is_absolute() and ".." not in path.parts


def _read_files(source: Path) -> dict[str, bytes]:
    files = {}
    for name, entry in _read_seal(source).items():
        try:
            files[name] = _read_plain(source / name)
        except (FileNotFoundError, NotADirectoryError):
            raise DamagedFileError(f"{source} is incomplete: {name} is missing") from None
        found = _entry(files[name])
        if entry != found:
            cut = isinstance(entry, dict) and entry.get("bytes") != found["bytes"]
            what = "it was cut off or has grown" if cut else "its content was altered"
            raise DamagedFileError(f"{source / name} is damaged: {what} since it was saved")
    return files


def _read_plain(path: Path) -> bytes:
    """The bytes of a plain file; a pipe or a device, which may never end, is refused."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise DamagedFileError(f"{path} is not a plain file")
        refuse_if_too_large(path, os.fstat(handle).st_size)
        return file.read()


def _read_array(archive: zipfile.ZipFile, member: str) -> npt.NDArray[Any]:
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        header = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = header(file)
        if dtype.hasobject:
            raise ValueError(f"{member} holds Python objects")
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if min(shape, default=0) < 0 or size > archive.getinfo(member).file_size:
            raise ValueError(f"{member} declares {size} bytes and holds fewer")
        refuse_if_too_large(member, size)
        data = file.read(size)
    return np.frombuffer(data, dtype=dtype).reshape(shape, order="F" if fortran else "C").copy()
