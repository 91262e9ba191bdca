"""Saying what is being done while it is done."""

from __future__ import annotations

import sys
import time

from equipoise.advisor.budget import Budget


class Teller:
    """Says what is being done: one line that changes on a terminal, a line now and then elsewhere."""

    def __init__(self, verbose: bool | None, budget: Budget) -> None:
        self.terminal = sys.stderr.isatty()
        self.shown = self.terminal if verbose is None else verbose
        self.budget, self.last = budget, 0.0

    def __call__(self, what: str) -> None:
        now = time.monotonic()
        if not self.shown or (not self.terminal and now - self.last < 10 and self.last):
            return
        self.last = now
        text = f"{now - self.budget.started:5.0f} s of {self.budget.seconds:.0f} s: {what}"
        print(f"\r{text:<100.100}" if self.terminal else text, end="" if self.terminal else "\n",
              file=sys.stderr, flush=True)  # fmt: skip

    def close(self) -> None:
        if self.shown and self.terminal:
            print(file=sys.stderr)
