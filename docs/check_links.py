"""Every link and picture of the built site leads to a file of it, and every anchor to a place.

Run: python docs/check_links.py docs/_build/html
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors of a page, where it leads to, and what it would load from elsewhere."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.anchors, self.links, self.loaded = path, set[str](), list[str](), list[str]()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        self.anchors |= {known[name] for name in ("id", "name") if name in known}
        if tag == "a" and known.get("href"):
            self.links.append(known["href"])
        elif tag in ("img", "script", "iframe") and known.get("src"):
            self.loaded.append(known["src"])
        elif tag == "link" and known.get("rel") in ("stylesheet", "preload", "icon"):
            self.loaded.append(known["href"])


def dead_links(site: Path) -> Iterator[str]:
    """A sentence for each link, anchor or resource that is not there."""
    pages = {
        path.resolve(): Page(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts
    }
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for address in page.loaded:
            if urlsplit(address).scheme in ("http", "https") or address.startswith("//"):
                yield f"{name} loads {address} from elsewhere"
        for address in [*page.links, *page.loaded]:
            parts = urlsplit(address)
            if parts.scheme or address.startswith("//"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{name} leads to {address}, which is not there"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{name} leads to {address}, where there is no such anchor"


if __name__ == "__main__":
    found = list(dead_links(Path(sys.argv[1])))
    print("\n".join(found) or "All internal links lead somewhere.")
    sys.exit(bool(found))
