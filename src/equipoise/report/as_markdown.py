"""Blocks as Markdown that any reader shows; text of users cannot become markup."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from equipoise.report.blocks import (
    Block,
    Code,
    Details,
    Facts,
    Figure,
    Gallery,
    Headline,
    Links,
    Note,
    Picture,
    Ranking,
    Row,
    Table,
    Text,
    clip,
    format_cell,
)
from equipoise.report.operating import LiveOperatingPoint

if TYPE_CHECKING:
    from equipoise.report.document import Report


def escape(text: str) -> str:
    """Signs that Markdown or HTML would read, behind a backslash; line breaks become spaces.

    >>> print(escape("a*b <i> [x](y)"))
    a\\*b \\<i> \\[x\\](y)
    """
    return re.sub(r"([\\`*_\[\]<|#])", r"\\\1", " ".join(text.split()))


def _text(block: Text) -> Iterator[str]:
    yield escape(block.text)


def _note(block: Note) -> Iterator[str]:
    title = block.title or {"note": "Note", "good": "Good", "warning": "Take care"}[block.level]
    stop = "" if title.endswith(("?", "!", ".", ":")) else "."
    yield f"> **{escape(title)}{stop}** {escape(block.text)}"


def _headline(block: Headline) -> Iterator[str]:
    yield f"**{escape(block.claim)}**\n"
    for label, text in block.parts:
        yield f"- **{escape(label)}.** {escape(text)}"


def _facts(block: Facts) -> Iterator[str]:
    for label, value, *detail in block.items:
        yield f"- {escape(label)}: **{escape(value)}**" + (f" ({escape(detail[0])})" if detail else "")


def _table(block: Table) -> Iterator[str]:
    if block.caption:
        yield f"*{escape(block.caption)}*\n"
    yield "| " + " | ".join(escape(str(c)) for c in block.columns) + " |"
    yield "|" + "|".join("---:" if numeric else "---" for numeric in block.numeric) + "|"
    for index, row in enumerate(block.rows):
        cells = [
            escape(format_cell(cell, block.formats.get(name, "")))
            for name, cell in zip(block.columns, row, strict=True)
        ]
        if index in block.emphasis:
            cells = [f"**{cell}**" if cell else cell for cell in cells]
        yield "| " + " | ".join(cells) + " |"


def _figure(block: Figure) -> Iterator[str]:
    yield f"*Figure: {escape(' '.join(filter(None, [block.caption, block.alt])))}*"


def _picture(block: Picture) -> Iterator[str]:
    yield f"![{escape(block.alt or block.caption)}]({block.name}.svg)"
    if block.caption:
        yield f"\n*{escape(block.caption)}*"


def _ranking(block: Ranking) -> Iterator[str]:
    rows = [list(item) for item in block.items]
    yield from _table(Table(["", "estimate"], rows, block.caption, {"estimate": block.format}))


def _gallery(block: Gallery) -> Iterator[str]:
    yield f"*{escape(block.caption)}* (the pictures are on the HTML page)\n"
    for _, line in block.items:
        yield f"- {escape(line)}"


def _links(block: Links) -> Iterator[str]:
    for title, address, text in block.items:
        yield f"- [{escape(title)}]({address}) {escape(text)}".rstrip()


def _live(block: LiveOperatingPoint) -> Iterator[str]:
    code = block.codes[-1]
    alone = (
        "" if block.is_binary else " alone, against the rest (the decision itself weighs all classes at once)"
    )
    yield f"At a threshold of {block.threshold(code):.4g} for “{escape(clip(block.classes[code], 80))}”{alone}:\n"
    told = {name: value for name, value in block.figures.items() if name != "cost" or block.cost is not None}
    rows = [[name.replace("_", " "), value] for name, value in told.items()]
    yield from _table(Table(["figure", "value"], rows, "Counts and alerts are of 10,000 cases."))


def _code(block: Code) -> Iterator[str]:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", block.text)), default=0))
    yield f"{fence}\n{block.text}\n{fence}"


def _row(block: Row) -> Iterator[str]:
    for inner in block.blocks:
        yield from _lines(inner)
        yield ""


def _details(block: Details) -> Iterator[str]:
    yield f"**{escape(block.summary)}**\n"
    for inner in block.blocks:
        yield from _lines(inner)
        yield ""


_RENDERERS: dict[type, Callable[[Any], Iterator[str]]] = {
    Text: _text, Note: _note, Facts: _facts, Table: _table, Figure: _figure, Picture: _picture, Code: _code,
    Row: _row, Details: _details, Headline: _headline, Ranking: _ranking, Gallery: _gallery, Links: _links,
    LiveOperatingPoint: _live,
}  # fmt: skip


def _lines(block: Block) -> Iterator[str]:
    yield from _RENDERERS[type(block)](block)


def render(report: Report) -> str:
    parts = [f"# {escape(report.title)}\n"]
    if report.subtitle:
        parts.append(f"{escape(report.subtitle)}\n")
    for section in report.sections:
        parts.append(f"## {escape(section.title)}\n")
        for block in section.blocks:
            parts.append("\n".join(_lines(block)).rstrip() + "\n")
    if report.footer:
        parts.append(f"---\n\n{escape(report.footer)}\n")
    return "\n".join(parts)
