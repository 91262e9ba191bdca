"""The package's page: the README, whose relative links would lead nowhere from a package index.

With ``Source`` among the project's URLs they are made absolute; without it the words stay and the links go.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)\s]+)\)")


def package_page(readme: str, source: str | None, version: str) -> str:
    """The README for a package index.

    >>> package_page("![a](docs/a.png) [b](b.md) [c](https://c.org)", None, "1.0")
    ' b [c](https://c.org)'
    >>> package_page("![a](docs/a.png) [b](b.md)", "https://host.org/e", "1.0")
    '![a](https://host.org/e/raw/v1.0/docs/a.png) [b](https://host.org/e/blob/v1.0/b.md)'
    """

    def absolute(match: re.Match[str]) -> str:
        picture, text, path = match.groups()
        if source is None:
            return "" if picture else text
        return f"{picture}[{text}]({source.rstrip('/')}/{'raw' if picture else 'blob'}/v{version}/{path})"

    return LINK.sub(absolute, readme)


class CustomMetadataHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = package_page(readme, metadata.get("urls", {}).get("Source"), metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
