"""The border of the command: what may reach a terminal, and how an error is said."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any, TextIO

from equipoise._core.text import printable


class SafeStream:
    """A stream that can print any text: it drops control sequences and replaces what its encoding lacks."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        clean = printable(text)
        try:
            self._stream.write(clean)
        except UnicodeEncodeError:
            encoding = self._stream.encoding or "ascii"
            self._stream.write(clean.encode(encoding, "replace").decode(encoding))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def safe_streams() -> Iterator[None]:
    out: Any = SafeStream(sys.stdout)
    errors: Any = SafeStream(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        yield


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends the command as SIGINT does: in order, with its files whole."""


@contextlib.contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """Let SIGTERM raise :class:`Terminated` in this process, not in processes forked from it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    owner = os.getpid()

    def stop(number: int, frame: Any) -> None:
        if os.getpid() != owner:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def sentence(error: Exception) -> str:
    """What went wrong and what to try, in a line or two without a traceback."""
    text = str(error) or type(error).__name__
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return f"not enough memory: {text}; try fewer rows, a smaller network or smaller pictures"
    if isinstance(error, RecursionError):
        return "the input is nested too deeply to be read; try a flatter file"
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}{_ADVICE.get(error.errno or 0, '')}"
    if isinstance(error, (ValueError, TypeError, OSError, ImportError)):
        return text
    return (
        f"an unexpected {type(error).__name__}: {text}. Check the input; with EQUIPOISE_DEBUG=1 the command "
        "shows where it happened, which a bug report should hold"
    )


_ADVICE = {
    errno.ENOSPC: "; free some space and run the command again",
    errno.EDQUOT: "; free some space and run the command again",
    errno.EFBIG: "; the system's limit on the size of files is too low for it",
    errno.EACCES: "; choose another place or change its permissions",
    errno.EROFS: "; choose another place",
}
