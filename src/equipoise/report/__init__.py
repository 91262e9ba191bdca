"""Sections rendered to HTML, Markdown and JSON; this room knows nobody's content.

Compute first, then describe what was computed as blocks, and let a :class:`Report` render them all::

    report = Report("Results", [Section("Scores", [Text("Nine sets."), Table(["set", "AP"], [["ecoli",
    0.7]])])]) report.write("out")          # out/report.html, out/report.md, out/report.json

Blocks: :class:`Text`, :class:`Note` (a callout), :class:`Facts` (a strip of figures), :class:`Table`,
:class:`Figure` (plotly), :class:`Picture` (a still SVG), :class:`Code`, :class:`Row` (side by side),
:class:`Details` (folded away).
A cell of a table is a text, a number (formatted by the column's ``formats`` entry) or an :class:`Interval`.
All text is escaped. Text from users that goes *into* a plotly figure passes through :func:`plain`.
"""

from __future__ import annotations

from equipoise.report.blocks import (
    Block,
    Code,
    Details,
    Facts,
    Figure,
    Interval,
    Note,
    Picture,
    Row,
    Table,
    Text,
)
from equipoise.report.document import Report, Section
from equipoise.report.figures import COLORS, PALETTE, new_figure, plain

__all__ = [
    "COLORS",
    "PALETTE",
    "Block",
    "Code",
    "Details",
    "Facts",
    "Figure",
    "Interval",
    "Note",
    "Picture",
    "Report",
    "Row",
    "Section",
    "Table",
    "Text",
    "new_figure",
    "plain",
]
