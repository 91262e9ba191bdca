"""A browser for the tests of pages, and what a page said and asked while it was open."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip
EVIL = "<script>window.broken=1</script><img src=x onerror='window.broken=2'>"


@contextmanager
def launched() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if _BROWSER is None:
        pytest.skip("no chromium on this machine: the page was not tested in a browser")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=_BROWSER, args=_FLAGS)
        yield opened
        opened.close()


@contextmanager
def visiting(browser: Any, path: Path, width: int = 1280, height: int = 900, **options: Any) -> Iterator[Any]:
    """A page with ``said`` (console and errors) and ``asked`` (addresses requested)."""
    context = browser.new_context(viewport={"width": width, "height": height}, offline=True, **options)
    context.set_default_timeout(180_000)  # a busy machine is slow, not wrong
    opened = context.new_page()
    opened.said, opened.asked = [], []
    opened.on("console", lambda message: opened.said.append(message.text))
    opened.on("pageerror", lambda error: opened.said.append(str(error)))
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.goto(path.as_uri())
    yield opened
    context.close()
