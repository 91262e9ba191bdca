"""Sections rendered to HTML, Markdown and JSON; this room knows nobody's content.

Compute first, then describe what was computed as blocks, and let a :class:`Report` render them all::

    report = Report("Results", [Section("Scores", [Text("Nine sets."), Table(["set", "AP"], [["ecoli", 0.7]])])])
    report.write("out")  # out/report.html, out/report.md, out/report.json

Blocks: :class:`Headline` (the first screen), :class:`Text`, :class:`Note` (a callout), :class:`Facts` (a strip of
figures), :class:`Table`, :class:`Ranking` (estimates with intervals on one scale), :class:`Figure` (plotly),
:class:`Picture` (a still SVG), :class:`Gallery` (small pictures), :class:`LiveOperatingPoint` (sliders),
:class:`Links` (an index), :class:`Code`, :class:`Row` (side by side), :class:`Details` (folded away).
A cell of a table is a text, a number (formatted by the column's ``formats`` entry) or an :class:`Interval`.
All text is escaped. Text from users that goes *into* a plotly figure passes through :func:`plain`,
into a matplotlib figure through :func:`literal`. :func:`new_figure` and :func:`new_axes` give both the same look.
Words in a report's ``terms`` are explained where they first stand.
"""

from equipoise._core.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
