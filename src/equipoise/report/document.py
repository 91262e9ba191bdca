"""A report: titled sections, rendered three ways from the same blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from equipoise._core.checks import check_choice
from equipoise._core.files import replacing, write_text
from equipoise._core.text import printable
from equipoise.report.blocks import Block, Picture, inner_blocks
from equipoise.report.terms import TERMS, Term


@dataclass(frozen=True)
class Section:
    """A titled run of blocks; on the HTML page, a tab.

    Attributes
    ----------
    title : str
        The title.
    blocks : sequence of Block
        What it shows, in order.

    Examples
    --------
    >>> Section("All results", []).slug
    'all-results'
    """

    title: str
    blocks: Sequence[Block]

    @property
    def slug(self) -> str:
        """A name for links: lower-case letters, digits and dashes."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower())[:60].strip("-") or "section"


@dataclass(frozen=True)
class Report:
    """Sections under a title, and the numbers behind them.

    Parameters
    ----------
    title, subtitle : str
        Plain text.
    sections : sequence of Section
        In reading order.
    data : mapping
        Whatever a machine should read: goes into the JSON as it is, and nowhere else.
    footer : str
        A line at the end: versions, the command that made it.
    terms : sequence of Term
        Words that the HTML page explains where they first stand in a section.

    Examples
    --------
    >>> from equipoise.report import Report, Section, Text
    >>> report = Report("A <title>", [Section("First", [Text("1 < 2")])])
    >>> print(report.to_markdown())
    # A \\<title>
    <BLANKLINE>
    ## First
    <BLANKLINE>
    1 \\< 2
    <BLANKLINE>
    >>> "&lt;title&gt;" in report.to_html()
    True
    """

    title: str
    sections: Sequence[Section]
    subtitle: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    footer: str = ""
    terms: Sequence[Term] = TERMS

    def to_html(self) -> str:
        """One self-contained page: no request leaves it.

        Returns
        -------
        str
            The page.
        """
        from equipoise.report.as_html import render

        return render(self)

    def to_markdown(self) -> str:
        """The report as Markdown; pictures are links to files beside it.

        Returns
        -------
        str
            The text.
        """
        from equipoise.report.as_markdown import render

        return printable(render(self))

    def to_json(self) -> str:
        """The report's data and its blocks as JSON, without figures.

        Returns
        -------
        str
            The text.
        """
        from equipoise.report.as_json import render

        return render(self)

    @property
    def pictures(self) -> list[Picture]:
        """Every picture, wherever it stands."""
        blocks = inner_blocks(block for section in self.sections for block in section.blocks)
        return [block for block in blocks if isinstance(block, Picture)]

    def write(
        self,
        folder: str | PathLike[str],
        name: str = "report",
        *,
        kinds: Sequence[str] = ("html", "md", "json"),
    ) -> dict[str, Path]:
        """Write ``name.html``, ``name.md`` and ``name.json`` (those of ``kinds``) and the pictures.

        Each file is whole or absent.

        Parameters
        ----------
        folder : path
            Where to write.
        name : str
            The name of the files, without a suffix.
        kinds : sequence of {"html", "md", "json"}
            Which of them.

        Returns
        -------
        dict of str to Path
            The path of each kind.
        """
        render = {"html": self.to_html, "md": self.to_markdown, "json": self.to_json}
        texts = {kind: render[check_choice("kind", kind, render)]() for kind in kinds}
        paths = {}
        for picture in self.pictures:
            write_text(Path(folder) / f"{picture.name}.svg", picture.svg)
        for kind, text in texts.items():
            paths[kind] = Path(folder) / f"{name}.{kind}"
            with replacing(paths[kind]) as temporary:
                temporary.write_text(text, encoding="utf-8", errors="replace")
        return paths
