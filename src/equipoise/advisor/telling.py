"""Saying what is being done while it is done, and what is left."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from equipoise.advisor.budget import Budget

_LEAST_APART, _LINES = 10.0, 20  # seconds between lines off a terminal; about so many in a whole budget


class Teller:
    """Says what is being done: one line that changes on a terminal, a line now and then elsewhere.

    A thread repeats it while a long fit goes on, with the time that is left. Use it as a context manager.
    """

    def __init__(self, verbose: bool | None, budget: Budget) -> None:
        self.terminal = sys.stderr.isatty()
        self.shown = self.terminal if verbose is None else verbose
        self.apart = 1.0 if self.terminal else max(_LEAST_APART, budget.seconds / _LINES)
        self.budget, self.last, self.what = budget, 0.0, ""
        self.stream = sys.stderr
        self._ended, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def __enter__(self) -> Teller:
        if self.shown:
            self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        if self.shown:
            self._ended.set()
            self._thread.join()
            if self.terminal:
                print(file=self.stream)

    def __call__(self, what: str) -> None:
        self.what = what
        if self.shown and (self.terminal or time.monotonic() - self.last >= self.apart or not self.last):
            self._say()

    def _repeat(self) -> None:
        while not self._ended.wait(0.2):
            if self.what and time.monotonic() - self.last >= self.apart:
                self._say()

    def _say(self) -> None:
        with self._lock:
            self.last = time.monotonic()
            spent, whole = self.last - self.budget.started, self.budget.seconds
            text = f"{spent:5.0f} s, {max(whole - spent, 0):.0f} s of {whole:.0f} s left: {self.what}"
            print(f"\r{text:<110.110}" if self.terminal else text, end="" if self.terminal else "\n",
                  file=self.stream, flush=True)  # fmt: skip
