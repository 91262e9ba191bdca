"""Progress bars that fall silent off a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sized
from typing import Any, TypeVar

T = TypeVar("T")


def bars_are_shown(verbose: bool | None = None) -> bool:
    """``None`` means: if somebody is looking (a terminal, and EQUIPOISE_PROGRESS is not 0)."""
    if verbose is not None:
        return bool(verbose)
    wanted = os.environ.get("EQUIPOISE_PROGRESS")
    return wanted != "0" if wanted else sys.stderr.isatty()


class Progress:
    """A bar with a total, a moving description and an estimate of what is left.

    >>> with Progress(total=2, label="folds") as bar:
    ...     bar.advance(note="fold 1")
    ...     bar.advance(note="fold 2")
    >>> bar.done
    2
    """

    def __init__(self, total: int | None = None, label: str = "", verbose: bool | None = None) -> None:
        self.done = 0
        self._bar: Any = None
        if bars_are_shown(verbose):
            try:
                from tqdm.auto import tqdm
            except ImportError:  # tqdm comes with the extras; without it the work goes on in silence
                return
            self._bar = tqdm(total=total, desc=label, file=sys.stderr, dynamic_ncols=True)

    def advance(self, count: int = 1, note: str = "") -> None:
        self.done += count
        if self._bar is not None:
            if note:
                self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(count)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


def track(
    items: Iterable[T], label: str = "", total: int | None = None, verbose: bool | None = None
) -> Iterator[T]:
    """Iterate with a bar.

    >>> list(track([1, 2, 3], "numbers"))
    [1, 2, 3]
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    with Progress(total, label, verbose) as bar:
        for item in items:
            yield item
            bar.advance()
